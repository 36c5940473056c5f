#include "troupe/actors/artifact_versions.hpp"

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/stores/artifact_store.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

using events = std::vector<event_ptr>;

// Number of events that are read at a time.
constexpr std::uint64_t page_size = 1'024;

void read_in_memory(setup& shared,
                    const session_key& key,
                    std::uint64_t first,
                    std::uint64_t last,
                    const completion<events>& done) {
  auto wanted
    = make_get(key, {.num_recent_events = last - first + 1, .at = last});
  if (!wanted)
    return done(wanted.error());
  (*wanted)->done = [done, key, first](result<session> found) {
    if (!found)
      return done(found.error());
    if (first <= found->first_revision())
      return done(detail::trimmed_event(key, first, found->first_revision()));
    const auto slice = found->events();
    done(events(slice.begin(), slice.end()));
  };
  if (!admit_call(**wanted, shared))
    return;
  if (const auto app = app_of(shared, key.app))
    app->tell(std::move(*wanted));
  else
    (*wanted)->fail(unknown_session(key));
}

void read_in_store(setup& shared,
                   const session_key& key,
                   std::uint64_t first,
                   std::uint64_t last,
                   completion<events> done) {
  auto wanted = std::make_unique<answered<events>>();
  wanted->done = std::move(done);
  if (admit_call(*wanted, shared))
    read_then_complete<events>(
      shared, std::move(wanted), [&shared, key, first, last](store& kept) {
        auto loaded = kept.load_events(key, first, last);
        if (!loaded && loaded.error().code() == errc::gone)
          shared.store->note_gone(key);
        return loaded;
      });
}

// An imported event may name a file that no store can hold.
bool is_of_session(const std::string& name, std::int64_t version) {
  const auto checked = check_artifact_name(name);
  return version >= 0 && checked && checked->where == scope::session;
}

} // namespace

artifact_versions saved_by(const event_slice& behind) {
  artifact_versions saved;
  for (const auto& said : behind)
    for (const auto& [name, version] : said->actions.artifact_delta)
      if (is_of_session(name, version)) {
        auto& versions
          = saved.try_emplace(name, named_versions{{}, version, version})
              .first->second;
        versions.oldest = std::min(versions.oldest, version);
        versions.newest = std::max(versions.newest, version);
      }
  return saved;
}

pending<events> load_events(const std::shared_ptr<setup>& shared,
                            const session_key& key,
                            std::uint64_t first,
                            std::uint64_t last) {
  return make_pending<events>(
    *shared, [shared, key, first, last](completion<events> done) {
      if (shared->store)
        read_in_store(*shared, key, first, last, std::move(done));
      else
        read_in_memory(*shared, key, first, last, done);
    });
}

task<result<bool>> find_earlier(std::shared_ptr<setup> shared,
                                session_key key,
                                std::uint64_t trimmed_to,
                                std::uint64_t revision,
                                artifact_versions& saved) {
  artifact_versions missing = saved;
  for (auto last = revision; last > trimmed_to && !missing.empty();) {
    const auto first
      = std::max(last > page_size ? last - page_size + 1 : 1, trimmed_to + 1);
    const auto page = co_await load_events(shared, key, first, last);
    if (!page)
      co_return page.error();
    for (const auto& said : *page)
      for (const auto& [name, version] : said->actions.artifact_delta)
        if (missing.contains(name) && version >= 0) {
          auto& earlier = saved.at(name).earlier;
          earlier = std::max(earlier.value_or(0), version);
        }
    std::erase_if(missing, [&saved](const auto& each) {
      return saved.at(each.first).earlier.has_value();
    });
    last = first - 1;
  }
  // Deleted events had saved the versions before `oldest`.
  if (trimmed_to > 0)
    for (const auto& [name, versions] : missing)
      if (versions.oldest > 0)
        saved.at(name).earlier = versions.oldest - 1;
  co_return true;
}

pending<bool> note_stored(const std::shared_ptr<setup>& shared,
                          const session_key& key,
                          artifact_versions& saved) {
  return make_artifact_call<bool>(
    shared, [key, &saved](artifact_store& kept) -> result<bool> {
      for (auto& [name, versions] : saved) {
        const auto stored = kept.versions(key, name);
        if (!stored)
          return stored.error();
        if (!stored->empty())
          versions.newest = std::max(versions.newest, stored->back());
      }
      return true;
    });
}

} // namespace troupe::actors

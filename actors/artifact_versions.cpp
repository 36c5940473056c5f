#include "troupe/actors/artifact_versions.hpp"

#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"

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
  (*wanted)->done = [done](result<session> found) {
    if (!found)
      return done(found.error());
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
      shared, std::move(wanted), [key, first, last](store& kept) {
        return kept.load_events(key, first, last);
      });
}

} // namespace

artifact_versions saved_by(const event_slice& behind) {
  artifact_versions saved;
  for (const auto& said : behind)
    for (const auto& [name, version] : said->actions.artifact_delta) {
      if (name.starts_with(key_prefix_user))
        continue;
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
                                std::uint64_t revision,
                                artifact_versions& saved) {
  auto missing = saved.size();
  for (auto last = revision; last > 0 && missing > 0;) {
    const auto first = last > page_size ? last - page_size + 1 : 1;
    const auto page = co_await load_events(shared, key, first, last);
    if (!page)
      co_return page.error();
    for (auto said = page->rbegin(); said != page->rend(); ++said)
      for (const auto& [name, version] : (*said)->actions.artifact_delta)
        if (const auto found = saved.find(name);
            found != saved.end() && !found->second.earlier) {
          found->second.earlier = version;
          --missing;
        }
    last = first - 1;
  }
  co_return true;
}

} // namespace troupe::actors

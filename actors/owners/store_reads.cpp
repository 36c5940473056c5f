// The reads of the store's queue: loads of owners, pages of events, searches
// and look-ups by id. They run on reader threads, so the writer never waits for
// them.

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/parts/guarded.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/setup.hpp"

namespace troupe::actors {

namespace {

// A filter of all ids of a session; null if they could not be loaded: then each
// id is looked up.
std::unique_ptr<id_filter> make_filter(store& kept, const session_key& key) {
  auto made = guarded([&]() -> result<std::unique_ptr<id_filter>> {
    const auto loaded
      = kept.load_session(key, {.events_max = 0, .ids_max = SIZE_MAX});
    if (!loaded || !*loaded)
      return std::unique_ptr<id_filter>();
    const auto& hashes = (*loaded)->id_hashes;
    auto filter = std::make_unique<id_filter>(hashes.size());
    for (const auto hash : hashes)
      filter->add(hash);
    return filter;
  });
  return made ? std::move(*made) : nullptr;
}

// Loads the session with its newest events, and those from number
// `wanted.events_from` on.
result<std::optional<stored_session>>
load_with_events(store& kept, const session_key& key, const load& wanted) {
  // Another process may remove the session between the two reads. The second
  // attempt then finds the current state.
  for (bool is_second = false;; is_second = true) {
    auto loaded = kept.load_session(key, wanted.options);
    if (!loaded || !*loaded)
      return loaded;
    auto& found = **loaded;
    const auto last = found.scope.revision - found.events.size();
    const auto first = std::max(wanted.events_from, found.first_revision + 1);
    if (first > last)
      return loaded;
    auto older = kept.load_events(key, first, last);
    if (!older && (older.error().code() != errc::gone || is_second))
      return older.error();
    if (!older)
      continue; // It was trimmed between the two reads.
    if (older->size() == last - first + 1) {
      older->insert(older->end(), found.events.begin(), found.events.end());
      found.events = std::move(*older);
      return loaded;
    }
    if (is_second)
      return error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key),
                               older->size(),
                               first,
                               last));
  }
}

} // namespace

void store_queue::start(std::unique_ptr<load> wanted) {
  // All earlier decisions of the owner have been written or refused by now.
  wanted->owner->stale = false;
  wanted->generation = wanted->owner->generation;
  live_[wanted->owner->name] = wanted->owner;
  auto actor = wanted->owner->actor;
  const bool has_moved = std::exchange(wanted->owner->has_moved, false);
  if (wanted->can_go_back && !has_moved) {
    wanted->goes_back = true;
    return actor->tell(std::move(wanted));
  }
  read([actor = std::move(actor),
        loading = std::make_shared<std::unique_ptr<load>>(std::move(wanted))](
         store& kept) {
    auto done = std::move(*loading);
    const auto& name = done->owner->name;
    if (name.where() == scope::session)
      done->session = guarded([&] {
        return load_with_events(
          kept, {name.app, name.user, name.session}, *done);
      });
    else
      done->scope = guarded([&] { return kept.load_scope(name); });
    actor->tell(std::move(done));
  });
}

template <class T>
void read_then_complete(setup& shared,
                        std::unique_ptr<answered<T>> wanted,
                        std::function<result<T>(store&)> job) {
  shared.store->read([&shared,
                      job = std::move(job),
                      waiting = std::make_shared<std::unique_ptr<answered<T>>>(
                        std::move(wanted))](store& kept) {
    (*waiting)->outcome = guarded([&] { return job(kept); });
    letter_list done;
    done.push_back(std::move(*waiting));
    complete_later(shared, std::move(done));
  });
}

template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<session_page>> wanted,
                   std::function<result<session_page>(store&)> job);
template void read_then_complete(setup& shared,
                                 std::unique_ptr<answered<session>> wanted,
                                 std::function<result<session>(store&)> job);
template void read_then_complete(setup& shared,
                                 std::unique_ptr<answered<bool>> wanted,
                                 std::function<result<bool>(store&)> job);
template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<std::string>> wanted,
                   std::function<result<std::string>(store&)> job);
template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<std::vector<event_ptr>>> wanted,
                   std::function<result<std::vector<event_ptr>>(store&)> job);
template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<std::vector<std::string>>> wanted,
                   std::function<result<std::vector<std::string>>(store&)> job);

template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<std::vector<open_run>>> wanted,
                   std::function<result<std::vector<open_run>>(store&)> job);
template void
read_then_complete(setup& shared,
                   std::unique_ptr<answered<std::optional<open_run>>> wanted,
                   std::function<result<std::optional<open_run>>(store&)> job);

void store_queue::start(std::unique_ptr<read_events> wanted) {
  if (!wanted->owner->actor)
    return; // The session has left memory meanwhile.
  if (wanted->search) {
    auto asks = wanted->owner->actor;
    return search(std::move(asks), std::move(wanted));
  }
  auto actor = wanted->owner->actor;
  read([this,
        actor = std::move(actor),
        reading = std::make_shared<std::unique_ptr<read_events>>(
          std::move(wanted))](store& kept) {
    auto done = std::move(*reading);
    const auto& name = done->owner->name;
    done->events = guarded([&] {
      return kept.load_events(
        {name.app, name.user, name.session}, done->first, done->last);
    });
    // Another process may have removed the session. The letter passes the queue
    // again, after a look for changes, so that the session learns of the
    // removal first.
    if (done->events && done->events->size() != done->last - done->first + 1
        && !std::exchange(done->is_second, true))
      return push(std::move(done));
    actor->tell(std::move(done));
  });
}

// Searches one page. The next page is queued after other reads.
void store_queue::search(ref<inbox_actor> asks,
                         std::unique_ptr<read_events> wanted) {
  constexpr std::uint64_t page_max = 256;
  constexpr std::size_t passed_max = 16'384;
  read([this,
        asks = std::move(asks),
        reading = std::make_shared<std::unique_ptr<read_events>>(
          std::move(wanted))](store& kept) {
    auto done = std::move(*reading);
    const auto& name = done->owner->name;
    const auto first = std::max(
      done->last > page_max ? done->last - page_max + 1 : 1, done->oldest);
    done->first = first;
    auto page = guarded([&] {
      return kept.load_events(
        {name.app, name.user, name.session}, first, done->last);
    });
    const bool is_whole = page && page->size() == done->last - first + 1;
    if (!is_whole) {
      // As above: the session learns of its removal first.
      if (page && !std::exchange(done->is_second, true))
        return push(std::move(done));
      done->events = std::move(page);
      return asks->tell(std::move(done));
    }
    auto& found = *done->search;
    while (done->last >= first && found.needs_more()) {
      auto& taken = (*page)[done->last - first];
      found.take(done->last, *taken);
      if (done->keeps_passed && done->passed.size() < passed_max)
        done->passed.push_back(std::move(taken));
      --done->last;
    }
    if (done->last < done->oldest && found.needs_more())
      found.finish(done->oldest);
    if (found.needs_more() && !done->control->has_left && !is_stopping())
      return search(asks, std::move(done));
    asks->tell(std::move(done));
  });
}

bool store_queue::is_stopping() {
  const std::lock_guard guard(mutex_);
  return readers_stopping_;
}

void store_queue::load_events(const session_key& key,
                              std::uint64_t first,
                              std::uint64_t last,
                              completion<std::vector<event_ptr>> done) {
  read([=, this, done = std::move(done)](store& kept) {
    auto loaded = guarded([&] { return kept.load_events(key, first, last); });
    if (!loaded && loaded.error().code() == errc::gone)
      note_gone(key);
    done(std::move(loaded));
  });
}

void store_queue::start(std::unique_ptr<find_events> wanted) {
  if (!wanted->owner->actor)
    return; // The session has left memory meanwhile.
  auto actor = wanted->owner->actor;
  read([actor = std::move(actor),
        finding = std::make_shared<std::unique_ptr<find_events>>(
          std::move(wanted))](store& kept) {
    auto done = std::move(*finding);
    const auto& name = done->owner->name;
    const session_key key{name.app, name.user, name.session};
    if (!done->ids.empty())
      done->events = guarded([&] { return kept.find_events(key, done->ids); });
    if (done->wants_filter)
      done->filter = make_filter(kept, key);
    actor->tell(std::move(done));
  });
}

} // namespace troupe::actors

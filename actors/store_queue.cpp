#include "troupe/actors/store_queue.hpp"

#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/mechanism.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace troupe::actors {

namespace {

// A store of one's own must not throw; one that does has failed.
template <class Work>
auto guarded(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    return error(errc::store_failed,
                 std::string("the store threw: ") + thrown.what());
  } catch (...) {
    return error(errc::store_failed, "the store threw");
  }
}

// Whether what an owner sent down has been found out of date since.
bool is_behind(const live_owner& owner, std::uint64_t generation) noexcept {
  return (owner.stale || owner.generation != generation)
         && !is_broken(mechanism::generations);
}

// Of all ids of a session; null if they could not be loaded: then each is
// looked up.
std::unique_ptr<id_filter> make_filter(store& kept, const session_key& key) {
  const auto loaded = guarded([&] {
    return kept.load_session(key, {.events_max = 0, .ids_max = SIZE_MAX});
  });
  if (!loaded || !*loaded)
    return nullptr;
  const auto& hashes = (*loaded)->id_hashes;
  auto filter = std::make_unique<id_filter>(hashes.size());
  for (const auto hash : hashes)
    filter->add(hash);
  return filter;
}

// Whether nothing but refusals is in it, and wider owners had a say.
bool is_refusal(const commit& decided) noexcept {
  return decided.refuses && decided.changes.empty()
         && (decided.owners[1] || decided.owners[2]);
}

// The session with its newest events, and those from number `first` on.
result<std::optional<stored_session>>
load_with_events(store& kept, const session_key& key, const load& wanted) {
  // Others may remove the session between the two reads: then the second try
  // finds what there is.
  for (bool is_second = false;; is_second = true) {
    auto loaded
      = guarded([&] { return kept.load_session(key, wanted.options); });
    if (!loaded || !*loaded)
      return loaded;
    auto& found = **loaded;
    const auto last = found.scope.revision - found.events.size();
    if (wanted.events_from > last)
      return loaded;
    auto older = guarded(
      [&] { return kept.load_events(key, wanted.events_from, last); });
    if (!older)
      return older.error();
    if (older->size() == last - wanted.events_from + 1) {
      older->insert(older->end(), found.events.begin(), found.events.end());
      found.events = std::move(*older);
      return loaded;
    }
    if (is_second)
      return error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key),
                               older->size(),
                               wanted.events_from,
                               last));
  }
}

bool is_ready(const letter& sent) noexcept {
  return sent.kind != letter_kind::commit
         || static_cast<const commit&>(sent).filled;
}

} // namespace

store_queue::store_queue(std::shared_ptr<store> kept, setup& shared)
  : store_(std::move(kept)),
    shared_(shared) {
  if (shared_.loop != nullptr)
    return;
  try {
    writer_ = std::thread([this] { run_writer(); });
    for (std::size_t index = 0; index < readers_max; ++index)
      readers_.emplace_back([this] { run_reader(); });
  } catch (...) {
    end_threads(); // Those that run already would end the program.
    throw;
  }
}

store_queue::~store_queue() {
  assert(!writer_.joinable() && "a store's queue is stopped first");
}

// -- the way in
// ----------------------------------------------------------------

void store_queue::push(letter_ptr sent) {
  const std::lock_guard guard(mutex_);
  queue_.push_back(std::move(sent));
  shared_.waits.start();
  wake_writer();
}

void store_queue::push(letter_list sent) {
  const std::lock_guard guard(mutex_);
  while (!sent.empty())
    queue_.push_back(sent.pop_front());
  shared_.waits.start();
  wake_writer();
}

void store_queue::fill(commit& decided) {
  if (is_broken(mechanism::queue_lock))
    decided.filled = true;
  const std::lock_guard guard(mutex_);
  decided.filled = true;
  wake_writer();
}

void store_queue::read(std::function<void(store&)> job) {
  const std::lock_guard guard(mutex_);
  jobs_.push_back(std::move(job));
  wake_reader();
}

result<void> store_queue::stop() {
  if (stopping_)
    return {};
  if (shared_.loop != nullptr)
    shared_.loop->run_until([this] { return jobs_.empty() && reading_ == 0; });
  end_threads();
  if (shared_.loop != nullptr)
    shared_.loop->run_until([this] { return queue_.empty() && !writing_; });
  live_.clear();
  jobs_.clear(); // Nobody waits for a load any more.
  return guarded([this] { return store_->close(); });
}

// -- the threads
// ---------------------------------------------------------------

void store_queue::end_threads() {
  {
    const std::lock_guard guard(mutex_);
    readers_stopping_ = true;
    job_came_.notify_all();
  }
  for (auto& reader : readers_)
    reader.join();
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    came_.notify_one();
  }
  if (writer_.joinable())
    writer_.join();
}

void store_queue::run_writer() {
  group next;
  while (take(next)) {
    handle(next);
    next = {};
    note_settled();
  }
}

bool store_queue::take(group& next) {
  std::unique_lock guard(mutex_);
  came_.wait(guard, [this] {
    return queue_.empty() ? stopping_ : is_ready(queue_.front());
  });
  if (queue_.empty())
    return false;
  std::size_t changes = 0;
  while (!queue_.empty() && is_ready(queue_.front()) && changes < changes_max) {
    auto front = queue_.pop_front();
    switch (front->kind) {
    case letter_kind::commit:
      next.commits.push_back(take_as<commit>(std::move(front)));
      changes += next.commits.back()->changes.size();
      break;
    case letter_kind::confirm:
      next.confirms.push_back(take_as<confirm>(std::move(front)));
      break;
    case letter_kind::load:
      next.loads.push_back(take_as<load>(std::move(front)));
      break;
    case letter_kind::read_events:
      next.reads.push_back(take_as<read_events>(std::move(front)));
      break;
    case letter_kind::find_events:
      next.finds.push_back(take_as<find_events>(std::move(front)));
      break;
    case letter_kind::leave:
      next.leaves.push_back(take_as<leave>(std::move(front)));
      break;
    default:
      assert(false && "a letter that no store receives");
    }
  }
  return true;
}

void store_queue::run_reader() {
  std::unique_lock guard(mutex_);
  while (true) {
    job_came_.wait(guard,
                   [this] { return !jobs_.empty() || readers_stopping_; });
    if (jobs_.empty())
      return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job(*store_);
    guard.lock();
  }
}

// -- on a loop
// -----------------------------------------------------------------

void store_queue::wake_writer() {
  if (shared_.loop == nullptr)
    return came_.notify_one();
  if (writing_ || queue_.empty() || !is_ready(queue_.front()))
    return;
  writing_ = true;
  shared_.loop->post(job_kind::store_write, [this] { write_on_loop(); });
}

void store_queue::wake_reader() {
  if (shared_.loop == nullptr)
    return job_came_.notify_one();
  if (readers_stopping_ || jobs_.empty() || reading_ == readers_max)
    return;
  ++reading_;
  shared_.loop->post(job_kind::store_read, [this] { read_on_loop(); });
}

void store_queue::write_on_loop() {
  group next;
  take(next);
  handle(next);
  next = {};
  note_settled();
  const std::lock_guard guard(mutex_);
  writing_ = false;
  wake_writer();
}

void store_queue::read_on_loop() {
  std::unique_lock guard(mutex_);
  while (!jobs_.empty()) {
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job(*store_);
    guard.lock();
  }
  --reading_;
}

// -- one group
// -----------------------------------------------------------------

// Within a group the order between kinds does not matter: who loads has nothing
// under way, and what is confirmed or read behind a commit may see more than
// it.
void store_queue::handle(group& next) {
  if (!next.commits.empty() || !next.confirms.empty() || !next.reads.empty())
    if (const auto looked = look_elsewhere(next); !looked)
      refuse_unwritten(next, looked.error());
  const bool has_written = write(next.commits);
  count_done(next);
  // What is shown or refused beside what was just written is as new as that:
  // others may have written between the look and the commit.
  bool is_seen = true;
  if (has_written
      && (shows_others(next)
          || std::ranges::any_of(
            next.commits,
            [](const auto& settled) { return is_refusal(*settled); }))
      && !is_broken(mechanism::look_behind))
    is_seen = look_elsewhere(next).has_value();
  refuse_again(next, is_seen);
  // In the order in which they were decided, whatever became of them.
  for (auto& settled : next.commits) {
    settled->view_is_stale
      = settled->seen_user
        && (!is_seen
            || is_behind(*settled->seen_user, settled->view.user_generation)
            || is_behind(*settled->seen_app, settled->view.app_generation));
    const auto from = settled->from->actor;
    as_inbox(from).tell(std::move(settled));
  }
  for (auto& held : next.confirms)
    if (held)
      answer(std::move(held));
  for (auto& wanted : next.loads)
    start(std::move(wanted));
  for (auto& wanted : next.reads)
    if (wanted)
      start(std::move(wanted));
  for (auto& wanted : next.finds)
    start(std::move(wanted));
  for (const auto& left : next.leaves) {
    if (const auto found = live_.find(left->owner->name);
        found != live_.end() && found->second == left->owner)
      live_.erase(found);
    left->owner->actor = nullptr; // They hold each other.
  }
  if (!answered_.empty())
    complete_later(shared_, std::exchange(answered_, letter_list()));
}

// Events of agents were not admitted, so they are not under way either. What is
// decided again still is.
void store_queue::count_done(const group& settled) {
  under_way_ = shared_.appends.held();
  done_ = {};
  for (const auto& each : settled.commits) {
    if (each->outcome == commit::verdict::again)
      continue;
    const auto& letters = each->letters;
    for (const auto* next = letters.empty() ? nullptr : &letters.front();
         next != nullptr;
         next = next->next) {
      if (next->kind != letter_kind::append)
        continue;
      const auto& answered = static_cast<const append&>(*next);
      if (!answered.admitted_by)
        continue;
      ++done_.count;
      done_.bytes += answered.bytes;
    }
  }
}

void store_queue::note_settled() {
  const std::lock_guard guard(mutex_);
  shared_.waits.settle(done_, under_way_, !queue_.empty());
}

// What is refused, or answered without being written, was decided on what may
// be out of date, and no write will show it.
void store_queue::refuse_unwritten(group& next, const error& why) {
  for (const auto& each : next.commits) {
    if (!each->refuses && !each->changes.empty())
      continue;
    for (const auto& owner : each->owners)
      make_stale(owner);
    each->why = why;
    each->outcome = commit::verdict::failed;
    each->refuses = false; // All of it fails, and nothing is decided again.
  }
}

bool store_queue::shows_others(const group& next) {
  return !next.confirms.empty()
         || std::ranges::any_of(next.commits, [](const auto& settled) {
              return settled->seen_user != nullptr;
            });
}

// A refusal on what is out of date is decided again, and so are those of its
// session behind it; unless something of its session is written with it or
// behind it, which must not be overtaken.
void store_queue::refuse_again(group& next, bool is_seen) {
  // Most groups refuse nothing, and every commit passes here.
  if (std::ranges::none_of(next.commits, &commit::refuses))
    return;
  std::unordered_set<const live_owner*> written;
  std::vector<commit*> last; // Refusals behind all that is written.
  for (auto at = next.commits.rbegin(); at != next.commits.rend(); ++at) {
    auto& settled = *at;
    const auto* session = settled->from.get();
    if (settled->outcome == commit::verdict::durable
        && !settled->changes.empty())
      written.insert(session);
    if (settled->refuses && !written.contains(session))
      last.push_back(settled.get());
  }
  for (auto at = last.rbegin(); at != last.rend(); ++at) {
    auto* settled = *at;
    // Its session is stale once an earlier refusal of it is decided again.
    settled->refuses_again
      = is_stale(settled->owners) || (!is_seen && is_refusal(*settled));
    if (settled->refuses_again)
      for (const auto& owner : settled->owners)
        make_stale(owner);
  }
}

bool store_queue::is_stale(const live_owners& owners) const noexcept {
  return std::ranges::any_of(
    owners, [](const auto& owner) { return owner && owner->stale; });
}

void store_queue::make_stale(const std::shared_ptr<live_owner>& owner) {
  if (!owner || owner->stale || !owner->actor)
    return;
  owner->stale = true;
  ++owner->generation;
  as_inbox(owner->actor).tell(std::make_unique<signal>(letter_kind::reload));
}

// Writes all that is not based on what is out of date, and says what became of
// each commit. What is refused makes its other owners stale too: they hold what
// was not written. Whether anything was written.
bool store_queue::write(std::vector<std::unique_ptr<commit>>& commits) {
  using verdict = commit::verdict;
  std::vector<store_change> changes;
  std::vector<commit*> written;
  while (true) {
    changes.clear();
    written.clear();
    // A later one may make stale what an earlier one builds on: then all of
    // that session comes back, in its order.
    for (bool found = !is_broken(mechanism::generations);
         std::exchange(found, false);)
      for (const auto& each : commits) {
        if (each->outcome != verdict::durable || !is_stale(each->owners))
          continue;
        for (const auto& owner : each->owners)
          make_stale(owner);
        each->outcome = verdict::again;
        found = true;
      }
    for (const auto& each : commits) {
      if (each->outcome != verdict::durable || each->changes.empty())
        continue;
      std::ranges::move(each->changes, std::back_inserter(changes));
      written.push_back(each.get());
    }
    if (changes.empty())
      return false;
    auto outcome = guarded([&] { return store_->commit(changes); });
    const bool has_lost = leave_lost_history();
    if (outcome && outcome->moved.empty()) {
      if (shared_.on_commit)
        shared_.on_commit(changes.size());
      return true;
    }
    if (!outcome && is_broken(mechanism::told_failures))
      return true;
    auto next = changes.begin();
    for (auto* each : written)
      for (auto& change : each->changes)
        change = std::move(*next++);
    bool found = has_lost;
    for (const auto* each : written)
      for (const auto& owner : each->owners)
        if (owner
            && (!outcome
                || std::ranges::find(outcome->moved, owner->name)
                     != outcome->moved.end())) {
          make_stale(owner);
          found = true;
        }
    if (outcome && !found)
      outcome = error(errc::internal,
                      "the store reports as moved what nobody changes");
    if (outcome)
      continue;
    for (auto* each : written) {
      for (const auto& owner : each->owners)
        make_stale(owner);
      each->why
        = error(outcome.error().code() == errc::corrupt ? errc::corrupt
                                                        : errc::store_failed,
                outcome.error().message());
      each->outcome = verdict::failed;
    }
  }
}

// What others have written makes those who hold it stale, before anything that
// is based on it is written or answered. The store compares revisions besides;
// but what was removed and made again may have come to the same one. Fails if
// the store does not tell: then nothing is confirmed.
result<void> store_queue::look_elsewhere(group& next) {
  if (is_broken(mechanism::look_elsewhere))
    return {};
  const auto moved = guarded([this] { return store_->changed_elsewhere(); });
  leave_lost_history();
  if (moved) {
    for (const auto& each : *moved)
      if (const auto found = live_.find(each.owner); found != live_.end())
        make_stale(found->second);
    return {};
  }
  for (auto& held : next.confirms) {
    if (!held)
      continue;
    held->held->refuse(moved.error());
    answered_.push_back(std::move(held->held));
    held.reset();
  }
  for (auto& wanted : next.reads) {
    if (!wanted || !wanted->is_second || !wanted->owner->actor)
      continue;
    const auto actor = wanted->owner->actor;
    wanted->events = moved.error();
    as_inbox(actor).tell(std::move(wanted));
  }
  return moved.error();
}

// Makes every owner load again after the store has lost commits. Unanswered
// work is then decided on the loaded state. Whether it has lost any.
bool store_queue::leave_lost_history() {
  const auto lost = store_->take_lost_history();
  if (!lost || is_broken(mechanism::lost_history))
    return false;
  for (const auto& [name, owner] : live_)
    make_stale(owner);
  if (shared_.on_warning)
    shared_.on_warning(lost->warning);
  return true;
}

void store_queue::answer(std::unique_ptr<confirm> held) {
  for (std::size_t index = 0; index < held->owners.size(); ++index)
    if (held->owners[index]
        && is_behind(*held->owners[index], held->generations[index]))
      return as_inbox(held->app).tell(std::move(held->held));
  answered_.push_back(std::move(held->held));
}

// -- reading
// -------------------------------------------------------------------

void store_queue::start(std::unique_ptr<load> wanted) {
  // What it decided before is written or refused by now.
  wanted->owner->stale = false;
  wanted->generation = wanted->owner->generation;
  live_[wanted->owner->name] = wanted->owner;
  auto actor = wanted->owner->actor;
  read([actor = std::move(actor),
        loading = std::make_shared<std::unique_ptr<load>>(std::move(wanted))](
         store& kept) {
    auto done = std::move(*loading);
    const auto& name = done->owner->name;
    if (name.where() == scope::session)
      done->session
        = load_with_events(kept, {name.app, name.user, name.session}, *done);
    else
      done->scope = guarded([&] { return kept.load_scope(name); });
    as_inbox(actor).tell(std::move(done));
  });
}

void read_then_complete(setup& shared,
                        std::unique_ptr<answered<session_page>> wanted,
                        std::function<result<session_page>(store&)> job) {
  shared.store->read(
    [&shared,
     job = std::move(job),
     waiting = std::make_shared<std::unique_ptr<answered<session_page>>>(
       std::move(wanted))](store& kept) {
      (*waiting)->outcome = guarded([&] { return job(kept); });
      letter_list done;
      done.push_back(std::move(*waiting));
      complete_later(shared, std::move(done));
    });
}

void store_queue::start(std::unique_ptr<read_events> wanted) {
  if (!wanted->owner->actor)
    return; // It has left meanwhile.
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
    // Others may have removed the session since anybody looked; it hears of
    // that first.
    if (done->events && done->events->size() != done->last - done->first + 1
        && !std::exchange(done->is_second, true))
      return push(std::move(done));
    as_inbox(actor).tell(std::move(done));
  });
}

// One page; the next one waits behind what others want to read meanwhile.
void store_queue::search(caf::strong_actor_ptr asks,
                         std::unique_ptr<read_events> wanted) {
  constexpr std::uint64_t page_max = 256;
  read([this,
        asks = std::move(asks),
        reading = std::make_shared<std::unique_ptr<read_events>>(
          std::move(wanted))](store& kept) {
    auto done = std::move(*reading);
    const auto& name = done->owner->name;
    const auto first = done->last > page_max ? done->last - page_max + 1 : 1;
    done->first = first;
    auto page = guarded([&] {
      return kept.load_events(
        {name.app, name.user, name.session}, first, done->last);
    });
    const bool is_whole = page && page->size() == done->last - first + 1;
    if (!is_whole) {
      // As above: the session hears of its removal first.
      if (page && !std::exchange(done->is_second, true))
        return push(std::move(done));
      done->events = std::move(page);
      return as_inbox(asks).tell(std::move(done));
    }
    auto& found = *done->search;
    while (done->last >= first && found.needs_more()) {
      found.take(done->last, *(*page)[done->last - first]);
      --done->last;
    }
    if (found.needs_more() && !done->control->has_left && !is_stopping())
      return search(asks, std::move(done));
    as_inbox(asks).tell(std::move(done));
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
  read([=, done = std::move(done)](store& kept) {
    done(guarded([&] { return kept.load_events(key, first, last); }));
  });
}

void store_queue::start(std::unique_ptr<find_events> wanted) {
  if (!wanted->owner->actor)
    return; // It has left meanwhile.
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
    as_inbox(actor).tell(std::move(done));
  });
}

} // namespace troupe::actors

#include "troupe/stores/turns/write_turns.hpp"

#include "troupe/stores/shared/owner_names.hpp"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// Limit of each generation of names. A process that writes to more of them in
// the time of `turn_limits::memory` contends for few of them.
constexpr std::size_t names_max = 4'096;

// Limit of owners that a process tells, or looks for, at a time.
constexpr std::size_t wanted_max = 8;

// Time until the timer looks again for a call that is under way.
constexpr std::chrono::milliseconds timer_period{1};

} // namespace

write_turns::write_turns(std::unique_ptr<turn_line> line,
                         turn_limits limits,
                         std::function<void()> meanwhile)
  : line_(std::move(line)),
    limits_(limits),
    meanwhile_(std::move(meanwhile)),
    now_(&std::chrono::steady_clock::now),
    has_timer_(true) {}

write_turns::write_turns(std::unique_ptr<turn_line> line,
                         clock now,
                         turn_limits limits)
  : line_(std::move(line)),
    limits_(limits),
    now_(std::move(now)),
    has_timer_(false) {}

write_turns::~write_turns() {
  {
    const std::lock_guard guard(mutex_);
    is_stopping_ = true;
    changed_.notify_one();
  }
  if (timer_.joinable())
    timer_.join();
  if (has_turn_)
    end_turn();
}

// -- calls of the store -------------------------------------------------------

void write_turns::begin_look() {
  begin(!std::exchange(has_ended_, false));
}

void write_turns::begin_commit(std::span<const store_change> changes) {
  has_ended_ = false;
  look_for_others(changes);
  begin(true);
}

void write_turns::look_for_others(std::span<const store_change> changes) {
  // In a turn, the own wishes would be found.
  const auto now = now_();
  if (!line_ || now < contends_until_ || now - looked_ < limits_.look
      || has_turn())
    return;
  looked_ = now;
  std::vector<owner_name> written;
  const auto add = [&written](const owner_name& owner) {
    if (written.size() < wanted_max
        && std::ranges::find(written, owner) == written.end())
      written.push_back(owner);
  };
  for (const auto& each : changes) {
    if (each.user_revision)
      add(user_of(each.owner));
    if (each.app_revision)
      add(app_of(each.owner));
  }
  if (written.empty() || !line_->is_wanted(written))
    return;
  met_.clear(); // Those of an earlier contention.
  contends_until_ = now + limits_.memory;
}

void write_turns::begin(bool may_wait) {
  {
    const std::lock_guard guard(mutex_);
    if (has_turn_ && now_() >= due_)
      end_turn();
    is_calling_ = has_turn_;
  }
  if (is_calling_ || !may_wait || now_() >= contends_until_ || !line_)
    return;
  // Only this thread takes a turn. Without one, the call is made all the same;
  // the next change of others to the same owners tries again.
  if (!start_timer() || !line_->enter(met_, limits_.patience, meanwhile_)) {
    contends_until_ = {};
    return;
  }
  const std::lock_guard guard(mutex_);
  has_turn_ = true;
  is_calling_ = true;
  began_ = now_();
  is_loading_ = false;
  written_.reset();
  keep(limits_.idle);
  changed_.notify_one();
}

// A turn without a timer could last as long as the process. Returns false if
// the system has no thread left.
bool write_turns::start_timer() {
  if (!has_timer_ || timer_.joinable())
    return true;
  try {
    timer_ = std::thread([this] { run(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void write_turns::end_look(std::span<const moved_owner> moved) {
  const auto now = now_();
  if (!moved.empty())
    others_until_ = now + limits_.memory;
  forget_old_names();
  bool meets = false;
  for (const auto& each : moved)
    if (is_own(each.owner)) {
      note_met(each.owner);
      meets = true;
    }
  const std::lock_guard guard(mutex_);
  is_calling_ = false;
  if (has_turn_ && meets)
    keep_for_load();
  else if (has_turn_)
    keep(limits_.idle);
}

void write_turns::end_commit(std::span<const store_change> changes,
                             const commit_outcome& outcome) {
  const auto now = now_();
  if (!outcome.moved.empty())
    others_until_ = now + limits_.memory;
  if (now < others_until_)
    note_own(changes);
  for (const auto& owner : outcome.moved)
    if (is_own(owner))
      note_met(owner);
  const std::lock_guard guard(mutex_);
  is_calling_ = false;
  if (!has_turn_)
    return;
  if (!outcome.moved.empty() || !outcome.kept_out.empty())
    return keep_for_load();
  if (!written_) {
    written_ = now;
    load_time_ = std::max(limits_.retry, load_time_ * 3 / 4);
  }
  if (now - *written_ < limits_.span)
    return keep(limits_.idle);
  has_ended_ = true;
  end_turn();
}

void write_turns::end_failed() {
  contends_until_ = {};
  const std::lock_guard guard(mutex_);
  is_calling_ = false;
  if (has_turn_)
    end_turn();
}

// -- the turn -----------------------------------------------------------------

// Requires `mutex_`, as the next two functions do. While owners load, no call
// shortens the time.
void write_turns::keep(std::chrono::milliseconds time) {
  auto due = now_() + time;
  if (is_loading_ && !written_)
    due = std::max(due, due_);
  due_ = std::min(due, began_ + std::max(limits_.longest, 2 * load_time_));
}

void write_turns::keep_for_load() {
  keep(load_time_);
  is_loading_ = true;
}

void write_turns::end_turn() {
  if (is_loading_ && !written_ && now_() >= due_)
    load_time_
      = std::min(2 * load_time_, std::max(limits_.retry, limits_.patience / 2));
  has_turn_ = false;
  line_->leave();
}

void write_turns::expire() {
  const std::lock_guard guard(mutex_);
  if (has_turn_ && !is_calling_ && now_() >= due_)
    end_turn();
}

bool write_turns::has_turn() {
  const std::lock_guard guard(mutex_);
  return has_turn_;
}

// Calls that put `due_` off do not wake this thread: it looks when the former
// time has come.
void write_turns::run() {
  std::unique_lock guard(mutex_);
  while (!is_stopping_) {
    if (!has_turn_)
      changed_.wait(guard);
    else if (is_calling_)
      changed_.wait_for(guard, timer_period);
    else if (now_() < due_)
      changed_.wait_until(guard, due_);
    else
      end_turn();
  }
}

// -- owners -------------------------------------------------------------------

// Most owners that others change are sessions, which are never noted.
bool write_turns::is_own(const owner_name& owner) const {
  return owner.session.empty()
         && (own_.contains(owner) || own_before_.contains(owner));
}

void write_turns::note_met(const owner_name& owner) {
  const auto now = now_();
  if (now >= contends_until_)
    met_.clear();
  contends_until_ = now + limits_.memory;
  if (met_.size() < wanted_max && std::ranges::find(met_, owner) == met_.end())
    met_.push_back(owner);
}

void write_turns::forget_old_names() {
  const auto now = now_();
  if (now - renewed_ < limits_.memory)
    return;
  own_before_ = std::exchange(own_, {});
  renewed_ = now;
}

// Most changes of a commit touch the same user and app.
void write_turns::note_own(std::span<const store_change> changes) {
  forget_old_names();
  const store_change* last = nullptr;
  for (const auto& each : changes) {
    if (!each.user_revision && !each.app_revision)
      continue;
    const bool is_known
      = last != nullptr && last->owner.app == each.owner.app
        && last->owner.user == each.owner.user
        && last->user_revision.has_value() == each.user_revision.has_value()
        && last->app_revision.has_value() == each.app_revision.has_value();
    last = &each;
    if (is_known || own_.size() >= names_max)
      continue;
    if (each.user_revision)
      own_.insert(user_of(each.owner));
    if (each.app_revision)
      own_.insert(app_of(each.owner));
  }
}

} // namespace troupe

#include "troupe/stores/shared/log_tail.hpp"

#include "troupe/stores/shared/stored_event.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace troupe {

// Invariant: a reader finds every row here that the index has known and that
// its transaction sees as not folded. A reader takes its ticket before its
// transaction begins, `mark_folded` gives each drop a later ticket than all
// readers so far, and `trim` keeps rows while an older ticket exists. Without
// tickets a row could be dropped between the transaction and the look-up.

log_tail::hold::hold(log_tail& tail) : tail_(tail) {
  const std::lock_guard guard(tail_.mutex_);
  ticket_ = tail_.tickets_.insert(tail_.next_ticket_);
}

log_tail::hold::~hold() {
  const std::lock_guard guard(tail_.mutex_);
  tail_.tickets_.erase(ticket_);
}

void log_tail::reset(std::int64_t folded) {
  const std::lock_guard guard(mutex_);
  rows_.clear();
  chains_.clear();
  drops_.clear();
  first_ = folded + 1;
  folded_ = folded;
}

void log_tail::add(std::span<log_row> added) {
  const std::lock_guard guard(mutex_);
  for (auto& row : added)
    add_row(std::move(row));
}

void log_tail::add_row(log_row added) {
  const auto number = added.number;
  assert(number >= first_ + static_cast<std::int64_t>(rows_.size()));
  // Rows that another process has deleted leave empty places, so that the index
  // of a row stays its distance from the first.
  if (rows_.empty())
    first_ = number;
  while (first_ + static_cast<std::int64_t>(rows_.size()) < number)
    rows_.emplace_back();
  auto& inserted = rows_.emplace_back();
  inserted.row = std::move(added);
  const auto& row = inserted.row;
  for (std::size_t index = 0; index < durable_scopes; ++index) {
    if (row.scopes[index] == 0)
      continue;
    auto [found, is_new] = chains_.try_emplace(row.scopes[index]);
    auto& known = found->second;
    if (is_new) {
      known.first = number;
      known.where = static_cast<scope>(index);
    } else {
      at(known.last).next[index] = number;
    }
    known.last = number;
  }
}

void log_tail::reach(std::int64_t number) {
  const std::lock_guard guard(mutex_);
  if (rows_.empty())
    first_ = std::max(first_, number + 1);
  while (first_ + std::ssize(rows_) <= number)
    rows_.emplace_back();
}

std::int64_t log_tail::last() const {
  const std::lock_guard guard(mutex_);
  return first_ + static_cast<std::int64_t>(rows_.size()) - 1;
}

std::optional<std::int64_t> log_tail::newest(std::int64_t id) const {
  const std::lock_guard guard(mutex_);
  const auto found = chains_.find(id);
  if (found == chains_.end())
    return std::nullopt;
  const auto index = static_cast<std::size_t>(found->second.where);
  return at(found->second.last).row.revisions[index];
}

std::vector<log_tail::scope_id> log_tail::scopes(std::int64_t until) const {
  const std::lock_guard guard(mutex_);
  std::vector<scope_id> found;
  found.reserve(chains_.size());
  for (const auto& [id, known] : chains_)
    if (known.first <= until)
      found.push_back({id, known.where});
  std::ranges::sort(found, {}, &scope_id::id);
  return found;
}

void log_tail::collect(std::int64_t id,
                       std::int64_t above,
                       std::int64_t behind,
                       std::int64_t until,
                       std::size_t limit,
                       std::vector<pending_change>& found) {
  const std::lock_guard guard(mutex_);
  const auto known = chains_.find(id);
  if (known == chains_.end())
    return;
  const auto index = static_cast<std::size_t>(known->second.where);
  auto number = known->second.first;
  if (behind >= number && behind < first_ + std::ssize(rows_)
      && at(behind).row.scopes[index] == id)
    number = at(behind).next[index];
  for (; number != 0 && number <= until && found.size() < limit;
       number = at(number).next[index]) {
    auto& row = at(number).row;
    if (number <= behind || row.revisions[index] <= above)
      continue;
    if (!row.event && !row.delta.empty()) {
      auto made = decode_delta(row.delta);
      if (!made)
        throw made.error();
      event bare;
      bare.actions.state_delta = std::move(*made);
      row.event = std::make_shared<const event>(std::move(bare));
      row.delta = {};
    }
    found.push_back({number,
                     row.revisions[index],
                     row.microseconds,
                     row.id_hash,
                     row.scopes[0] != 0,
                     row.event});
  }
}

std::vector<log_tail::session_rows>
log_tail::sessions(std::int64_t until) const {
  const std::lock_guard guard(mutex_);
  std::vector<session_rows> found;
  constexpr auto session = static_cast<std::size_t>(scope::session);
  for (const auto& [id, known] : chains_) {
    if (known.where != scope::session || known.first > until)
      continue;
    auto newest = std::numeric_limits<std::int64_t>::min();
    for (auto number = known.first; number != 0 && number <= until;
         number = at(number).next[session])
      newest = std::max(newest, at(number).row.microseconds);
    found.push_back({id, known.first, newest});
  }
  return found;
}

void log_tail::mark_folded(std::int64_t until) {
  const std::lock_guard guard(mutex_);
  if (until <= folded_)
    return;
  folded_ = until;
  // A reader that starts after this line finds these rows folded.
  drops_.push_back({until, ++next_ticket_});
}

void log_tail::trim(std::size_t limit) {
  const std::lock_guard guard(mutex_);
  while (!drops_.empty()) {
    const auto& due = drops_.front();
    if (!tickets_.empty() && *tickets_.begin() < due.ticket)
      return;
    while (!rows_.empty() && first_ <= due.until) {
      if (limit-- == 0)
        return;
      pop_front();
    }
    if (rows_.empty())
      first_ = std::max(first_, due.until + 1);
    drops_.pop_front();
  }
}

void log_tail::pop_front() {
  const auto& oldest = rows_.front();
  for (std::size_t index = 0; index < durable_scopes; ++index) {
    if (oldest.row.scopes[index] == 0)
      continue;
    const auto found = chains_.find(oldest.row.scopes[index]);
    if (oldest.next[index] == 0)
      chains_.erase(found);
    else
      found->second.first = oldest.next[index];
  }
  rows_.pop_front();
  ++first_;
}

} // namespace troupe

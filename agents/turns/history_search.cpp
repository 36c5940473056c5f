#include "troupe/agents/turns/history_search.hpp"

#include "troupe/agents/summary.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/core/rewind.hpp"

#include <algorithm>

namespace troupe {

history_search::history_search(const content& message,
                               const history_extent& reads,
                               const std::string& recovered)
  : wants_summary_(reads.from_summary),
    wants_user_turn_(reads.from_turn) {
  add_calls_of(message);
  if (!recovered.empty())
    runs_.insert(recovered);
}

bool history_search::needs_more() const noexcept {
  return wants_summary_ || wants_user_turn_ || end_time_ || start_time_
         || !calls_.empty() || !pauses_.empty() || !runs_.empty();
}

void history_search::take(std::uint64_t number, const event& said) {
  if (!is_taken_back(number, said)) {
    look_for_summary(number, said);
    if (wants_user_turn_ && starts_user_turn(said)) {
      turn_ = number;
      wants_user_turn_ = false;
    }
    look_for_calls(number, said);
    look_for_messages(number, said);
  }
  if (number == 1)
    finish(1);
}

void history_search::finish(std::uint64_t oldest) {
  if (!runs_.empty())
    read_from(oldest);
  wants_summary_ = false;
  wants_user_turn_ = false;
  end_time_.reset();
  start_time_.reset();
  calls_.clear();
  pauses_.clear();
  runs_.clear();
}

// A rewind and the events that it takes back do not count. Rewinds among them
// have no effect.
bool history_search::is_taken_back(std::uint64_t number, const event& said) {
  if (number >= behind_)
    return true;
  const auto count = taken_back_by(said);
  if (!count)
    return false;
  behind_ = number - std::min(*count, number - 1);
  return true;
}

void history_search::look_for_summary(std::uint64_t number, const event& said) {
  if (end_time_ && said.timestamp <= *end_time_) {
    since_summary_ = number + 1;
    end_time_.reset();
  }
  if (start_time_ && !end_time_ && said.timestamp < *start_time_) {
    since_summary_ = 1;
    start_time_.reset();
  }
  if (!wants_summary_)
    return;
  const auto found = summary_of(said);
  if (!found)
    return;
  wants_summary_ = false;
  if (found->end_revision)
    since_summary_ = std::min(*found->end_revision, number - 1) + 1;
  else if (found->end_time)
    end_time_ = found->end_time;
  else
    since_summary_ = number;
  if (!found->start_revision)
    start_time_ = found->start_time;
  else if (*found->start_revision > 1) {
    since_summary_ = 1;
    end_time_.reset();
  }
}

void history_search::look_for_calls(std::uint64_t number, const event& said) {
  if (calls_.empty())
    return;
  // A paused run continues with all calls that it waited for, so the search
  // includes all of them.
  const auto waits = waits_in(said);
  if (std::ranges::any_of(
        waits, [this](const auto& id) { return calls_.contains(id); }))
    calls_.insert(waits.begin(), waits.end());
  for (const auto& element : said.content.parts)
    if (const auto* call = element.call();
        call != nullptr && calls_.erase(call->id) > 0) {
      runs_.insert(said.invocation_id);
      read_from(number);
    }
}

void history_search::look_for_messages(std::uint64_t number,
                                       const event& said) {
  if (const auto paused = pauses_.find(said.id); paused != pauses_.end()) {
    pauses_.erase(paused);
    runs_.insert(said.invocation_id);
  }
  if (said.author != "user")
    return;
  auto run = runs_.find(said.invocation_id);
  // Calls without an invocation id belong to the run of the newest message
  // before them.
  if (run == runs_.end() && !only_answers(said.content))
    run = runs_.find(std::string_view());
  if (run == runs_.end())
    return;
  runs_.erase(run);
  read_from(number);
  if (auto claim = claim_of(said))
    pauses_.insert(std::move(claim->pause_id));
  else
    add_calls_of(said.content);
}

void history_search::add_calls_of(const content& message) {
  for (const auto& element : message.parts)
    if (const auto* answer = element.response())
      calls_.insert(answer->id);
}

void history_search::read_from(std::uint64_t number) {
  answered_ = std::min(answered_.value_or(number), number);
}

} // namespace troupe

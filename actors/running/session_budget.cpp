#include "troupe/actors/running/session_budget.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/contexts/invocation_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

// Number of the newest event up to `number` that no rewind in memory has taken
// back; 0 if there is none.
std::uint64_t newest_shown(const event_slice& newest, std::uint64_t number) {
  const auto found = newest.count_back(number + 1, 1);
  return found <= number ? found : 0;
}

// The last count of this runtime, if it is one of this session and its live
// events.
task<token_count> find_count(run_shared& run, invocation_context& context) {
  auto known = run.shared->tokens.find(run.facts.session);
  const auto seen = run.view->read();
  if (!known.fits(seen.events, seen.revision())
      || known.trimmed_to != seen.trimmed_to)
    co_return token_count();
  if (known.number == 0 || known.number > seen.before)
    co_return known;
  const auto counted = co_await context.events_before(known.number + 1, 1);
  const bool is_same = counted.size() == 1 && counted.front()->id == known.id;
  co_return is_same ? std::move(known) : token_count();
}

// Adds the events up to `last`, page by page from the newest one back. Each
// page ends with a live event, or with one that only rewinds in the page take
// back: a rewind that was itself taken back would hide live events of its page.
// A rewind that goes back to before the end of `known` makes that count
// useless, so all older events are then counted again.
task<token_count> count_up_to(run_shared& run,
                              invocation_context& context,
                              std::uint64_t last,
                              token_count known) {
  constexpr std::uint64_t page_size = 256;
  const auto newest = run.view->read().events;
  token_count counted{last, {}, 0};
  for (last = newest_shown(newest, last); last > known.number;) {
    const auto count = std::min(page_size, last - known.number);
    const auto page = co_await context.events_before(last + 1, count);
    for (const auto& said : page)
      counted.tokens += tokens_of(*said);
    last = newest_shown(newest, page.first_number() - 1);
    if (last < known.number)
      known = token_count();
  }
  counted.tokens += known.tokens;
  co_return counted;
}

} // namespace

void session_budget::start(token_count counted) {
  const std::lock_guard guard(mutex_);
  counted_ = std::move(counted);
}

std::uint64_t session_budget::used(const step_view& seen) {
  const std::lock_guard guard(mutex_);
  counted_.add(seen.events);
  return counted_.tokens;
}

token_count session_budget::counted() const {
  const std::lock_guard guard(mutex_);
  return counted_;
}

task<> start_budget(run_shared& run, invocation_context& context) {
  if (!run.options.session_tokens_max)
    co_return;
  auto counted = co_await find_count(run, context);
  const auto seen = run.view->read();
  if (counted.number < seen.before)
    counted
      = co_await count_up_to(run, context, seen.before, std::move(counted));
  counted.trimmed_to = seen.trimmed_to;
  run.budget.start(std::move(counted));
}

std::optional<error> check_budget(run_shared& run) {
  const auto most = run.options.session_tokens_max;
  if (!most)
    return std::nullopt;
  const auto used = run.budget.used(run.view->read());
  run.shared->tokens.keep(run.facts.session, run.budget.counted());
  if (used < *most)
    return std::nullopt;
  return error(errc::limit_exceeded,
               fmt::format("session {} has used {} tokens, and its budget is "
                           "{}; raise session_tokens_max if it needs more",
                           to_string(run.facts.session),
                           used,
                           *most));
}

} // namespace troupe::actors

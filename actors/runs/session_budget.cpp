#include "troupe/actors/runs/session_budget.hpp"

#include "troupe/actors/runs/shared.hpp"
#include "troupe/contexts/invocation_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

// The last count of this runtime, if it is one of this session and its live
// events.
task<token_count> find_count(run_shared& run, invocation_context& context) {
  auto known = run.shared->tokens.find(run.facts.session);
  const auto seen = run.view->read();
  if (!known.fits(seen.events, seen.revision()))
    co_return token_count();
  if (known.number == 0 || known.number > seen.before)
    co_return known;
  const auto counted = co_await context.events_before(known.number + 1, 1);
  const bool is_same = counted.size() == 1 && counted.front()->id == known.id;
  co_return is_same ? std::move(known) : token_count();
}

// Tokens of the live events between `first` and `last`, page by page.
task<std::uint64_t> count_older(run_shared& run,
                                invocation_context& context,
                                std::uint64_t first,
                                std::uint64_t last) {
  constexpr std::uint64_t page_size = 256;
  const auto newest = run.view->read().events;
  std::uint64_t tokens = 0;
  while (last >= first) {
    const auto count = std::min(page_size, last - first + 1);
    const auto page = co_await context.events_before(last + 1, count);
    for (std::size_t index = 0; index < page.size(); ++index)
      if (!newest.hides(page.number(index)))
        tokens += tokens_of(*page[index]);
    last -= count;
  }
  co_return tokens;
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
  const auto before = run.view->read().before;
  if (counted.number < before) {
    counted.tokens
      += co_await count_older(run, context, counted.number + 1, before);
    counted.number = before;
  }
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

#include "troupe/agents/turns/session_tokens.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t counts_max = 10'000;

} // namespace

std::uint64_t tokens_of(const event& said) {
  constexpr double most = 1e15;
  const auto& fields = said.extra.data();
  if (!fields.is_object() || !fields.contains("usageMetadata"))
    return 0;
  const auto& usage = fields["usageMetadata"];
  if (!usage.is_object() || !usage.contains("totalTokenCount")
      || !usage["totalTokenCount"].is_number())
    return 0;
  return static_cast<std::uint64_t>(
    std::clamp(usage["totalTokenCount"].get<double>(), 0.0, most));
}

void token_count::add(const event_slice& live) {
  const auto fresh = live.from(number + 1);
  for (const auto& said : fresh)
    tokens += tokens_of(*said);
  if (fresh.empty())
    return;
  number = fresh.number(fresh.size() - 1);
  id = fresh.back()->id;
}

bool token_count::fits(const event_slice& live, std::uint64_t revision) const {
  if (number > revision || live.newest_rewind() > number)
    return false;
  const auto counted = live.from(number).before(number + 1);
  return number == 0 || counted.empty() || counted.front()->id == id;
}

token_count token_counts::find(const session_key& session) const {
  const std::lock_guard guard(mutex_);
  const auto found = counts_.find(session);
  return found == counts_.end() ? token_count() : found->second;
}

// Forgets another session if there are too many: its next run counts again.
void token_counts::keep(const session_key& session, token_count count) {
  const std::lock_guard guard(mutex_);
  if (counts_.size() >= counts_max && !counts_.contains(session))
    counts_.erase(counts_.begin());
  counts_[session] = std::move(count);
}

} // namespace troupe

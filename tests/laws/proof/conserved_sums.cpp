#include "conserved_sums.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace troupe::testing {

namespace {

std::int64_t sum_of(const balance_read& seen) {
  std::int64_t sum = 0;
  for (const auto& [account, balance] : seen.accounts)
    sum += balance;
  return sum;
}

std::string text(const balance_read& seen) {
  std::string words = fmt::format(
    "process {} [{}, {}] reads", seen.process, seen.asked, seen.answered);
  for (const auto& [account, balance] : seen.accounts)
    words += fmt::format(" {}={}", account, balance);
  return words;
}

std::string text(const transfer& moved) {
  return fmt::format("{} from {} to {} by process {} [{}, {}]",
                     moved.amount,
                     moved.from,
                     moved.to,
                     moved.process,
                     moved.asked,
                     moved.answered);
}

} // namespace

sums_verdict check_sums(std::int64_t total,
                        const std::vector<transfer>& transfers,
                        const std::vector<balance_read>& reads) {
  sums_verdict verdict;
  for (const auto& seen : reads) {
    ++verdict.reads;
    const auto sum = sum_of(seen);
    if (sum == total || ++verdict.wrong > 1)
      continue;
    verdict.finding
      = fmt::format("{}: together {}, not {}", text(seen), sum, total);
    for (const auto& moved : transfers)
      if (std::abs(sum - total) == moved.amount && moved.asked < seen.answered
          && moved.answered > seen.asked)
        verdict.finding += "\n  possibly half of " + text(moved);
  }
  return verdict;
}

} // namespace troupe::testing

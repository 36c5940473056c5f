#include "troupe/contexts/pending.hpp"

namespace troupe::detail {

namespace {

// A read of a session takes less than a microsecond, so a thread is held up
// for some tens of microseconds at most.
constexpr std::size_t answers_in_a_row_max = 32;

thread_local std::size_t answers_in_a_row = 0;

} // namespace

bool may_answer_now() noexcept {
  return answers_in_a_row < answers_in_a_row_max;
}

void note_await(bool answered_now) noexcept {
  answers_in_a_row = answered_now ? answers_in_a_row + 1 : 0;
}

} // namespace troupe::detail

#include "troupe/actors/sessions/list_gather.hpp"

#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::actors {

namespace {

auto rank(timestamp time, const std::string& user, const std::string& id) {
  // Newest first, then by name: a total order.
  return std::tuple(~time.time_since_epoch().count(),
                    std::string_view(user),
                    std::string_view(id));
}

auto rank(const session& row) {
  return rank(row.last_update_time(), row.key().user, row.key().id);
}

// A job that sorts the page and completes the call, off the owners.
struct finished : call {
  explicit finished(std::shared_ptr<list_gather> from)
    : call(letter_kind::finished),
      gather(std::move(from)) {}

  void complete() override { gather->finish(); }

  void refuse(error) override {} // Never called.

  void fail(const error&) override {}

  std::shared_ptr<list_gather> gather;
};

} // namespace

std::string make_cursor(const session& last) {
  return make_cursor(
    page_start{last.last_update_time(), last.key().user, last.key().id});
}

std::string make_cursor(const page_start& last) {
  return to_text({last.time.time_since_epoch().count(), last.user, last.id});
}

result<page_start> read_cursor(const std::string& cursor) {
  const auto parsed = parse_json(cursor);
  if (!parsed || !parsed->is_array() || parsed->size() != 3
      || !(*parsed)[0].is_number_integer() || !(*parsed)[1].is_string()
      || !(*parsed)[2].is_string())
    return error(errc::invalid_argument, "the cursor was not returned by list");
  return page_start{
    timestamp(std::chrono::microseconds((*parsed)[0].get<std::int64_t>())),
    (*parsed)[1].get<std::string>(),
    (*parsed)[2].get<std::string>()};
}

list_gather::list_gather(std::size_t limit,
                         std::optional<page_start> from,
                         completion<session_page> done,
                         setup& shared)
  : limit_(limit),
    from_(std::move(from)),
    done_(std::move(done)),
    shared_(shared) {}

void list_gather::end_part() noexcept {
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  with_memory_or_end([this] {
    if (is_of_blocked_thread_)
      return finish();
    letter_list last;
    last.push_back(std::make_unique<finished>(shared_from_this()));
    complete_later(shared_, std::move(last));
  });
}

void list_gather::choose(std::vector<page_start> places) {
  const bool more = places.size() > limit_;
  if (more) {
    places.pop_back();
    last_ = places.back();
  }
  for (auto& each : places)
    chosen_[std::move(each.user)].push_back(std::move(each.id));
}

// A session that was updated since it was chosen may belong to an earlier page
// by now.
void list_gather::add(session row) {
  if (from_ && rank(row) <= rank(from_->time, from_->user, from_->id))
    return;
  const std::lock_guard guard(mutex_);
  rows_.push_back(std::move(row));
}

void list_gather::finish() {
  session_page page;
  std::ranges::sort(rows_, [](const session& left, const session& right) {
    return rank(left) < rank(right);
  });
  // Updates only move sessions towards the front of the list. So the next page
  // starts after the last position as it was chosen.
  if (last_)
    page.next_cursor = make_cursor(*last_);
  page.sessions = std::move(rows_);
  done_(std::move(page));
  shared_.calls.leave(0);
}

} // namespace troupe::actors

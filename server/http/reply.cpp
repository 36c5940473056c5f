#include "troupe/server/http/reply.hpp"

#include <atomic>

namespace troupe::serving {

struct reply::parts {
  parts(std::shared_ptr<client> made_for, header_list added)
    : to(std::move(made_for)),
      headers(std::move(added)) {}

  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  ~parts() {
    if (!is_answered.exchange(true))
      to->send(dressed(text_response(500, "Internal Server Error")
                         .with("troupe-error", "internal")));
  }

  response dressed(response answer) {
    return std::move(answer).with(std::move(headers));
  }

  const std::shared_ptr<client> to;
  header_list headers;
  std::atomic<bool> is_answered{false};
};

reply::reply(std::shared_ptr<client> to, header_list headers)
  : parts_(std::make_shared<parts>(std::move(to), std::move(headers))) {}

void reply::send(response answer) const {
  if (!parts_->is_answered.exchange(true))
    parts_->to->send(parts_->dressed(std::move(answer)));
}

std::shared_ptr<client> reply::stream(response head) const {
  if (parts_->is_answered.exchange(true))
    return nullptr;
  parts_->to->begin(parts_->dressed(std::move(head)));
  return parts_->to;
}

void reply::watch(departure_watch gone) const {
  parts_->to->watch(std::move(gone));
}

} // namespace troupe::serving

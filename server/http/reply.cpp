#include "troupe/server/http/reply.hpp"

#include <atomic>
#include <iterator>
#include <vector>

namespace troupe::serving {

struct reply::parts {
  explicit parts(std::shared_ptr<client> made_for) : to(std::move(made_for)) {}

  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  ~parts() {
    if (!is_answered.exchange(true))
      to->send(dressed(text_response(500, "Internal Server Error")
                         .with("troupe-error", "internal")));
  }

  response dressed(response answer) {
    answer.headers.insert(answer.headers.end(),
                          std::make_move_iterator(headers.begin()),
                          std::make_move_iterator(headers.end()));
    return answer;
  }

  const std::shared_ptr<client> to;
  std::vector<std::pair<std::string, std::string>> headers;
  std::atomic<bool> is_answered{false};
};

reply::reply(std::shared_ptr<client> to)
  : parts_(std::make_shared<parts>(std::move(to))) {}

void reply::add_header(std::string name, std::string data) const {
  parts_->headers.emplace_back(std::move(name), std::move(data));
}

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

void reply::watch(std::function<void()> gone) const {
  parts_->to->watch(std::move(gone));
}

} // namespace troupe::serving

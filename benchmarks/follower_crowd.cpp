#include "follower_crowd.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>

namespace bench {

namespace {

bool has_head(std::string_view answer) {
  return answer.ends_with("\r\n\r\n");
}

// A chunk with an event ends with its blank line.
bool has_event(std::string_view chunk) {
  return chunk.ends_with("\n\n\r\n") && chunk.find("data: ") != chunk.npos;
}

} // namespace

follower_crowd::follower_crowd(std::uint16_t port,
                               const std::string& request,
                               std::size_t count) {
  members_.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    members_.push_back({client_socket(port), {}});
    poll_.add(members_.back().from.descriptor(), index);
    members_.back().from.send(request);
  }
  await_all(has_head);
}

clock::time_point follower_crowd::await_event() {
  await_all(has_event);
  return clock::now();
}

template <class Predicate>
void follower_crowd::await_all(Predicate is_enough) {
  for (std::size_t left = members_.size(); left != 0;)
    for (const auto index : poll_.wait()) {
      auto& next = members_[index];
      if (!next.from.receive(next.seen))
        throw std::runtime_error("a follower was closed");
      if (!is_enough(next.seen))
        continue;
      next.seen.clear();
      --left;
    }
}

} // namespace bench

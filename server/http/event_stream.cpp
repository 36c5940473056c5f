#include "troupe/server/http/event_stream.hpp"

namespace troupe::serving {

namespace {

std::string piece_of(std::string_view data, std::string_view id) {
  std::string piece;
  piece.reserve(data.size() + id.size() + 16);
  if (!id.empty()) {
    piece += "id: ";
    piece += id;
    piece += '\n';
  }
  piece += "data: ";
  piece += data;
  piece += "\n\n";
  return piece;
}

} // namespace

response stream_head(header_list headers) {
  response head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = std::move(headers);
  // Proxies must not collect events.
  head.headers.emplace_back("cache-control", "no-cache");
  head.headers.emplace_back("x-accel-buffering", "no");
  return head;
}

event_stream::event_stream(const reply& to, header_list headers)
  : to_(to.stream(stream_head(std::move(headers)))) {}

void event_stream::write(std::string_view data,
                         std::function<void()> ready,
                         std::string_view id) const {
  if (to_)
    to_->write(piece_of(data, id), std::move(ready));
}

void event_stream::end() const {
  if (to_)
    to_->end(false);
}

} // namespace troupe::serving

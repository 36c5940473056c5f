// An answer of `text/event-stream`: one line of JSON for each event.
//
// Each event is one piece, so that a reader that expects whole events gets
// them.

#pragma once

#include "troupe/server/http/reply.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

/// Returns the head of such an answer. `headers` are further ones.
response stream_head(header_list headers = {});

/// Thread-safe. Copies write the same stream.
class event_stream {
public:
  /// A stream that was not begun: writing has no effect.
  event_stream() = default;

  /// Begins the answer. `headers` are further ones.
  event_stream(const reply& to, header_list headers);

  /// Writes `data: TEXT`, which holds no line break, with an id unless it is
  /// empty. `ready` is called when another event should be written.
  void write(std::string_view data,
             std::function<void()> ready,
             std::string_view id = {}) const;

  /// Ends the answer.
  void end() const;

private:
  std::shared_ptr<client> to_;
};

} // namespace troupe::serving

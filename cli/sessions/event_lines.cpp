#include "troupe/cli/sessions/event_lines.hpp"

#include "troupe/cli/sessions/append_window.hpp"
#include "troupe/cli/terminal/input_lines.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::cli {

namespace {

/// Ends the reading of lines, from any thread.
class reading_end {
public:
  reading_end() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  ~reading_end() { ::close(descriptor_); }

  reading_end(const reading_end&) = delete;
  reading_end& operator=(const reading_end&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  void come() const noexcept {
    // Fails only if the counter is full; the descriptor is readable then, too.
    const auto unused = ::eventfd_write(descriptor_, 1);
    static_cast<void>(unused);
  }

private:
  int descriptor_;
};

result<event> read_event(const std::string& line) {
  const auto data = parse_json(line);
  if (!data)
    return data.error();
  return event_from_json(*data);
}

result<void> send_lines(input_lines& lines, append_window& window) {
  for (;;) {
    const auto line = lines.next();
    if (!line)
      return line.error();
    if (!*line)
      return {};
    auto said = read_event(**line);
    if (!said)
      return error(
        said.error().code(),
        fmt::format("line {}: {}", lines.number(), said.error().message()));
    auto sent = window.push(std::move(*said), lines.number(), (*line)->size());
    if (!sent)
      return sent;
  }
}

} // namespace

result<void> append_lines(session_service& sessions,
                          const session_key& key,
                          int source,
                          output& target,
                          const std::stop_token& stop) {
  if (const auto found = sessions.get(key, {.num_recent_events = 0}).get();
      !found)
    return found.error();
  const auto print = [&target](const std::vector<event_ptr>& stored) {
    std::string text;
    for (const auto& said : stored)
      text += visible_json(to_json(*said)) + '\n';
    return target.write(text);
  };
  const reading_end end;
  const std::stop_callback stopped(stop, [&end] { end.come(); });
  input_lines lines(source, end.descriptor());
  append_window window(
    sessions.writer(key), "line", {.on_stored = print, .on_failure = [&end] {
                                     end.come();
                                   }});
  auto sent = send_lines(lines, window);
  // A failure of an earlier line comes first.
  auto drained = window.drain();
  return drained ? sent : drained;
}

} // namespace troupe::cli

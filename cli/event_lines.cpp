#include "troupe/cli/event_lines.hpp"

#include "troupe/cli/append_window.hpp"
#include "troupe/cli/input_lines.hpp"
#include "troupe/cli/visible_text.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace troupe::cli {

namespace {

/// What ends the reading of lines, from any thread.
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
    // Can only fail on a counter that is full, which reads as well.
    const auto unused = ::eventfd_write(descriptor_, 1);
    static_cast<void>(unused);
  }

private:
  int descriptor_;
};

/// The ids that the session remembers and a line may come with again.
class known_ids {
public:
  known_ids(session_service& sessions, const session_key& key)
    : sessions_(sessions),
      key_(key) {}

  /// Whether the session has an event of this id; it has one from now on.
  result<bool> add(const std::string& id) {
    if (!loaded_)
      if (auto loaded = load(); !loaded)
        return loaded.error();
    if (!ids_.insert(id).second)
      return true;
    order_.push_back(id);
    if (order_.size() > count_max_) {
      ids_.erase(order_.front());
      order_.pop_front();
    }
    return false;
  }

private:
  // Not before the first line with an id: most lines have none.
  result<void> load() {
    const auto fetched = sessions_.get(key_, {.num_recent_events = count_max_});
    if (!fetched)
      return fetched.error();
    loaded_ = true;
    for (const auto& said : fetched->events())
      if (ids_.insert(said.id).second)
        order_.push_back(said.id);
    return {};
  }

  // Both outlive this, which lives for one call.
  session_service& sessions_;
  const session_key& key_;
  const std::size_t count_max_ = runtime_options().remembered_ids;
  bool loaded_ = false;
  std::unordered_set<std::string> ids_;
  std::deque<std::string> order_;
};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\v\f") == std::string_view::npos;
}

result<event> read_event(const std::string& line) {
  const auto data = parse_json(line);
  if (!data)
    return data.error();
  return event_from_json(*data);
}

result<void>
send_lines(input_lines& lines, known_ids& ids, append_window& window) {
  const auto named = [&lines](const error& why) {
    return error(why.code(),
                 fmt::format("line {}: {}", lines.number(), why.message()));
  };
  for (;;) {
    const auto line = lines.next();
    if (!line)
      return line.error();
    if (!*line)
      return {};
    if (is_blank(**line))
      continue;
    auto said = read_event(**line);
    if (!said)
      return named(said.error());
    auto alone = said->actions.state_delta.has_typed();
    if (!said->id.empty() && !said->partial) {
      const auto known = ids.add(said->id);
      if (!known)
        return named(known.error());
      alone = alone || *known;
    }
    auto sent = window.push(std::move(*said), lines.number(), (*line)->size());
    if (sent && alone)
      sent = window.drain();
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
  if (const auto found = sessions.get(key, {.num_recent_events = 0}); !found)
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
  known_ids ids(sessions, key);
  append_window window(
    sessions, key, "line", {.on_stored = print, .on_failure = [&end] {
                              end.come();
                            }});
  auto sent = send_lines(lines, ids, window);
  // A failure of an earlier line came first.
  auto drained = window.drain();
  return drained ? sent : drained;
}

} // namespace troupe::cli

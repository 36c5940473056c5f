#include "troupe/cli/sessions/portable.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

namespace troupe::cli {

namespace {

using kind = json::value_t;

std::string full_key(const operation& done) {
  return join_key(done.where, done.name);
}

error with_prefix(const std::string& what, const error& why) {
  return error(why.code(), fmt::format("{}: {}", what, why.message()));
}

// Checks the state like that of an event, but without the size limit of events:
// many events may have built it.
result<void> check_state(const json& state) {
  auto changes = delta::from_json(state);
  if (!changes)
    return changes.error();
  event carrier;
  carrier.actions.state_delta = std::move(*changes);
  const auto size = check_event(
    carrier, {.event_bytes_max = std::numeric_limits<std::size_t>::max()});
  if (!size)
    return size.error();
  return {};
}

result<std::vector<event>> read_events(const json& list) {
  std::vector<event> events;
  std::set<std::string_view> ids;
  events.reserve(list.size());
  for (const auto& data : list) {
    const auto name = fmt::format("event {}", events.size() + 1);
    auto said = portable_event_from_json(data);
    if (!said)
      return with_prefix(name, said.error());
    events.push_back(std::move(*said));
    const auto& id = events.back().id;
    if (!id.empty() && !ids.insert(id).second)
      return error(errc::invalid_argument,
                   fmt::format("{}: the id '{}' comes twice", name, id));
  }
  return events;
}

// Accepts the same forms of time as events.
result<timestamp> read_time(const json& field) {
  const auto carrier = event_from_json({{"timestamp", field}});
  if (carrier)
    return carrier->timestamp;
  return error(errc::invalid_argument,
               "'lastUpdateTime' of the session must be seconds or "
               "milliseconds since 1970, or RFC 3339 text");
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Returns true if a text with a malformed `first` line has one session on each
// line: `first` is its only line, or its last line is JSON. A session on
// several lines ends with a line such as `}`, which is not JSON.
bool has_one_per_line(const std::vector<std::string_view>& all,
                      std::vector<std::string_view>::const_iterator first) {
  const auto last = std::ranges::find_if_not(
    all.rbegin(), all.rend(), [](auto line) { return is_blank(line); });
  return last.base() - 1 == first || parse_json(*last);
}

result<portable_session> read_portable_session(std::string_view text) {
  const auto data = parse_json(text);
  if (!data)
    return data.error();
  return portable_session_from_json(*data);
}

} // namespace

std::set<std::string, std::less<>> portable_session::keys_of_events() const {
  std::set<std::string, std::less<>> keys;
  for (const auto& said : events)
    for (const auto& done : said.actions.state_delta.operations())
      if (done.where != scope::temp)
        keys.insert(full_key(done));
  return keys;
}

json portable_session::initial_state() const {
  auto initial = state;
  for (const auto& touched : keys_of_events())
    initial.erase(touched);
  return initial;
}

json to_portable_json(const session& fetched) {
  auto data = to_json(fetched);
  // Other ADK implementations refuse unknown fields of a session.
  data.erase("revision");
  return data;
}

result<event> portable_event_from_json(const json& data) {
  auto said = event_from_json(data);
  if (!said)
    return said;
  if (const auto size = check_event(*said, {}); !size)
    return size.error();
  if (said->partial)
    return error(errc::invalid_argument,
                 "it is partial, which an event of a session cannot be");
  return said;
}

result<json> portable_state_from_json(const json& data) {
  auto state = json::object();
  for (const auto& [key, held] : data.items())
    if (!held.is_null() && !key.starts_with(key_prefix_temp))
      state[key] = held;
  if (auto checked = check_state(state); !checked)
    return checked.error();
  return state;
}

result<portable_session> portable_session_from_json(const json& data) {
  auto reader = wire_reader::open(data, "session");
  if (!reader)
    return reader.error();
  portable_session made;
  reader->take("appName", made.key.app);
  reader->take("userId", made.key.user);
  reader->take("id", made.key.id);
  if (const auto* found = reader->take("state", kind::object)) {
    auto state = portable_state_from_json(*found);
    if (!state)
      return with_prefix("state", state.error());
    made.state = std::move(*state);
  }
  if (const auto* list = reader->take("events", kind::array)) {
    auto events = read_events(*list);
    if (!events)
      return events.error();
    made.events = std::move(*events);
  }
  if (!made.events.empty())
    made.last_update_time
      = std::ranges::max(made.events, {}, &event::timestamp).timestamp;
  if (const auto* field = reader->take_any("lastUpdateTime")) {
    auto time = read_time(*field);
    if (!time)
      return time.error();
    if (*time != timestamp())
      made.last_update_time = *time;
  }
  // Asked last: reports a wrong type of a field that was taken.
  if (auto rest = std::move(*reader).rest(); !rest)
    return rest.error();
  return made;
}

result<std::vector<portable_session>>
read_portable_sessions(std::string_view text) {
  const auto all = lines_of(text);
  const auto first = std::ranges::find_if_not(all, is_blank);
  if (first == all.end())
    return error(errc::invalid_argument, "there is no session to read");
  std::vector<portable_session> read;
  // If the first line alone is not JSON, the text is one session on several
  // lines.
  const auto behind
    = std::ranges::find_if_not(std::next(first), all.end(), is_blank);
  if (behind == all.end() || !parse_json(*first)) {
    auto made = read_portable_session(text);
    if (!made) {
      const auto alone = parse_json(*first);
      return alone || !has_one_per_line(all, first)
               ? made.error()
               : with_prefix(fmt::format("line {}", first - all.begin() + 1),
                             alone.error());
    }
    read.push_back(std::move(*made));
    return read;
  }
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (is_blank(all[index]))
      continue;
    auto made = read_portable_session(all[index]);
    if (!made)
      return with_prefix(fmt::format("line {}", index + 1), made.error());
    read.push_back(std::move(*made));
  }
  return read;
}

} // namespace troupe::cli

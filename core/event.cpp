#include "troupe/core/event.hpp"

#include "troupe/core/support/applied_operations.hpp"
#include "troupe/core/support/wire.hpp"

#include <boost/date_time/posix_time/posix_time.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

namespace troupe {

namespace {

using kind = json::value_t;

struct known_field {
  std::string_view name;
  json::value_t type;
};

// Fields that troupe carries without using them. Their types are checked so
// that stored events can be read back anywhere.
constexpr std::array event_fields = {
  known_field{"errorCode", kind::string},
  known_field{"errorMessage", kind::string},
  known_field{"turnComplete", kind::boolean},
  known_field{"interrupted", kind::boolean},
  known_field{"finishReason", kind::string},
  known_field{"isolationScope", kind::string},
  known_field{"interactionId", kind::string},
  known_field{"modelVersion", kind::string},
  known_field{"avgLogprobs", kind::number_float},
  known_field{"customMetadata", kind::object},
  known_field{"usageMetadata", kind::object},
  known_field{"groundingMetadata", kind::object},
  known_field{"citationMetadata", kind::object},
  known_field{"cacheMetadata", kind::object},
  known_field{"logprobsResult", kind::object},
  known_field{"inputTranscription", kind::object},
  known_field{"outputTranscription", kind::object},
  known_field{"nodeInfo", kind::object},
};

constexpr std::array action_fields = {
  known_field{"requestedAuthConfigs", kind::object},
  known_field{"requestedToolConfirmations", kind::object},
  known_field{"compaction", kind::object},
  known_field{"endOfAgent", kind::boolean},
  known_field{"agentState", kind::object},
  known_field{"rewindBeforeInvocationId", kind::string},
};

template <std::size_t Count>
void expect(wire_reader& reader, const std::array<known_field, Count>& fields) {
  for (const auto& field : fields)
    reader.expect(field.name, field.type);
}

std::optional<timestamp> from_seconds(double seconds) {
  // The end of the year 9999, as in RFC 3339. Larger numbers are milliseconds,
  // which some versions of ADK write.
  constexpr double seconds_max = 253402300799.0;
  if (std::isfinite(seconds) && seconds > seconds_max)
    seconds /= 1000;
  if (!std::isfinite(seconds) || std::abs(seconds) > seconds_max)
    return std::nullopt;
  return timestamp(std::chrono::microseconds(std::llround(seconds * 1e6)));
}

std::optional<timestamp> from_rfc3339(const std::string& text) {
  namespace time = boost::posix_time;
  // Boost reads date and time, but takes the hour 25 for an hour of the next
  // day, so the form is checked first.
  static const std::regex shape(
    R"((\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?))"
    R"(([Zz]|([+-])([01]\d|2[0-3]):([0-5]\d)))");
  std::smatch match;
  if (!std::regex_match(text, match, shape))
    return std::nullopt;
  std::chrono::minutes offset{0};
  if (match[5].matched)
    offset = std::chrono::hours(std::stoi(match[6]))
             + std::chrono::minutes(std::stoi(match[7]));
  if (match[5] == "-")
    offset = -offset;
  try {
    auto local = match[1].str();
    local[10] = 'T';
    const auto since
      = time::from_iso_extended_string(local) - time::from_time_t(0);
    return timestamp(std::chrono::microseconds(since.total_microseconds())
                     - offset);
  } catch (const std::exception&) {
    return std::nullopt; // The date does not exist; the caller reports it.
  }
}

void take_timestamp(wire_reader& reader, timestamp& target) {
  const auto* field = reader.take_any("timestamp");
  if (field == nullptr)
    return;
  std::optional<timestamp> parsed;
  if (field->is_number())
    parsed = from_seconds(field->get<double>());
  else if (field->is_string())
    parsed = from_rfc3339(field->get<std::string>());
  if (parsed)
    target = *parsed;
  else
    reader.fail("'timestamp' must be seconds or milliseconds since 1970, or "
                "RFC 3339 text");
}

json to_json(const event_actions& actions) {
  auto shown = actions.extra.is_null() ? json::object() : actions.extra.data();
  shown["stateDelta"] = actions.state_delta.to_json();
  if (actions.state_delta.has_typed())
    shown["stateOps"] = actions.state_delta.typed_to_json();
  if (!actions.applied.empty())
    shown["appliedOps"] = to_json(actions.applied);
  shown["artifactDelta"] = actions.artifact_delta;
  if (!actions.transfer_to_agent.empty())
    shown["transferToAgent"] = actions.transfer_to_agent;
  if (actions.escalate)
    shown["escalate"] = true;
  if (actions.skip_summarization)
    shown["skipSummarization"] = true;
  return shown;
}

result<event_actions> actions_from_json(json data) {
  auto reader = wire_reader::open(std::move(data), "actions");
  if (!reader)
    return reader.error();
  event_actions made;
  if (const auto* changed = reader->take("stateDelta", kind::object)) {
    auto parsed = delta::from_json(*changed);
    if (!parsed)
      return parsed.error();
    made.state_delta = std::move(*parsed);
  }
  if (const auto* operations = reader->take("stateOps", kind::array))
    if (auto recorded = record_operations(made.state_delta, *operations);
        !recorded)
      return recorded.error();
  if (const auto* list = reader->take("appliedOps", kind::array)) {
    auto applied = applied_from_json(*list);
    if (!applied)
      return applied.error();
    made.applied = std::move(*applied);
  }
  if (const auto* files = reader->take("artifactDelta", kind::object))
    for (const auto& [name, version] : files->items()) {
      if (version.is_number_integer())
        made.artifact_delta[name] = version.get<std::int64_t>();
      else
        reader->fail("'artifactDelta' must map names to versions");
    }
  reader->take("transferToAgent", made.transfer_to_agent);
  reader->take("escalate", made.escalate);
  reader->take("skipSummarization", made.skip_summarization);
  expect(*reader, action_fields);
  auto rest = std::move(*reader).rest();
  if (!rest)
    return rest.error();
  made.extra = std::move(*rest);
  return made;
}

// Adds up the sizes of an event's parts. Stops at the first violation of a
// rule.
class event_check {
public:
  explicit event_check(const size_limits& limits) : limits_(limits) {}

  void text(std::string_view words, std::string_view what) {
    bytes_ += words.size() + 4;
    if (!failure_ && !is_utf8(words))
      failure_
        = error(errc::invalid_argument, fmt::format("{} is not UTF-8", what));
  }

  void data(const value& held, std::string_view what) {
    if (failure_ || held.is_null())
      return;
    auto size = check_json(held.data(), what);
    if (size)
      bytes_ += *size;
    else
      failure_ = size.error();
  }

  void done(const operation& done) {
    if (failure_)
      return;
    bytes_ += done.name.size() + 8;
    std::size_t largest = 0;
    for (const auto* held : {&done.operand, &done.expected}) {
      const auto before = bytes_;
      if (held->data().is_number_integer() || held->data().is_boolean())
        bytes_ += 8;
      else
        data(*held, "a value in the state delta");
      largest = std::max(largest, bytes_ - before);
    }
    if (failure_)
      failure_ = error(failure_->code(),
                       fmt::format("{} ('{}')",
                                   failure_->message(),
                                   join_key(done.where, done.name)));
    else if (largest > limits_.value_bytes_max)
      failure_ = error(errc::too_large,
                       fmt::format("the value of '{}' has {} bytes, the limit "
                                   "is {}",
                                   join_key(done.where, done.name),
                                   largest,
                                   limits_.value_bytes_max));
  }

  void applied(const applied_operation& done) {
    text(done.name, "a key in appliedOps");
    data(done.operand, "a value in appliedOps");
    data(done.former, "a former value in appliedOps");
  }

  // Checks a field that is written as an object, or left out if it is null.
  void object(const value& held, std::string_view what) {
    if (!failure_ && !held.is_null() && !held->is_object())
      failure_ = error(errc::invalid_argument,
                       fmt::format("{} must be an object", what));
    data(held, what);
  }

  result<std::size_t> finish() && {
    if (failure_)
      return std::move(*failure_);
    if (bytes_ > limits_.event_bytes_max)
      return error(errc::too_large,
                   fmt::format("the event has {} bytes, the limit is {}",
                               bytes_,
                               limits_.event_bytes_max));
    return bytes_;
  }

private:
  const size_limits& limits_;
  std::size_t bytes_ = 64;
  std::optional<error> failure_;
};

} // namespace

double to_seconds(timestamp time) noexcept {
  return static_cast<double>(time.time_since_epoch().count()) / 1e6;
}

std::string event::field(std::string_view name) const {
  if (extra.is_null())
    return {};
  const auto found = extra->find(name);
  return found != extra->end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

bool has_effect(const event_actions& actions) noexcept {
  return actions.escalate || actions.skip_summarization
         || !actions.transfer_to_agent.empty()
         || !actions.artifact_delta.empty() || !actions.extra.is_null()
         || !actions.state_delta.empty();
}

bool is_final(const event& said) {
  if (said.actions.skip_summarization || !said.long_running_tool_ids.empty())
    return true;
  if (said.partial)
    return false;
  for (const auto& element : said.content.parts)
    if (element.call() != nullptr || element.response() != nullptr)
      return false;
  if (said.content.parts.empty())
    return true;
  const auto* last = std::get_if<value>(&said.content.parts.back().body);
  return last == nullptr || !last->data().contains("codeExecutionResult");
}

json to_json(const event& said) {
  auto shown = said.extra.is_null() ? json::object() : said.extra.data();
  shown["id"] = said.id;
  shown["invocationId"] = said.invocation_id;
  shown["author"] = said.author;
  shown["timestamp"] = to_seconds(said.timestamp);
  if (!said.branch.empty())
    shown["branch"] = said.branch;
  if (!said.content.empty())
    shown["content"] = to_json(said.content);
  if (!said.long_running_tool_ids.empty())
    shown["longRunningToolIds"] = said.long_running_tool_ids;
  if (said.partial)
    shown["partial"] = true;
  shown["actions"] = to_json(said.actions);
  return shown;
}

result<event> event_from_json(json data) {
  auto reader = wire_reader::open(std::move(data), "event");
  if (!reader)
    return reader.error();
  event made;
  reader->take("id", made.id);
  reader->take("invocationId", made.invocation_id);
  reader->take("author", made.author);
  reader->take("branch", made.branch);
  reader->take("partial", made.partial);
  take_timestamp(*reader, made.timestamp);
  if (auto* said = reader->take("content", kind::object)) {
    auto parsed = content_from_json(std::move(*said));
    if (!parsed)
      return parsed.error();
    made.content = std::move(*parsed);
  }
  if (auto* actions = reader->take("actions", kind::object)) {
    auto parsed = actions_from_json(std::move(*actions));
    if (!parsed)
      return parsed.error();
    made.actions = std::move(*parsed);
  }
  if (const auto* ids = reader->take("longRunningToolIds", kind::array))
    for (const auto& id : *ids) {
      if (id.is_string())
        made.long_running_tool_ids.push_back(id.get<std::string>());
      else
        reader->fail("'longRunningToolIds' must be a list of strings");
    }
  expect(*reader, event_fields);
  auto rest = std::move(*reader).rest();
  if (!rest)
    return rest.error();
  made.extra = std::move(*rest);
  return made;
}

result<std::size_t> check_event(const event& said, const size_limits& limits) {
  event_check check(limits);
  check.text(said.id, "the event's id");
  check.text(said.invocation_id, "the event's invocation id");
  check.text(said.author, "the event's author");
  check.text(said.branch, "the event's branch");
  check.text(said.content.role, "the content's role");
  for (const auto& element : said.content.parts) {
    if (const auto* words = element.text()) {
      check.text(*words, "a text part");
    } else if (const auto* call = element.call()) {
      check.text(call->id, "a function call's id");
      check.text(call->name, "a function call's name");
      check.object(call->args, "a function call's arguments");
      check.object(call->extra, "a function call");
    } else if (const auto* answer = element.response()) {
      check.text(answer->id, "a function response's id");
      check.text(answer->name, "a function response's name");
      check.object(answer->response, "a function response");
      check.object(answer->extra, "a function response");
    } else {
      const auto& body = std::get<value>(element.body);
      check.object(body.is_null() ? value(false) : body, "a part");
    }
    check.object(element.extra, "a part");
  }
  for (const auto& done : said.actions.state_delta.operations())
    check.done(done);
  for (const auto& done : said.actions.applied)
    check.applied(done);
  for (const auto& [name, version] : said.actions.artifact_delta)
    check.text(name, "an artifact's name");
  check.text(said.actions.transfer_to_agent, "transferToAgent");
  for (const auto& id : said.long_running_tool_ids)
    check.text(id, "a long-running tool id");
  check.object(said.actions.extra, "actions");
  check.object(said.extra, "the event");
  return std::move(check).finish();
}

} // namespace troupe

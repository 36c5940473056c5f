#include "troupe/stores/shared/stored_event.hpp"

#include <boost/container/small_vector.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace troupe {

namespace {

error not_text() {
  return {errc::invalid_argument, "text to be stored is not UTF-8"};
}

bool needs_escapes(std::string_view text) noexcept {
  return std::ranges::any_of(text, [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 || byte == '"'
           || byte == '\\';
  });
}

// Writes JSON text into one string.
class text_writer {
public:
  explicit text_writer(std::string& target) : target_(target) {}

  void raw(std::string_view text) { target_.append(text); }

  void quoted(std::string_view text) {
    if (needs_escapes(text)) {
      dumped(json(text));
      return;
    }
    valid_ = valid_ && is_utf8(text);
    target_ += '"';
    target_ += text;
    target_ += '"';
  }

  void data(const json& held) {
    switch (held.type()) {
    case json::value_t::string:
      quoted(held.get_ref<const std::string&>());
      break;
    case json::value_t::number_integer:
      number(held.get<std::int64_t>());
      break;
    case json::value_t::number_unsigned:
      number(held.get<std::uint64_t>());
      break;
    case json::value_t::boolean:
      raw(held.get<bool>() ? "true" : "false");
      break;
    case json::value_t::object: {
      char before = '{';
      for (const auto& [key, element] : held.get_ref<const json::object_t&>()) {
        target_ += std::exchange(before, ',');
        quoted(key);
        target_ += ':';
        data(element);
      }
      raw(held.empty() ? "{}" : "}");
      break;
    }
    case json::value_t::array: {
      char before = '[';
      for (const auto& element : held.get_ref<const json::array_t&>()) {
        target_ += std::exchange(before, ',');
        data(element);
      }
      raw(held.empty() ? "[]" : "]");
      break;
    }
    default:
      dumped(held);
    }
  }

  result<void> finish() const { return valid_ ? result<void>() : not_text(); }

private:
  template <class Number>
  void number(Number held) {
    fmt::format_to(std::back_inserter(target_), "{}", held);
  }

  void dumped(const json& held) {
    try {
      target_ += held.dump();
    } catch (const json::exception&) {
      valid_ = false;
    }
  }

  std::string& target_;
  bool valid_ = true;
};

// Writes one object. Only `rest` takes names that need escapes.
class object_writer {
public:
  explicit object_writer(text_writer& out) : out_(out) { out_.raw("{"); }

  void text(std::string_view name, std::string_view held) {
    add(name);
    out_.quoted(held);
  }

  void data(std::string_view name, const json& held) {
    add(name);
    out_.data(held);
  }

  void raw(std::string_view name, std::string_view held) {
    add(name);
    out_.raw(held);
  }

  // Begins a member, whose value the caller writes next.
  void add(std::string_view name) {
    out_.raw(names_.empty() ? "\"" : ",\"");
    out_.raw(name);
    out_.raw("\":");
    names_.push_back(name);
  }

  // Writes the fields that are left: none that was written before, and none of
  // `left_out`.
  void rest(const value& fields,
            std::initializer_list<std::string_view> left_out = {}) {
    if (fields.is_null())
      return;
    bool is_first = names_.empty();
    for (const auto& [name, held] : fields->get_ref<const json::object_t&>()) {
      if (std::ranges::find(names_, name) != names_.end()
          || std::ranges::find(left_out, name) != left_out.end())
        continue;
      out_.raw(std::exchange(is_first, false) ? "" : ",");
      out_.quoted(name);
      out_.raw(":");
      out_.data(held);
    }
  }

  void close() { out_.raw("}"); }

private:
  text_writer& out_;
  boost::container::small_vector<std::string_view, 12> names_;
};

void write(const std::vector<applied_operation>& applied, text_writer& out) {
  out.raw("[");
  for (const auto& done : applied) {
    out.raw(&done == &applied.front() ? "" : ",");
    object_writer shown(out);
    shown.text("op", to_string(done.kind));
    shown.text("key", join_key(done.where, done.name));
    if (!done.operand.is_null())
      shown.data("value", done.operand.data());
    if (!done.former.is_null())
      shown.data("former", done.former.data());
    shown.close();
  }
  out.raw("]");
}

void write(const content& said, text_writer& out) {
  if (std::ranges::any_of(said.parts, [](const part& each) {
        return each.text() == nullptr || !each.extra.is_null();
      })) {
    out.data(to_json(said));
    return;
  }
  object_writer shown(out);
  shown.add("parts");
  out.raw("[");
  for (const auto& each : said.parts) {
    out.raw(&each == &said.parts.front() ? "" : ",");
    object_writer text(out);
    text.text("text", *each.text());
    if (each.thought)
      text.raw("thought", "true");
    text.close();
  }
  out.raw("]");
  if (!said.role.empty())
    shown.text("role", said.role);
  shown.close();
}

void write(const event_actions& actions, text_writer& out) {
  object_writer shown(out);
  if (!actions.applied.empty()) {
    shown.add("appliedOps");
    write(actions.applied, out);
  }
  if (!actions.artifact_delta.empty())
    shown.data("artifactDelta", actions.artifact_delta);
  if (!actions.transfer_to_agent.empty())
    shown.text("transferToAgent", actions.transfer_to_agent);
  if (actions.escalate)
    shown.raw("escalate", "true");
  if (actions.skip_summarization)
    shown.raw("skipSummarization", "true");
  shown.rest(actions.extra, {"stateDelta", "artifactDelta", "artifact_delta"});
  shown.close();
}

bool has_stored_actions(const event_actions& actions) noexcept {
  return !actions.applied.empty() || !actions.artifact_delta.empty()
         || !actions.transfer_to_agent.empty() || actions.escalate
         || actions.skip_summarization || !actions.extra.is_null();
}

// Writes the text directly: making an object of JSON first would cost more than
// the rest of a commit.
result<void> encode_body(const event& said, std::string& body) {
  text_writer out(body);
  object_writer shown(out);
  shown.text("author", said.author);
  if (!said.invocation_id.empty())
    shown.text("invocationId", said.invocation_id);
  if (!said.branch.empty())
    shown.text("branch", said.branch);
  if (!said.content.empty()) {
    shown.add("content");
    write(said.content, out);
  }
  if (has_stored_actions(said.actions)) {
    shown.add("actions");
    write(said.actions, out);
  }
  if (!said.long_running_tool_ids.empty())
    shown.data("longRunningToolIds", said.long_running_tool_ids);
  if (said.partial)
    shown.raw("partial", "true");
  shown.rest(said.extra,
             {"id", "timestamp", "actions", "invocationId", "invocation_id"});
  shown.close();
  return out.finish();
}

// Collects an object's keys in the order of the text, because nlohmann sorts
// them.
class key_order {
public:
  bool accept(int depth, json::parse_event_t kind, const json& parsed) {
    if (kind == json::parse_event_t::key && depth == 1)
      keys.push_back(parsed.get<std::string>());
    return true;
  }

  std::vector<std::string> keys;
};

error unreadable(std::string_view what) {
  return {errc::corrupt, fmt::format("stored {} does not read back", what)};
}

} // namespace

result<void> append_text(std::string& target, const value& data) {
  text_writer out(target);
  out.data(data.data());
  return out.finish();
}

result<void> encode(const delta& changed, std::string& target) {
  target.clear();
  text_writer out(target);
  for (const auto& done : changed.operations()) {
    if (is_typed(done))
      continue;
    out.raw(target.empty() ? "{" : ",");
    // The prefix needs no escapes, so it goes before the name inside the
    // quotes.
    if (needs_escapes(done.name)) {
      out.quoted(join_key(done.where, done.name));
    } else {
      out.raw("\"");
      out.raw(prefix_of(done.where));
      out.raw(done.name);
      out.raw("\"");
    }
    out.raw(":");
    out.data(done.operand.data());
  }
  if (!target.empty())
    out.raw("}");
  return out.finish();
}

result<void> encode(const event& said, stored_event& target) {
  target.id = said.id;
  target.microseconds = said.timestamp.time_since_epoch().count();
  target.body.clear();
  if (!is_utf8(said.id))
    return not_text();
  auto written = encode_body(said, target.body);
  return written ? encode(said.actions.state_delta, target.delta) : written;
}

result<void> encode(const store_change& change, stored_event& target) {
  if (change.event && change.kind == change_kind::append)
    return encode(*change.event, target);
  target.id.clear();
  target.body.clear();
  target.delta.clear();
  target.microseconds = 0;
  if (!change.event)
    return {};
  target.microseconds = change.event->timestamp.time_since_epoch().count();
  return encode(change.event->actions.state_delta, target.delta);
}

result<delta> decode_delta(std::string_view text) {
  delta made;
  if (text.empty())
    return made;
  key_order order;
  auto parsed = json::parse(
    text,
    [&order](int depth, json::parse_event_t kind, json& data) {
      return order.accept(depth, kind, data);
    },
    false);
  if (!parsed.is_object() || parsed.size() != order.keys.size())
    return unreadable("state delta");
  std::vector<resolution> outcomes;
  outcomes.reserve(order.keys.size());
  for (const auto& key : order.keys) {
    const auto [where, name] = split_key(key);
    if (name.empty() || where == scope::temp)
      return unreadable("state delta");
    outcomes.push_back({where, std::string(name), std::move(parsed[key])});
  }
  made.resolve(outcomes);
  return made;
}

result<value> decode_value(std::string_view text) {
  auto parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return unreadable("value");
  return value(std::move(parsed));
}

result<event> decode(const stored_event_view& columns) {
  auto parsed = json::parse(columns.body, nullptr, false);
  if (parsed.is_discarded())
    return unreadable(fmt::format("event '{}'", columns.id));
  auto made = event_from_json(std::move(parsed));
  if (!made)
    return error(errc::corrupt,
                 fmt::format("stored event '{}' does not read back: {}",
                             columns.id,
                             made.error().message()));
  auto changed = decode_delta(columns.delta);
  if (!changed)
    return changed.error();
  made->id = columns.id;
  made->timestamp = timestamp(std::chrono::microseconds(columns.microseconds));
  made->actions.state_delta = std::move(*changed);
  return made;
}

} // namespace troupe

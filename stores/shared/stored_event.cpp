#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
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

// Writes JSON text directly into one string. Building JSON objects first would
// cost more than the rest of a commit.
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

  // `key` must need no escapes.
  void field(std::string_view key, std::string_view text) {
    raw(",\"");
    raw(key);
    raw("\":");
    quoted(text);
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

bool is_plain(const event& said) noexcept {
  const auto& actions = said.actions;
  return said.extra.is_null() && actions.extra.is_null()
         && actions.artifact_delta.empty() && actions.transfer_to_agent.empty()
         && !actions.escalate && !actions.skip_summarization && !said.partial
         && said.long_running_tool_ids.empty()
         && std::ranges::all_of(said.content.parts, [](const part& each) {
              return each.text() != nullptr && each.extra.is_null();
            });
}

void encode(const std::vector<applied_operation>& applied, text_writer& out) {
  out.raw(R"(,"actions":{"appliedOps":[)");
  bool first = true;
  for (const auto& done : applied) {
    out.raw(first ? "{\"op\":" : ",{\"op\":");
    out.quoted(to_string(done.kind));
    out.field("key", join_key(done.where, done.name));
    for (const auto& [name, held] :
         {std::pair("value", &done.operand), std::pair("former", &done.former)})
      if (!held->is_null()) {
        out.raw(fmt::format(",\"{}\":", name));
        out.data(held->data());
      }
    out.raw("}");
    first = false;
  }
  out.raw("]}");
}

// Encodes the usual event, which has only ids, an author, text and operations.
result<void> encode_plain(const event& said, std::string& body) {
  text_writer out(body);
  out.raw("{\"author\":");
  out.quoted(said.author);
  if (!said.invocation_id.empty())
    out.field("invocationId", said.invocation_id);
  if (!said.branch.empty())
    out.field("branch", said.branch);
  if (!said.content.empty()) {
    out.raw(R"(,"content":{"parts":[)");
    bool first = true;
    for (const auto& each : said.content.parts) {
      out.raw(first ? "{\"text\":" : ",{\"text\":");
      out.quoted(*each.text());
      out.raw(each.thought ? ",\"thought\":true}" : "}");
      first = false;
    }
    out.raw("]");
    if (!said.content.role.empty())
      out.field("role", said.content.role);
    out.raw("}");
  }
  if (!said.actions.applied.empty())
    encode(said.actions.applied, out);
  out.raw("}");
  return out.finish();
}

result<void> encode_any(const event& said, std::string& body) {
  auto bare = said;
  bare.actions.state_delta = {};
  try {
    auto shown = to_json(bare);
    shown.erase("id");
    shown.erase("timestamp");
    shown["actions"].erase("stateDelta");
    body = shown.dump();
  } catch (const json::exception&) {
    return not_text();
  }
  return {};
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
  auto written = is_plain(said) ? encode_plain(said, target.body)
                                : encode_any(said, target.body);
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
  const auto parsed = json::parse(columns.body, nullptr, false);
  if (parsed.is_discarded())
    return unreadable(fmt::format("event '{}'", columns.id));
  auto made = event_from_json(parsed);
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

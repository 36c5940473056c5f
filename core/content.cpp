#include "troupe/core/content.hpp"

#include "troupe/core/support/wire.hpp"

namespace troupe {

namespace {

using kind = json::value_t;

json object_or_empty(const value& extra) {
  return extra.is_null() ? json::object() : extra.data();
}

// The wire form of a call or a response; `object` is its field `held`.
template <class Function>
json function_to_json(const Function& which,
                      const char* object,
                      const value& held) {
  auto shown = object_or_empty(which.extra);
  shown["name"] = which.name;
  shown[object] = held.data();
  if (!which.id.empty())
    shown["id"] = which.id;
  return shown;
}

json to_json(const part& said) {
  auto shown = object_or_empty(said.extra);
  if (const auto* words = said.text()) {
    shown["text"] = *words;
  } else if (const auto* call = said.call()) {
    shown["functionCall"] = function_to_json(*call, "args", call->args);
  } else if (const auto* answer = said.response()) {
    shown["functionResponse"]
      = function_to_json(*answer, "response", answer->response);
  } else {
    shown.update(std::get<value>(said.body).data());
  }
  if (said.thought)
    shown["thought"] = true;
  return shown;
}

// Parses a function call or a function response: an id, a name, one object, and
// further fields.
template <class Function>
result<Function>
function_from_json(json data, std::string_view field, value Function::*object) {
  auto reader = wire_reader::open(std::move(data), field);
  if (!reader)
    return reader.error();
  Function made;
  reader->take("id", made.id);
  reader->take("name", made.name);
  auto* held
    = reader->take(field == "functionCall" ? "args" : "response", kind::object);
  made.*object = held != nullptr ? std::move(*held) : json::object();
  if (made.name.empty())
    reader->fail("'name' is missing");
  auto rest = std::move(*reader).rest();
  if (!rest)
    return rest.error();
  made.extra = std::move(*rest);
  return made;
}

result<part> part_from_json(json data) {
  auto reader = wire_reader::open(std::move(data), "part");
  if (!reader)
    return reader.error();
  part made;
  bool known = false;
  if (auto* words = reader->take("text", kind::string)) {
    made.body = std::move(words->get_ref<std::string&>());
    known = true;
  }
  if (auto* call = reader->take("functionCall", kind::object)) {
    auto parsed = function_from_json(
      std::move(*call), "functionCall", &function_call::args);
    if (!parsed)
      return parsed.error();
    if (known)
      reader->fail("a part must not hold both text and a call");
    made.body = std::move(*parsed);
    known = true;
  }
  if (auto* answer = reader->take("functionResponse", kind::object)) {
    auto parsed = function_from_json(
      std::move(*answer), "functionResponse", &function_response::response);
    if (!parsed)
      return parsed.error();
    if (known)
      reader->fail("a part with a function response must hold nothing else");
    made.body = std::move(*parsed);
    known = true;
  }
  reader->take("thought", made.thought);
  auto rest = std::move(*reader).rest();
  if (!rest)
    return rest.error();
  if (known)
    made.extra = std::move(*rest);
  else
    made.body = value(rest->is_null() ? json::object() : std::move(*rest));
  return made;
}

} // namespace

std::vector<part> attached_parts(const function_response& answer) {
  std::vector<part> attached;
  const auto& extra = answer.extra.data();
  const auto held = extra.is_object() ? extra.find("parts") : extra.end();
  if (held == extra.end() || !held->is_array())
    return attached;
  for (const auto& element : *held)
    if (element.is_object())
      attached.emplace_back().body = value(element);
  return attached;
}

std::string content::text() const {
  std::string joined;
  for (const auto& said : parts)
    if (const auto* words = said.text(); words != nullptr && !said.thought)
      joined += *words;
  return joined;
}

content user_text(std::string text) {
  content said("user", {});
  said.parts.emplace_back(std::move(text));
  return said;
}

json to_json(const content& said) {
  auto parts = json::array();
  for (const auto& element : said.parts)
    parts.push_back(to_json(element));
  json shown{{"parts", std::move(parts)}};
  if (!said.role.empty())
    shown["role"] = said.role;
  return shown;
}

result<content> content_from_json(json data) {
  auto reader = wire_reader::open(std::move(data), "content");
  if (!reader)
    return reader.error();
  content made;
  reader->take("role", made.role);
  if (auto* parts = reader->take("parts", kind::array))
    for (auto& element : *parts) {
      auto parsed = part_from_json(std::move(element));
      if (!parsed)
        return parsed.error();
      made.parts.push_back(std::move(*parsed));
    }
  auto rest = std::move(*reader).rest();
  if (!rest)
    return rest.error();
  return made;
}

} // namespace troupe

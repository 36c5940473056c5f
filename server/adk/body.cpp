#include "troupe/server/adk/body.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/wire.hpp"
#include "troupe/server/adk/failure.hpp"

#include <utility>

namespace troupe::serving {

namespace {

json place_of(std::string_view name) {
  return json::array({"body", name});
}

} // namespace

body::body(const std::string& text, bool may_be_empty) {
  if (is_blank(text)) {
    if (!may_be_empty)
      problems_.push_back(
        problem("missing", json::array({"body"}), "Field required", nullptr));
    return;
  }
  auto parsed = parse_json(text);
  if (!parsed) {
    auto found = problem("json_invalid",
                         json::array({"body", 0}),
                         "JSON decode error",
                         json::object());
    found["ctx"] = {{"error", parsed.error().message()}};
    problems_.push_back(std::move(found));
  } else if (parsed->is_object()) {
    data_ = std::move(*parsed);
  } else if (!parsed->is_null() || !may_be_empty) {
    problems_.push_back(problem("model_attributes_type",
                                json::array({"body"}),
                                "Input should be a valid dictionary or object "
                                "to extract fields from",
                                std::move(*parsed)));
  }
}

const json* body::find(std::string_view name) const {
  for (const auto& [field, data] : data_.items())
    if (field == name || to_camel_case(field) == name)
      return data.is_null() ? nullptr : &data;
  return nullptr;
}

const json* body::find(std::string_view name,
                       json::value_t type,
                       std::string_view problem_type,
                       std::string_view why) {
  const auto* found = find(name);
  if (found == nullptr || found->type() == type)
    return found;
  problems_.push_back(problem(problem_type, place_of(name), why, *found));
  return nullptr;
}

const json* body::object(std::string_view name) {
  return find(name,
              json::value_t::object,
              "dict_type",
              "Input should be a valid dictionary");
}

const json* body::required_object(std::string_view name) {
  if (find(name) == nullptr)
    miss(name);
  return object(name);
}

const json* body::list(std::string_view name) {
  return find(
    name, json::value_t::array, "list_type", "Input should be a valid list");
}

std::optional<std::string> body::text(std::string_view name) {
  const auto* found = find(name,
                           json::value_t::string,
                           "string_type",
                           "Input should be a valid string");
  if (found == nullptr)
    return std::nullopt;
  return found->get<std::string>();
}

std::string body::required_text(std::string_view name) {
  if (find(name) == nullptr)
    miss(name);
  return text(name).value_or("");
}

std::optional<bool> body::flag(std::string_view name) {
  const auto* found = find(name,
                           json::value_t::boolean,
                           "bool_type",
                           "Input should be a valid boolean");
  if (found == nullptr)
    return std::nullopt;
  return found->get<bool>();
}

std::optional<std::uint64_t> body::number(std::string_view name) {
  const auto* found = find(name,
                           json::value_t::number_unsigned,
                           "int_type",
                           "Input should be a whole number from 0");
  if (found == nullptr)
    return std::nullopt;
  return found->get<std::uint64_t>();
}

void body::miss(std::string_view name) {
  problems_.push_back(
    problem("missing", place_of(name), "Field required", data_));
}

void body::refuse(std::string_view name, std::string_view why) {
  const auto* found = find(name);
  problems_.push_back(problem(
    "value_error", place_of(name), why, found == nullptr ? json() : *found));
}

std::optional<response> body::refusal() const {
  if (problems_.empty())
    return std::nullopt;
  return invalid(problems_);
}

} // namespace troupe::serving

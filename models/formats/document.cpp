#include "troupe/models/formats/document.hpp"

#include "troupe/models/formats/surrogates.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using simdjson::dom::element_type;

error refused(std::string_view why) {
  return {errc::invalid_argument, std::string(why)};
}

result<json> copy_of(simdjson::dom::element from, std::size_t depth);

result<json> copy_of(simdjson::dom::object from, std::size_t depth) {
  auto made = json::object();
  for (const auto field : from) {
    auto element = copy_of(field.value, depth + 1);
    if (!element)
      return element;
    if (!made.emplace(std::string(field.key), std::move(*element)).second)
      return refused(
        fmt::format("the key \"{}\" comes twice in one object", field.key));
  }
  return made;
}

result<json> copy_of(simdjson::dom::array from, std::size_t depth) {
  auto made = json::array();
  for (const auto each : from) {
    auto element = copy_of(each, depth + 1);
    if (!element)
      return element;
    made.push_back(std::move(*element));
  }
  return made;
}

// Copies a value. The parser has checked UTF-8 and the range of numbers.
result<json> copy_of(simdjson::dom::element from, std::size_t depth) {
  if (depth >= json_depth_max && (from.is_object() || from.is_array()))
    return refused(
      fmt::format("JSON is nested deeper than {}", json_depth_max));
  switch (from.type()) {
  case element_type::OBJECT:
    return copy_of(simdjson::dom::object(from), depth);
  case element_type::ARRAY:
    return copy_of(simdjson::dom::array(from), depth);
  case element_type::STRING:
    return json(std::string(std::string_view(from)));
  case element_type::INT64:
    return json(std::int64_t(from));
  case element_type::UINT64:
    return json(std::uint64_t(from));
  case element_type::DOUBLE:
    return json(double(from));
  case element_type::BOOL:
    return json(bool(from));
  case element_type::NULL_VALUE:
    break;
  }
  return json();
}

} // namespace

bool wire_node::expect(bool holds, std::string_view type) const {
  if (!holds && document_->misfit_.empty()) {
    document_->misfit_ = name_;
    document_->expected_ = type;
  }
  return holds;
}

wire_node wire_node::operator[](std::string_view field) const {
  simdjson::dom::object fields;
  simdjson::dom::element found;
  if (document_ == nullptr || !expect(at_.get(fields) == 0, "object")
      || fields.at_key(field).get(found) != 0)
    return {};
  return {found, document_, field};
}

std::string_view wire_node::text() const {
  std::string_view held;
  if (document_ == nullptr || !expect(at_.get(held) == 0, "string"))
    return {};
  return held;
}

bool wire_node::flag() const {
  bool held = false;
  return document_ != nullptr && expect(at_.get(held) == 0, "boolean") && held;
}

std::optional<std::int64_t> wire_node::count() const {
  std::int64_t held = 0;
  if (document_ == nullptr || at_.get(held) != 0 || held < 0)
    return std::nullopt;
  return held;
}

std::optional<double> wire_node::number() const {
  double held = 0;
  if (document_ == nullptr || at_.get(held) != 0)
    return std::nullopt;
  return held;
}

wire_node wire_node::first() const {
  simdjson::dom::array elements;
  if (document_ == nullptr || !expect(at_.get(elements) == 0, "list")
      || elements.begin() == elements.end())
    return {};
  return {*elements.begin(), document_, name_};
}

result<json> wire_node::copy() const {
  return document_ != nullptr ? copy_of(at_, 0) : json();
}

std::string wire_node::to_text() const {
  return document_ != nullptr ? simdjson::minify(at_) : std::string();
}

result<wire_node> wire_document::parse(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  misfit_ = {};
  if (text.starts_with(byte_order_mark))
    text.remove_prefix(byte_order_mark.size());
  if (text.empty())
    return error(errc::model_failed, "it sent nothing");
  const auto mended = without_lone_surrogates(text);
  if (mended)
    text = *mended; // The parser makes a copy.
  simdjson::dom::element root;
  if (const auto failed = parser_.parse(text.data(), text.size()).get(root))
    return error(errc::model_failed,
                 fmt::format("the answer is not JSON: {}",
                             simdjson::error_message(failed)));
  if (!root.is_object())
    return error(errc::model_failed, "the answer is not a JSON object");
  return wire_node(root, this, "answer");
}

result<void> wire_document::check() const {
  if (misfit_.empty())
    return {};
  return error(
    errc::model_failed,
    fmt::format("'{}' in the answer is not of type {}", misfit_, expected_));
}

} // namespace troupe

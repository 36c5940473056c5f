#include "troupe/core/json.hpp"

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace troupe {

namespace {

// Checks a text before nlohmann makes a value of it, in linear time. An integer
// over 64 bits would be read as a double; only its text shows the difference.
// Of repeated keys, the last one would be kept.
class text_guard : public nlohmann::json_sax<json> {
public:
  bool null() override { return true; }

  bool boolean(bool) override { return true; }

  bool number_integer(number_integer_t) override { return true; }

  bool number_unsigned(number_unsigned_t) override { return true; }

  bool number_float(number_float_t, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos)
      reason = fmt::format("the number {} does not fit 64 bits", text);
    return true;
  }

  bool string(string_t&) override { return true; }

  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return enter();
  }

  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second && repeated.empty())
      repeated = fmt::format("the key \"{}\" comes twice in one object", name);
    return true;
  }

  bool end_object() override {
    keys_.pop_back();
    return leave();
  }

  bool start_array(std::size_t) override { return enter(); }

  bool end_array() override { return leave(); }

  bool parse_error(std::size_t position,
                   const std::string& token,
                   const json::exception& failure) override {
    // An out-of-range number is reported here too: "number overflow parsing".
    if (failure.id == 406)
      reason = fmt::format("the number {} does not fit 64 bits", token);
    else
      malformed_at = position;
    return false;
  }

  std::string reason;
  /// The reason that counts if there is no other one.
  std::string repeated;
  /// Position of the byte that does not fit, counted from 1.
  std::size_t malformed_at = 0;

private:
  // Checks the depth before the DOM parser runs. Its destructor is not
  // recursive any more, but code that walks the DOM may be.
  bool enter() {
    if (++depth_ > json_depth_max) {
      reason = fmt::format("JSON is nested deeper than {}", json_depth_max);
      return false;
    }
    return true;
  }

  bool leave() {
    --depth_;
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::size_t depth_ = 0;
};

struct measure {
  std::string_view what;
  std::size_t bytes = 0;

  result<void> visit(const json& data, std::size_t depth) {
    switch (data.type()) {
    case json::value_t::object:
    case json::value_t::array:
      if (depth == json_depth_max)
        return error(
          errc::invalid_argument,
          fmt::format("{} is nested deeper than {}", what, json_depth_max));
      bytes += 2;
      return data.is_object() ? visit_object(data, depth)
                              : visit_array(data, depth);
    case json::value_t::string:
      return add(data.get_ref<const std::string&>());
    case json::value_t::number_float:
      if (!std::isfinite(data.get<double>()))
        return error(errc::invalid_argument,
                     fmt::format("{} holds a number that is not finite", what));
      bytes += 17;
      return {};
    case json::value_t::binary:
    case json::value_t::discarded:
      return error(errc::invalid_argument,
                   fmt::format("{} holds something that is not JSON", what));
    case json::value_t::number_integer:
      bytes += fmt::formatted_size("{}", data.get<std::int64_t>());
      return {};
    case json::value_t::number_unsigned:
      bytes += fmt::formatted_size("{}", data.get<std::uint64_t>());
      return {};
    case json::value_t::boolean:
      bytes += data.get<bool>() ? 4 : 5;
      return {};
    case json::value_t::null:
      bytes += 4;
      break;
    }
    return {};
  }

  result<void> visit_object(const json& data, std::size_t depth) {
    for (const auto& [key, element] : data.get_ref<const json::object_t&>()) {
      if (auto added = add(key); !added)
        return added;
      bytes += 2; // Colon and comma; the last element has no comma.
      if (auto visited = visit(element, depth + 1); !visited)
        return visited;
    }
    bytes -= data.empty() ? 0 : 1;
    return {};
  }

  result<void> visit_array(const json& data, std::size_t depth) {
    for (const auto& element : data.get_ref<const json::array_t&>()) {
      bytes += 1;
      if (auto visited = visit(element, depth + 1); !visited)
        return visited;
    }
    bytes -= data.empty() ? 0 : 1;
    return {};
  }

  result<void> add(const std::string& text) {
    if (!is_utf8(text))
      return error(errc::invalid_argument,
                   fmt::format("{} holds text that is not UTF-8", what));
    bytes += text.size() + 2;
    return {};
  }
};

error malformed(std::string_view text, std::size_t position) {
  const auto before = text.substr(0, std::min(position, text.size()));
  if (position > text.size())
    return {errc::invalid_argument,
            text.empty() ? "malformed JSON: it is empty"
                         : "malformed JSON: it ends too early"};
  const auto line_start = before.substr(0, position - 1).rfind('\n') + 1;
  return {
    errc::invalid_argument,
    fmt::format("malformed JSON at line {}, byte {} of it",
                std::ranges::count(before.substr(0, line_start), '\n') + 1,
                position - line_start)};
}

} // namespace

json empty_object() {
  return json::object();
}

result<json> parse_json(std::string_view text) {
  text_guard checked;
  const bool parsed_whole = json::sax_parse(text, &checked);
  if (checked.malformed_at != 0)
    return malformed(text, checked.malformed_at);
  if (!parsed_whole || !checked.reason.empty())
    return error(errc::invalid_argument, checked.reason);
  if (!checked.repeated.empty())
    return error(errc::invalid_argument, checked.repeated);
  // Without a callback: with one, nlohmann looks at all elements of an array
  // again for each object in it.
  return json::parse(text, nullptr, false);
}

std::string to_text(const json& data) {
  return data.dump();
}

result<std::size_t> check_json(const json& data, std::string_view what) {
  measure size{what};
  if (auto visited = size.visit(data, 0); !visited)
    return visited.error();
  return size.bytes;
}

namespace {

bool is_beyond_signed(const json& number) {
  return number.is_number_unsigned()
         && number.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
}

} // namespace

bool less(const json& left, const json& right) {
  if (!left.is_number_float() && !right.is_number_float()
      && is_beyond_signed(left) != is_beyond_signed(right))
    return is_beyond_signed(right);
  return left < right;
}

bool equal(const json& left, const json& right) {
  if (left.is_array() && right.is_array())
    return std::ranges::equal(left.get_ref<const json::array_t&>(),
                              right.get_ref<const json::array_t&>(),
                              equal);
  if (left.is_object() && right.is_object())
    return std::ranges::equal(left.get_ref<const json::object_t&>(),
                              right.get_ref<const json::object_t&>(),
                              [](const auto& one, const auto& other) {
                                return one.first == other.first
                                       && equal(one.second, other.second);
                              });
  if (left.is_number() && right.is_number())
    return !less(left, right) && !less(right, left);
  return left == right;
}

bool is_utf8(std::string_view text) noexcept {
  const char* next = text.data();
  const char* const end = next + text.size();
  // Almost all text is ASCII: eight bytes at a time, then the library for the
  // rest.
  for (std::uint64_t word = 0; end - next >= 8; next += 8) {
    std::memcpy(&word, next, 8);
    if ((word & 0x8080808080808080U) != 0)
      break;
  }
  return utf8::is_valid(next, end);
}

} // namespace troupe

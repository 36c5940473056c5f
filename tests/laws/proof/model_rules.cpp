#include "model_rules.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::testing::model_rules {

namespace {

using integer = boost::multiprecision::cpp_int;

// -- JSON by the model's own rules ----

integer whole(const json& number) {
  return number.is_number_unsigned() ? integer(number.get<std::uint64_t>())
                                     : integer(number.get<std::int64_t>());
}

// Compares two numbers: the result is below, at or above 0.
int compare(const json& left, const json& right) {
  if (left.is_number_float() || right.is_number_float()) {
    const auto one = left.get<double>();
    const auto other = right.get<double>();
    return one < other ? -1 : one > other ? 1 : 0;
  }
  return whole(left).compare(whole(right));
}

std::size_t depth_of(const json& data) {
  std::size_t deepest = 0;
  if (!data.is_structured())
    return deepest;
  for (const auto& element : data)
    deepest = std::max(deepest, depth_of(element));
  return deepest + 1;
}

// Size of the compact text in bytes. Strings count without escapes, floating
// numbers with their greatest length.
std::size_t size_of(const json& data) {
  if (data.is_string())
    return data.get_ref<const std::string&>().size() + 2;
  if (data.is_number_float())
    return 17;
  if (!data.is_structured())
    return data.dump().size();
  std::size_t bytes = 2 + (data.empty() ? 0 : data.size() - 1);
  for (const auto& [name, element] : data.items())
    bytes += size_of(element) + (data.is_object() ? name.size() + 3 : 0);
  return bytes;
}

// -- operations ----

error type_error(const operation& done) {
  return {errc::type_error, "the model cannot do this to '" + done.name + "'"};
}

result<json> add(const operation& done, const json& left, const json& right) {
  if (left.is_number_float() || right.is_number_float()) {
    const auto total = left.get<double>() + right.get<double>();
    if (!std::isfinite(total))
      return type_error(done);
    return json(total);
  }
  const integer total = whole(left) + whole(right);
  if (total < INT64_MIN || total > UINT64_MAX)
    return type_error(done);
  if (total > INT64_MAX)
    return json(static_cast<std::uint64_t>(total));
  return json(static_cast<std::int64_t>(total));
}

// Applies the operation to `current`; null means that the key is absent.
result<json> outcome_of(const operation& done, const json& current) {
  const auto& operand = done.operand.data();
  const auto start = [&current](json missing) {
    return current.is_null() ? std::move(missing) : current;
  };
  switch (done.kind) {
  case operation_kind::set:
    return operand;
  case operation_kind::erase:
    return json();
  case operation_kind::add: {
    const auto before = start(0);
    return before.is_number() ? add(done, before, operand) : type_error(done);
  }
  case operation_kind::min:
  case operation_kind::max: {
    const auto before = start(operand);
    if (!before.is_number())
      return type_error(done);
    const auto order = compare(operand, before);
    const bool replaces
      = done.kind == operation_kind::min ? order < 0 : order > 0;
    return replaces ? operand : before;
  }
  case operation_kind::append: {
    auto list = start(json::array());
    if (!list.is_array())
      return type_error(done);
    list.push_back(operand);
    return list;
  }
  case operation_kind::add_to_set: {
    auto list = start(json::array());
    if (!list.is_array())
      return type_error(done);
    for (const auto& element : operand)
      if (std::ranges::none_of(list, [&element](const json& held) {
            return is_same(held, element);
          }))
        list.push_back(element);
    return list;
  }
  case operation_kind::merge: {
    auto object = start(json::object());
    if (!object.is_object())
      return type_error(done);
    for (const auto& [name, element] : operand.items())
      if (element.is_null())
        object.erase(name);
      else
        object[name] = element;
    return object;
  }
  case operation_kind::compare_and_set:
    if (!is_same(current, done.expected.data()))
      return error(errc::conflict, "'" + done.name + "' is something else");
    return operand;
  }
  return error(errc::internal, "the model does not know this operation");
}

result<json> checked_outcome_of(const operation& done,
                                const json& current,
                                const size_limits& limits) {
  auto outcome = outcome_of(done, current);
  if (outcome && needs_what_is_there(done)
      && (depth_of(*outcome) > json_depth_max
          || size_of(*outcome) > limits.value_bytes_max))
    return error(errc::too_large, "'" + done.name + "' would grow too large");
  return outcome;
}

} // namespace

bool is_same(const json& left, const json& right) {
  if (left.is_number() && right.is_number())
    return compare(left, right) == 0;
  if (left.type() != right.type() || left.size() != right.size())
    return false;
  if (left.is_array()) {
    for (std::size_t index = 0; index < left.size(); ++index)
      if (!is_same(left[index], right[index]))
        return false;
    return true;
  }
  if (left.is_object()) {
    for (const auto& [name, element] : left.items())
      if (!right.contains(name) || !is_same(element, right[name]))
        return false;
    return true;
  }
  return left == right;
}

bool needs_what_is_there(const operation& done) {
  return done.kind != operation_kind::set && done.kind != operation_kind::erase;
}

result<keys> judge(std::span<const operation> share,
                   const keys& state,
                   const size_limits& limits) {
  keys touched;
  for (const auto& done : share) {
    const auto [at, is_first] = touched.try_emplace(done.name);
    auto& held = at->second;
    if (const auto found = state.find(done.name);
        is_first && found != state.end())
      held = found->second;
    auto outcome = checked_outcome_of(done, held, limits);
    if (!outcome)
      return outcome.error();
    held = std::move(*outcome);
  }
  return touched;
}

void install(keys& state, const keys& touched) {
  for (const auto& [name, data] : touched)
    if (data.is_null())
      state.erase(name);
    else
      state[name] = data;
}

json as_object(const keys& state) {
  auto all = json::object();
  for (const auto& [name, data] : state)
    all[name] = data;
  return all;
}

} // namespace troupe::testing::model_rules

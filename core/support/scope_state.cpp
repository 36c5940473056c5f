#include "troupe/core/support/scope_state.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace troupe {

namespace {

void apply(state_map& keys, const operation& done, const value& outcome) {
  if (outcome.is_null())
    keys.erase(done.name);
  else
    keys.set(done.name, outcome);
}

void apply(state_map& keys, std::span<const operation> share) {
  for (const auto& done : share)
    apply(keys, done, done.operand);
}

error mismatch(const operation& done, std::string_view needed, const json& is) {
  return {errc::type_error,
          fmt::format("{} on '{}' needs {}, the value is a {}",
                      to_string(done.kind),
                      join_key(done.where, done.name),
                      needed,
                      is.type_name())};
}

error overflow(const operation& done) {
  return {errc::type_error,
          fmt::format("add on '{}' overflows 64 bits",
                      join_key(done.where, done.name))};
}

using wide_integer = boost::multiprecision::int128_t;

bool is_unsigned_beyond_signed(const json& number) {
  return number.is_number_unsigned()
         && number.get<std::uint64_t>() > static_cast<std::uint64_t>(
              std::numeric_limits<std::int64_t>::max());
}

// Adds two numbers. Integers stay integers, exact in 64 bits, signed or
// unsigned. With a floating operand the sum is floating.
result<value> sum(const operation& done, const json& left, const json& right) {
  if (left.is_number_float() || right.is_number_float()) {
    const auto total = left.get<double>() + right.get<double>();
    if (!std::isfinite(total))
      return overflow(done);
    return value(total);
  }
  const auto wide = [](const json& number) {
    return is_unsigned_beyond_signed(number)
             ? wide_integer(number.get<std::uint64_t>())
             : wide_integer(number.get<std::int64_t>());
  };
  const wide_integer total = wide(left) + wide(right);
  if (total < std::numeric_limits<std::int64_t>::min()
      || total > std::numeric_limits<std::uint64_t>::max())
    return overflow(done);
  if (total > std::numeric_limits<std::int64_t>::max())
    return value(static_cast<std::uint64_t>(total));
  return value(static_cast<std::int64_t>(total));
}

result<value> united_one_by_one(const json& left, const json& right) {
  auto all = left;
  for (const auto& element : right)
    if (std::ranges::none_of(
          all, [&element](const json& held) { return equal(held, element); }))
      all.push_back(element);
  return value(std::move(all));
}

result<value> united(const json& left, const json& right) {
  // `less` is a strict order for strings and integers, so a set finds repeated
  // elements cheaply.
  const auto is_ordered = [](const json& element) {
    return element.is_string() || element.is_number_integer();
  };
  if (!std::ranges::all_of(left, is_ordered)
      || !std::ranges::all_of(right, is_ordered))
    return united_one_by_one(left, right);
  const auto before
    = [](const json* one, const json* other) { return less(*one, *other); };
  std::set<const json*, decltype(before)> held(before);
  for (const auto& element : left)
    held.insert(&element);
  std::vector<const json*> added;
  for (const auto& element : right)
    if (held.insert(&element).second)
      added.push_back(&element);
  auto all = left;
  for (const auto* element : added)
    all.push_back(*element);
  return value(std::move(all));
}

result<value> merged(const json& left, const json& right) {
  auto all = left;
  for (const auto& [key, element] : right.get_ref<const json::object_t&>()) {
    if (element.is_null())
      all.erase(key);
    else
      all[key] = element;
  }
  return value(std::move(all));
}

result<value> evaluate_typed(const operation& done, const value* current) {
  const auto& operand = done.operand.data();
  switch (done.kind) {
  case operation_kind::add: {
    static const json zero = 0;
    const auto& base = current ? current->data() : zero;
    if (!base.is_number())
      return mismatch(done, "a number", base);
    return sum(done, base, operand);
  }
  case operation_kind::min:
  case operation_kind::max: {
    if (!current)
      return done.operand;
    const auto& base = current->data();
    if (!base.is_number())
      return mismatch(done, "a number", base);
    const bool replace = done.kind == operation_kind::min ? less(operand, base)
                                                          : less(base, operand);
    return replace ? done.operand : *current;
  }
  case operation_kind::append: {
    static const json none = json::array();
    const auto& base = current ? current->data() : none;
    if (!base.is_array())
      return mismatch(done, "a list", base);
    auto all = base;
    all.push_back(operand);
    return value(std::move(all));
  }
  case operation_kind::add_to_set: {
    static const json none = json::array();
    const auto& base = current ? current->data() : none;
    if (!base.is_array())
      return mismatch(done, "a list", base);
    return united(base, operand);
  }
  case operation_kind::merge: {
    static const json none = json::object();
    const auto& base = current ? current->data() : none;
    if (!base.is_object())
      return mismatch(done, "an object", base);
    return merged(base, operand);
  }
  case operation_kind::compare_and_set: {
    const bool same
      = current ? *current == done.expected : done.expected.is_null();
    if (!same)
      return error(errc::conflict,
                   fmt::format("'{}' does not have the value that "
                               "compare-and-set expected; read it again",
                               join_key(done.where, done.name)));
    return done.operand;
  }
  case operation_kind::set:
  case operation_kind::erase:
    break;
  }
  return done.operand;
}

} // namespace

result<value> evaluate(const operation& done,
                       const value* current,
                       const size_limits& limits) {
  if (!is_typed(done))
    return done.operand;
  auto outcome = evaluate_typed(done, current);
  if (!outcome)
    return outcome;
  const auto key = join_key(done.where, done.name);
  // A list or an object may grow beyond the limit by many small operations.
  auto bytes = check_json(outcome->data(), key);
  if (!bytes)
    return error(errc::too_large, bytes.error().message());
  if (*bytes > limits.value_bytes_max)
    return error(errc::too_large,
                 fmt::format("'{}' would grow to {} bytes, the limit is {}",
                             key,
                             *bytes,
                             limits.value_bytes_max));
  return outcome;
}

const state_map& scope_state::judged_keys() {
  if (!working_) {
    working_ = keys_;
    for (const auto& earlier : judged_)
      apply(*working_, earlier);
  }
  return *working_;
}

result<void> scope_state::judge(std::span<const operation> share,
                                std::vector<resolution>& resolved,
                                bool undecided,
                                const size_limits& limits) {
  const bool typed = std::ranges::any_of(share, is_typed);
  if (typed)
    static_cast<void>(judged_keys());
  if (working_) {
    // A refusal half-way must leave no trace.
    auto before = *working_;
    const auto resolved_count = resolved.size();
    for (const auto& done : share) {
      const auto* const current = working_->find(done.name);
      auto outcome = evaluate(done, current, limits);
      if (!outcome) {
        working_ = std::move(before);
        resolved.resize(resolved_count);
        return outcome.error();
      }
      auto former = typed && current != nullptr ? *current : value();
      apply(*working_, done, *outcome);
      if (typed)
        resolved.push_back(
          {done.where, done.name, std::move(*outcome), std::move(former)});
    }
    if (undecided)
      before_last_ = std::move(before);
  }
  judged_.push_back(share);
  return {};
}

void scope_state::drop_last() {
  judged_.pop_back();
  if (working_)
    working_ = std::move(before_last_);
  before_last_.reset();
}

void scope_state::install() {
  if (working_)
    keys_ = std::move(*working_);
  else
    for (const auto& share : judged_)
      apply(keys_, share);
  revision_ += judged_.size();
  abandon();
}

void scope_state::abandon() noexcept {
  judged_.clear();
  working_.reset();
  before_last_.reset();
}

} // namespace troupe

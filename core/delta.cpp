#include "troupe/core/delta.hpp"

#include "troupe/core/support/artifact_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace troupe {

namespace {

constexpr std::array operation_names = {
  std::pair{operation_kind::set, std::string_view("set")},
  std::pair{operation_kind::erase, std::string_view("erase")},
  std::pair{operation_kind::add, std::string_view("add")},
  std::pair{operation_kind::append, std::string_view("append")},
  std::pair{operation_kind::add_to_set, std::string_view("union")},
  std::pair{operation_kind::min, std::string_view("min")},
  std::pair{operation_kind::max, std::string_view("max")},
  std::pair{operation_kind::merge, std::string_view("merge")},
  std::pair{operation_kind::compare_and_set, std::string_view("cas")},
};

// Returns the kind of operand that the operation needs; empty if any will do.
std::string_view needed_operand(operation_kind kind, const value& operand) {
  switch (kind) {
  case operation_kind::add:
  case operation_kind::min:
  case operation_kind::max:
    return operand->is_number() ? "" : "a number";
  case operation_kind::add_to_set:
    return operand->is_array() ? "" : "a list";
  case operation_kind::merge:
    return operand->is_object() ? "" : "an object";
  default:
    return "";
  }
}

// The key of an artifact's place takes no other values.
result<void> check_artifact_write(const scoped_key& key,
                                  operation_kind kind,
                                  const json& operand) {
  if (!is_artifact_key(key) || kind == operation_kind::erase
      || (kind == operation_kind::set
          && (operand.is_null() || artifact_place_from(operand))))
    return {};
  return error(
    errc::invalid_argument,
    fmt::format("state key '{}' must be set to {{\"version\": integer "
                "or null, \"setAside\": integer}}, or erased",
                key.name));
}

constexpr auto by_scope = [](const operation& done) { return done.where; };

} // namespace

std::string_view to_string(operation_kind kind) noexcept {
  return operation_names[static_cast<std::size_t>(kind)].second;
}

std::optional<operation_kind> operation_named(std::string_view name) noexcept {
  for (const auto& [kind, spelling] : operation_names)
    if (spelling == name)
      return kind;
  return std::nullopt;
}

bool is_typed(const operation& done) noexcept {
  return done.kind != operation_kind::set && done.kind != operation_kind::erase;
}

result<delta> delta::from_json(const json& data) {
  if (!data.is_object())
    return error(errc::invalid_argument, "a state delta must be an object");
  delta made;
  made.operations_.reserve(data.size());
  for (const auto& [key, element] : data.get_ref<const json::object_t&>()) {
    auto parts = check_key(key);
    if (!parts)
      return parts.error();
    if (auto checked
        = check_artifact_write(*parts, operation_kind::set, element);
        !checked)
      return checked.error();
    made.operations_.push_back(
      {parts->where,
       element.is_null() ? operation_kind::erase : operation_kind::set,
       std::string(parts->name),
       element,
       {}});
  }
  std::ranges::stable_sort(made.operations_, {}, by_scope);
  made.count_shares();
  return made;
}

result<void> delta::record(std::string_view key,
                           operation_kind kind,
                           value operand,
                           value expected) {
  auto parts = check_key(key);
  if (!parts)
    return parts.error();
  if (const auto needed = needed_operand(kind, operand); !needed.empty())
    return error(
      errc::invalid_argument,
      fmt::format("{} on '{}' needs {}", to_string(kind), key, needed));
  if (auto checked = check_artifact_write(*parts, kind, operand.data());
      !checked)
    return checked;
  if (kind == operation_kind::set && operand.is_null())
    kind = operation_kind::erase;
  // An erase has no argument, and only a compare-and-set has an expected value.
  // Stores keep no others, so a retry with others would differ from the stored
  // event.
  if (kind == operation_kind::erase)
    operand = {};
  if (kind != operation_kind::compare_and_set)
    expected = {};
  push({parts->where,
        kind,
        std::string(parts->name),
        std::move(operand),
        std::move(expected)});
  return {};
}

void delta::push(operation added) {
  const auto same_key = [&added](const operation& earlier) {
    return earlier.where == added.where && earlier.name == added.name;
  };
  // A set replaces all earlier operations on its key. It must not replace one
  // that compares, because that one may refuse the event.
  const bool compares
    = std::ranges::any_of(operations_, [&](const operation& earlier) {
        return same_key(earlier)
               && earlier.kind == operation_kind::compare_and_set;
      });
  if (!is_typed(added) && !compares)
    std::erase_if(operations_, same_key);
  if (operations_.empty())
    operations_.reserve(4); // Most deltas are no larger.
  const auto behind
    = std::ranges::upper_bound(operations_, added.where, {}, by_scope);
  operations_.insert(behind, std::move(added));
  count_shares();
}

void delta::merge(const delta& later) {
  for (const auto& done : later.operations_)
    push(done);
}

std::span<const operation> delta::share(scope where) const noexcept {
  if (operations_.empty())
    return {}; // A move leaves `ends_` as it was.
  const auto index = static_cast<std::size_t>(where);
  const std::size_t first = index == 0 ? 0 : ends_[index - 1];
  return {operations_.data() + first, ends_[index] - first};
}

void delta::count_shares() {
  std::size_t end = 0;
  for (std::size_t index = 0; index < ends_.size(); ++index) {
    while (end < operations_.size()
           && static_cast<std::size_t>(operations_[end].where) == index)
      ++end;
    ends_[index] = static_cast<std::uint32_t>(end);
  }
}

void delta::drop(scope where) {
  std::erase_if(operations_,
                [where](const operation& done) { return done.where == where; });
  count_shares();
}

void delta::resolve(std::span<const resolution> outcomes) {
  std::array<bool, 4> resolved{};
  for (const auto& each : outcomes)
    resolved[static_cast<std::size_t>(each.where)] = true;
  std::erase_if(operations_, [&resolved](const operation& done) {
    return resolved[static_cast<std::size_t>(done.where)];
  });
  const auto kept = static_cast<std::ptrdiff_t>(operations_.size());
  std::set<std::pair<scope, std::string_view>> seen;
  for (auto each = outcomes.rbegin(); each != outcomes.rend(); ++each)
    if (seen.emplace(each->where, each->name).second)
      operations_.push_back(
        {each->where,
         each->outcome.is_null() ? operation_kind::erase : operation_kind::set,
         each->name,
         each->outcome,
         {}});
  std::reverse(operations_.begin() + kept, operations_.end());
  std::ranges::stable_sort(operations_, {}, by_scope);
  count_shares();
}

bool delta::has_typed() const noexcept {
  return std::ranges::any_of(operations_, is_typed);
}

const operation* delta::find_last(scope where,
                                  std::string_view name) const noexcept {
  const auto owned = share(where);
  for (auto next = owned.rbegin(); next != owned.rend(); ++next)
    if (next->name == name)
      return &*next;
  return nullptr;
}

json delta::to_json() const {
  auto data = json::object();
  for (const auto& done : operations_)
    if (!is_typed(done))
      data[join_key(done.where, done.name)] = done.operand.data();
  return data;
}

json delta::typed_to_json() const {
  auto data = json::array();
  for (const auto& done : operations_) {
    if (!is_typed(done))
      continue;
    json shown{{"op", to_string(done.kind)},
               {"key", join_key(done.where, done.name)},
               {"value", done.operand.data()}};
    if (done.kind == operation_kind::compare_and_set)
      shown["expected"] = done.expected.data();
    data.push_back(std::move(shown));
  }
  return data;
}

result<void> record_operations(delta& target, const json& operations) {
  const auto refuse = [](std::string why) {
    return error(errc::invalid_argument, std::move(why));
  };
  if (!operations.is_array())
    return refuse("stateOps must be a list");
  for (const auto& shown : operations) {
    if (!shown.is_object() || !shown.contains("op") || !shown.contains("key")
        || !shown["op"].is_string() || !shown["key"].is_string())
      return refuse("each of stateOps must be an object with 'op' and 'key'");
    for (const auto& [field, unused] : shown.items())
      if (field != "op" && field != "key" && field != "value"
          && field != "expected")
        return refuse(fmt::format("stateOps has no field '{}'", field));
    const auto name = shown["op"].get<std::string>();
    const auto kind = operation_named(name);
    if (!kind || *kind == operation_kind::set)
      return refuse(fmt::format("stateOps has no operation '{}'; it has add, "
                                "append, union, min, max, merge, cas, erase",
                                name));
    if (*kind != operation_kind::erase && !shown.contains("value"))
      return refuse(fmt::format("{} in stateOps needs a 'value'", name));
    if (*kind == operation_kind::compare_and_set && !shown.contains("expected"))
      return refuse("cas in stateOps needs 'expected'; null means absent");
    auto recorded = target.record(
      shown["key"].get<std::string>(),
      *kind,
      *kind == operation_kind::erase ? json() : shown.value("value", json()),
      shown.value("expected", json()));
    if (!recorded)
      return recorded;
  }
  return {};
}

} // namespace troupe

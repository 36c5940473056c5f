#include "changes.hpp"

#include <array>
#include <utility>

namespace troupe::testing {

namespace {

using kind = operation_kind;

struct sort_of_key {
  const char* name;
  std::array<kind, 5> kinds;
};

// The keys, and the operations that fit the type of each.
constexpr std::array<sort_of_key, 6> known_keys{{
  {"count", {kind::add, kind::add, kind::add, kind::min, kind::max}},
  {"total",
   {kind::add, kind::add, kind::compare_and_set, kind::set, kind::erase}},
  {"list", {kind::append, kind::append, kind::append, kind::set, kind::erase}},
  {"set",
   {kind::add_to_set,
    kind::add_to_set,
    kind::add_to_set,
    kind::add_to_set,
    kind::erase}},
  {"object", {kind::merge, kind::merge, kind::merge, kind::erase, kind::set}},
  {"any",
   {kind::set, kind::set, kind::compare_and_set, kind::set, kind::erase}},
}};

json small_number(dice& chance) {
  if (chance.one_in(12))
    return static_cast<double>(chance.below(64)) / 4 - 8;
  return static_cast<std::int64_t>(chance.below(20)) - 6;
}

json list_of(dice& chance, const std::string& tag) {
  auto list = json::array();
  for (auto left = chance.below(3) + 1; left > 0; --left)
    list.push_back(chance.one_in(2) ? json(chance.below(8)) : json(tag));
  return list;
}

json object_of(dice& chance, const std::string& tag) {
  static constexpr std::array<const char*, 4> names{"a", "b", "c", "d"};
  auto object = json::object();
  for (auto left = chance.below(3) + 1; left > 0; --left)
    object[chance.pick(names)] = chance.one_in(4)   ? json()
                                 : chance.one_in(2) ? json(tag)
                                                    : json(left);
  return object;
}

// Returns a value for `set` that fits the other operations of the key.
json start_of(std::size_t sort, dice& chance, const std::string& tag) {
  switch (sort) {
  case 0:
  case 1:
    return small_number(chance);
  case 2:
  case 3:
    return list_of(chance, tag);
  case 4:
    return {{"a", tag}};
  default:
    return chance.one_in(3) ? small_number(chance) : json(tag);
  }
}

std::string prefix(dice& chance, const change_habits& habits, bool temp) {
  if (temp && chance.one_in(4))
    return "temp:";
  if (!chance.one_in(habits.widens))
    return "";
  return chance.one_in(2) ? "user:" : "app:";
}

} // namespace

wanted_change make_change(dice& chance,
                          const change_habits& habits,
                          const std::string& tag,
                          const std::string& prefix) {
  const auto sort = chance.below(known_keys.size());
  wanted_change made;
  made.kind = chance.pick(known_keys[sort].kinds);
  const auto target
    = chance.one_in(habits.misfits) ? chance.below(known_keys.size()) : sort;
  made.key = prefix + known_keys[target].name;
  switch (made.kind) {
  case kind::set:
    made.operand = start_of(sort, chance, tag);
    break;
  case kind::erase:
    break;
  case kind::add:
  case kind::min:
  case kind::max:
    made.operand = small_number(chance);
    break;
  case kind::append:
    made.operand = chance.one_in(2) ? json(tag) : object_of(chance, tag);
    break;
  case kind::add_to_set:
    made.operand = list_of(chance, tag);
    break;
  case kind::merge:
    made.operand = object_of(chance, tag);
    break;
  case kind::compare_and_set:
    made.operand = start_of(sort, chance, tag);
    // The expected value is sometimes the current one, by chance.
    made.expected = chance.one_in(2) ? json() : small_number(chance);
    break;
  }
  return made;
}

std::vector<wanted_change> make_changes(dice& chance,
                                        const change_habits& habits,
                                        const std::string& tag,
                                        bool temp) {
  std::vector<wanted_change> made;
  for (auto left = chance.below(habits.operations_max) + 1; left > 0; --left) {
    auto one = make_change(chance, habits, tag, prefix(chance, habits, temp));
    if (one.kind == kind::compare_and_set && !chance.one_in(habits.compares)
        && chance.one_in(2))
      one.kind = kind::set;
    made.push_back(std::move(one));
  }
  return made;
}

delta as_delta(const std::vector<wanted_change>& changes) {
  delta made;
  for (const auto& each : changes)
    made.record(each.key, each.kind, each.operand, each.expected).value();
  return made;
}

void record(state& target, const std::vector<wanted_change>& changes) {
  for (const auto& each : changes)
    switch (each.kind) {
    case kind::set:
      target.set(each.key, each.operand);
      break;
    case kind::erase:
      target.erase(each.key);
      break;
    case kind::add:
      target.add(each.key, each.operand);
      break;
    case kind::append:
      target.append(each.key, each.operand);
      break;
    case kind::add_to_set:
      target.add_to_set(each.key, each.operand);
      break;
    case kind::min:
      target.min(each.key, each.operand);
      break;
    case kind::max:
      target.max(each.key, each.operand);
      break;
    case kind::merge:
      target.merge(each.key, each.operand);
      break;
    case kind::compare_and_set:
      target.compare_and_set(each.key, each.expected, each.operand);
      break;
    }
}

json make_sets(dice& chance, const std::string& tag, bool temp) {
  auto sets = json::object();
  const change_habits habits;
  for (auto left = chance.below(4); left > 0; --left) {
    const auto sort = chance.below(known_keys.size());
    sets[prefix(chance, habits, temp) + known_keys[sort].name]
      = start_of(sort, chance, tag);
  }
  return sets;
}

} // namespace troupe::testing

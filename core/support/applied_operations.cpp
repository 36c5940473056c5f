#include "troupe/core/support/applied_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

// An operation and its outcome.
struct applied_step {
  const operation* done = nullptr;
  const resolution* effect = nullptr;
};

using key_steps = std::span<const applied_step>;

bool is_list_operation(operation_kind kind) noexcept {
  return kind == operation_kind::append || kind == operation_kind::add_to_set;
}

template <class Predicate>
bool all_of(key_steps steps, const Predicate& holds) {
  return std::ranges::all_of(
    steps, [&holds](const applied_step& each) { return holds(*each.done); });
}

bool all_are(key_steps steps, operation_kind kind) {
  return all_of(steps,
                [kind](const operation& done) { return done.kind == kind; });
}

applied_operation record_of(const applied_step& step) {
  applied_operation made;
  made.kind = step.done->kind;
  made.where = step.done->where;
  made.name = step.done->name;
  return made;
}

applied_operation record_add(const applied_step& step) {
  auto made = record_of(step);
  made.operand = step.done->operand;
  return made;
}

// Both operations add at the end of the list.
applied_operation record_elements(const applied_step& step) {
  auto made = record_of(step);
  const auto& before = step.effect->before.data();
  const auto& outcome = step.effect->outcome.data();
  const auto size = before.is_array() ? before.size() : 0;
  auto elements = json::array();
  for (auto index = size; index < outcome.size(); ++index)
    elements.push_back(outcome[index]);
  made.operand = std::move(elements);
  return made;
}

// Steps that all merge: the top-level keys that differ afterwards.
applied_operation record_merges(key_steps steps) {
  auto made = record_of(steps.front());
  static const json none = json::object();
  const auto& first = steps.front().effect->before;
  const auto& before = first.is_null() ? none : first.data();
  const auto& outcome = steps.back().effect->outcome.data();
  auto former = json::object();
  std::set<std::string> fresh;
  for (const auto& step : steps)
    for (const auto& [name, element] :
         step.done->operand->get_ref<const json::object_t&>()) {
      const auto then = before.find(name);
      const auto now = outcome.find(name);
      if (then == before.end() && now != outcome.end())
        fresh.insert(name);
      else if (then != before.end()
               && (now == outcome.end() || !equal(*then, *now)))
        former[name] = *then;
    }
  if (!fresh.empty())
    made.operand = json(fresh);
  if (!former.empty())
    made.former = std::move(former);
  return made;
}

applied_operation record_exact(key_steps steps) {
  auto made = record_of(steps.front());
  if (!all_are(steps, made.kind))
    made.kind = operation_kind::compare_and_set;
  made.former = steps.front().effect->before;
  return made;
}

void record(key_steps steps, std::vector<applied_operation>& into) {
  if (!all_of(steps, is_typed))
    return;
  if (all_are(steps, operation_kind::merge))
    return into.push_back(record_merges(steps));
  const bool adds = all_are(steps, operation_kind::add);
  const bool lists = all_of(
    steps, [](const operation& done) { return is_list_operation(done.kind); });
  if (!adds && !lists)
    return into.push_back(record_exact(steps));
  for (const auto& step : steps)
    into.push_back(adds ? record_add(step) : record_elements(step));
}

// The outcomes of a share with a typed operation are in the order of its
// operations, one for each.
void record(std::span<const operation> share,
            std::span<const resolution> resolved,
            std::vector<applied_operation>& into) {
  const auto* const effects
    = &*std::ranges::find(resolved, share[0].where, &resolution::where);
  // Most events have one operation: it needs no map of the keys.
  if (share.size() == 1) {
    const applied_step only{share.data(), effects};
    return record(key_steps(&only, 1), into);
  }
  std::map<std::string_view, std::size_t> places;
  std::vector<std::vector<applied_step>> keys;
  for (std::size_t index = 0; index < share.size(); ++index) {
    const auto [place, is_new]
      = places.try_emplace(share[index].name, keys.size());
    if (is_new)
      keys.emplace_back();
    keys[place->second].push_back({&share[index], effects + index});
  }
  for (const auto& steps : keys)
    record(key_steps(steps), into);
}

error unreadable() {
  return {errc::invalid_argument,
          "each of appliedOps must be an object with a typed 'op' and a "
          "'user:' or 'app:' key in 'key'"};
}

bool is_list_or_null(const value& held) noexcept {
  return held.is_null() || held->is_array();
}

bool is_list_of_strings(const value& held) {
  return held->is_array()
         && std::ranges::all_of(held.data(), [](const json& element) {
              return element.is_string();
            });
}

// Returns true if the data has the types that undoing needs.
bool is_sound(const applied_operation& done) {
  switch (done.kind) {
  case operation_kind::add:
    return done.operand->is_number();
  case operation_kind::append:
  case operation_kind::add_to_set:
    return is_list_or_null(done.operand) && is_list_or_null(done.former);
  case operation_kind::merge:
    return (done.operand.is_null() || is_list_of_strings(done.operand))
           && (done.former.is_null() || done.former->is_object());
  default:
    return true;
  }
}

std::optional<applied_operation> read_one(const json& shown) {
  if (!shown.is_object())
    return std::nullopt;
  const auto op = shown.find("op");
  const auto key = shown.find("key");
  if (op == shown.end() || key == shown.end() || !op->is_string()
      || !key->is_string())
    return std::nullopt;
  const auto kind = operation_named(op->get_ref<const std::string&>());
  const auto parts = check_key(key->get_ref<const std::string&>());
  if (!kind || *kind == operation_kind::set || *kind == operation_kind::erase
      || !parts || (parts->where != scope::user && parts->where != scope::app))
    return std::nullopt;
  applied_operation made;
  made.kind = *kind;
  made.where = parts->where;
  made.name = parts->name;
  made.operand = shown.value("value", json());
  made.former = shown.value("former", json());
  if (!is_sound(made))
    return std::nullopt;
  return made;
}

} // namespace

std::vector<applied_operation>
applied_by(const delta& changes, std::span<const resolution> resolved) {
  std::vector<applied_operation> applied;
  for (const auto where : {scope::user, scope::app})
    if (const auto share = changes.share(where);
        std::ranges::any_of(share, is_typed))
      record(share, resolved, applied);
  return applied;
}

json to_json(const std::vector<applied_operation>& applied) {
  auto list = json::array();
  for (const auto& done : applied) {
    json shown{{"op", to_string(done.kind)},
               {"key", join_key(done.where, done.name)}};
    if (!done.operand.is_null())
      shown["value"] = done.operand.data();
    if (!done.former.is_null())
      shown["former"] = done.former.data();
    list.push_back(std::move(shown));
  }
  return list;
}

result<std::vector<applied_operation>> applied_from_json(const json& list) {
  std::vector<applied_operation> applied;
  for (const auto& shown : list) {
    auto made = read_one(shown);
    if (!made)
      return unreadable();
    applied.push_back(std::move(*made));
  }
  return applied;
}

} // namespace troupe

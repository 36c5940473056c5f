#include "troupe/core/state.hpp"

#include "troupe/core/support/scope_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe {

namespace {

// Values of the view are not stored; the owner applies the limits.
constexpr size_limits unlimited{SIZE_MAX, SIZE_MAX};

void apply(std::optional<value>& current, const operation& done) {
  auto outcome = evaluate(done, current ? &*current : nullptr, unlimited);
  if (!outcome)
    throw outcome.error();
  if (outcome->is_null())
    current.reset();
  else
    current = std::move(*outcome);
}

} // namespace

const state_map& state_snapshot::of(scope where) const noexcept {
  switch (where) {
  case scope::user:
    return user;
  case scope::app:
    return app;
  case scope::temp:
    return temp;
  case scope::session:
    break;
  }
  return session;
}

void staged_deltas::add(delta finished) {
  const std::lock_guard guard(mutex_);
  deltas_.push_back(std::move(finished));
}

std::vector<std::string> staged_deltas::keys() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> all;
  for (const auto& finished : deltas_)
    for (const auto& done : finished.operations())
      all.push_back(join_key(done.where, done.name));
  return all;
}

std::optional<value> readonly_state::find(std::string_view key) const {
  const auto [where, name] = split_key(key);
  std::optional<value> current;
  if (const auto* found = snapshot_.of(where).find(name))
    current = *found;
  const auto step = [&current](const operation& done) { apply(current, done); };
  if (staged_)
    staged_->for_key(where, name, step);
  for (const auto& done : recorded_.share(where))
    if (done.name == name)
      step(done);
  return current;
}

state_object readonly_state::all() const {
  auto merged = json::object();
  for (const auto where :
       {scope::session, scope::user, scope::app, scope::temp})
    snapshot_.of(where).for_each(
      [&merged, where](std::string_view name, const value& data) {
        merged[join_key(where, name)] = data.data();
      });
  const auto overlay = [this, &merged](const std::string& key) {
    if (auto current = find(key))
      merged[key] = current->data();
    else
      merged.erase(key);
  };
  if (staged_)
    for (const auto& key : staged_->keys())
      overlay(key);
  for (const auto& done : recorded_.operations())
    overlay(join_key(done.where, done.name));
  return state_object(std::move(merged));
}

state_iterator readonly_state::begin() const {
  return state_iterator(all());
}

state_object state::all() const {
  auto merged = readonly_state::all();
  if (reads_.is_on())
    for (const auto& entry : merged.items())
      note_value_below(entry.key());
  return merged;
}

// Notes the value of a key without the changes recorded here. A recorded set or
// erase hides it.
void state::note_value_below(std::string_view key) const {
  const auto [where, name] = split_key(key);
  const auto recorded = recorded_.share(where);
  const auto first = std::ranges::find(recorded, name, &operation::name);
  if (first != recorded.end() && !is_typed(*first))
    return;
  std::optional<value> current;
  if (const auto* found = snapshot_.of(where).find(name))
    current = *found;
  std::optional<value> owned = current.value_or(value());
  if (staged_)
    staged_->for_key(where, name, [&](const operation& done) {
      if (!is_typed(done))
        owned.reset();
      apply(current, done);
    });
  reads_.note_read(key, std::move(owned), current.value_or(value()));
}

void state::record(std::string_view key,
                   operation_kind kind,
                   json operand,
                   json expected) {
  // Old keys with two prefixes can still be erased.
  if (kind != operation_kind::erase
      && !(kind == operation_kind::set && operand.is_null()))
    if (auto checked = check_new_key(key); !checked)
      throw checked.error();
  fmt::memory_buffer what;
  fmt::format_to(std::back_inserter(what), "the value of '{}'", key);
  for (const auto* held : {&operand, &expected}) {
    auto bytes = check_json(*held, {what.data(), what.size()});
    if (!bytes)
      throw bytes.error();
    if (*bytes > limits_.value_bytes_max)
      throw error(errc::too_large,
                  fmt::format("the value of '{}' has {} bytes, the limit is {}",
                              key,
                              *bytes,
                              limits_.value_bytes_max));
  }
  auto recorded
    = recorded_.record(key, kind, std::move(operand), std::move(expected));
  if (!recorded)
    throw recorded.error();
  if (kind == operation_kind::set || kind == operation_kind::erase)
    reads_.note_write(key);
}

void state::set(std::string_view key, json data) {
  record(key, operation_kind::set, std::move(data));
}

void state::erase(std::string_view key) {
  record(key, operation_kind::erase, nullptr);
}

void state::add(std::string_view key, json number) {
  record(key, operation_kind::add, std::move(number));
}

void state::append(std::string_view key, json element) {
  record(key, operation_kind::append, std::move(element));
}

void state::add_to_set(std::string_view key, json elements) {
  record(key, operation_kind::add_to_set, std::move(elements));
}

void state::min(std::string_view key, json number) {
  record(key, operation_kind::min, std::move(number));
}

void state::max(std::string_view key, json number) {
  record(key, operation_kind::max, std::move(number));
}

void state::merge(std::string_view key, json fields) {
  record(key, operation_kind::merge, std::move(fields));
}

void state::compare_and_set(std::string_view key, json expected, json desired) {
  record(key,
         operation_kind::compare_and_set,
         std::move(desired),
         std::move(expected));
}

} // namespace troupe

// The merged view of the four scopes: what readers get, and what running code
// may record on top of it.
//
// Nobody stores a merged copy: a view is the roots of the four maps, what
// earlier tools of the same turn staged, and the delta recorded through it.
// Contexts, fetched sessions and live handles all show this one type.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/scope_state.hpp"
#include "troupe/core/state_map.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// The keys of all scopes at one consistent moment.
struct state_snapshot {
  state_map session;
  state_map user;
  state_map app;
  state_map temp;

  const state_map& of(scope where) const noexcept;
};

/// Deltas of the finished tools of one model turn, in the order in which they
/// finished. Thread-safe.
class staged_deltas {
public:
  void add(delta finished);

  /// Calls `visit` with each operation on the key, oldest first.
  template <class Visit>
  void for_key(scope where, std::string_view name, const Visit& visit) const {
    const std::lock_guard guard(mutex_);
    for (const auto& finished : deltas_)
      for (const auto& done : finished.share(where))
        if (done.name == name)
          visit(done);
  }

  std::vector<std::string> keys() const;

private:
  mutable std::mutex mutex_;
  std::vector<delta> deltas_;
};

/// A read-only view of state. Keys are full keys: `"topic"`, `"user:name"`.
/// Values read are those of one moment.
///
/// Safe to read from several threads. Reading a malformed key finds nothing.
class readonly_state {
public:
  readonly_state() = default;

  explicit readonly_state(state_snapshot snapshot)
    : snapshot_(std::move(snapshot)) {}

  /// The value of `key`, or nothing. Throws `errc::type_error` or
  /// `errc::conflict` if a recorded operation does not fit what it meets.
  std::optional<value> find(std::string_view key) const;

  bool contains(std::string_view key) const { return find(key).has_value(); }

  /// The value of `key` as `T`. Throws `errc::not_found` if it is absent,
  /// `errc::type_error` if it is something else.
  template <class T = json>
  T get(std::string_view key) const {
    const auto found = find(key);
    if (!found)
      throw error(errc::not_found,
                  "state has no key '" + std::string(key) + "'");
    return convert<T>(*found, key);
  }

  /// The value of `key` as `T`, or `fallback` if it is absent. Throws
  /// `errc::type_error` if it is something else.
  template <class T>
  T get(std::string_view key, T fallback) const {
    const auto found = find(key);
    return found ? convert<T>(*found, key) : std::move(fallback);
  }

  /// All keys as one object, `{"topic": …, "app:theme": …}`.
  json all() const;

protected:
  const delta& recorded() const noexcept { return recorded_; }

  state_snapshot snapshot_;
  std::shared_ptr<const staged_deltas> staged_;
  delta recorded_;

private:
  template <class T>
  static T convert(const value& found, std::string_view key) {
    try {
      auto converted = found.data().get<T>();
      // nlohmann cuts numbers to size and takes booleans for numbers.
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        if (!found->is_number()
            || (std::is_integral_v<T> && !equal(json(converted), found.data())))
          throw error(errc::type_error,
                      "state key '" + std::string(key)
                        + "' holds a number that does not fit");
      return converted;
    } catch (const json::exception&) {
      throw error(errc::type_error,
                  "state key '" + std::string(key) + "' holds a "
                    + found.data().type_name());
    }
  }
};

/// A view that records: the one delta tracker behind every context. Reads see
/// what was recorded.
///
/// Not thread-safe: it belongs to the callback, tool or agent body that
/// received it. All writers throw `errc::invalid_argument` on a bad key (see
/// `check_key`) or a value that is no JSON, and `errc::too_large`; they decide
/// nothing else, since the owner evaluates the operation when its event is
/// appended.
class state : public readonly_state {
public:
  state() = default;

  explicit state(state_snapshot snapshot,
                 size_limits limits = {},
                 std::shared_ptr<const staged_deltas> staged = nullptr)
    : readonly_state(std::move(snapshot)),
      limits_(limits) {
    staged_ = std::move(staged);
  }

  /// Replaces the value; null erases the key.
  void set(std::string_view key, json data);
  void erase(std::string_view key);

  /// Adds to a number; counts from 0. Lost by nobody, however many writers
  /// there are.
  void add(std::string_view key, json number);
  /// Adds `element` at the end of a list.
  void append(std::string_view key, json element);
  /// Adds those of `elements`, a list, that the list does not hold yet.
  void add_to_set(std::string_view key, json elements);
  /// Keeps the smaller number.
  void min(std::string_view key, json number);
  /// Keeps the larger number.
  void max(std::string_view key, json number);
  /// Replaces top-level keys of an object; a null removes one.
  void merge(std::string_view key, json fields);
  /// Sets `desired` if the value equals `expected` when the event is appended
  /// (null: absent), else the event is refused with `errc::conflict`.
  void compare_and_set(std::string_view key, json expected, json desired);

  /// What was recorded so far.
  using readonly_state::recorded;

  /// Takes what was recorded; the view then starts from the snapshot again.
  delta take() { return std::exchange(recorded_, delta()); }

  /// Lays the view on a newer snapshot; what was recorded stays.
  void renew(state_snapshot snapshot) { snapshot_ = std::move(snapshot); }

  const state_snapshot& snapshot() const noexcept { return snapshot_; }

private:
  void record(std::string_view key,
              operation_kind kind,
              json operand,
              json expected = nullptr);

  size_limits limits_;
};

} // namespace troupe

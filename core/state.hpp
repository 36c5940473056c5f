// The merged view of the four scopes, with the changes that running code
// records on it.
//
// Merged copies are never stored. A view consists of versions of four maps, the
// deltas of earlier tools of the same turn, and the delta recorded through it.
// Contexts, fetched sessions and live handles all use this type.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/state_map.hpp"
#include "troupe/core/state_object.hpp"
#include "troupe/core/step_reads.hpp"

#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// The keys of all scopes. Each event is in them completely or not at all.
struct state_snapshot {
  /// Keys without prefix.
  state_map session;
  /// Keys with the prefix `user:`, held here without it.
  state_map user;
  /// Keys with the prefix `app:`, held here without it.
  state_map app;
  /// Keys with the prefix `temp:`, held here without it.
  state_map temp;

  /// Returns the map of one scope.
  const state_map& of(scope where) const noexcept;
};

/// Deltas of the finished tools of one model turn, in the order of their ends.
/// Thread-safe.
class staged_deltas {
public:
  /// Adds the delta of a tool that has finished, after the existing ones.
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

  /// Returns the full key of each operation, in order. A key may come more than
  /// once.
  std::vector<std::string> keys() const;

private:
  mutable std::mutex mutex_;
  std::vector<delta> deltas_;
};

namespace detail {

// False, but the compiler evaluates it only where a template is used. Members
// that exist only for their error message assert it.
template <class...>
inline constexpr bool never = false;

} // namespace detail

/// A read-only view of state. Keys are full keys: `"topic"`, `"user:name"`.
/// Each event is in it completely or not at all.
///
/// Safe to read from several threads. A malformed key finds nothing.
class readonly_state {
public:
  readonly_state() = default;

  /// Makes a view of `snapshot` without further changes.
  explicit readonly_state(state_snapshot snapshot)
    : snapshot_(std::move(snapshot)) {}

  /// Returns the value of `key`, or nothing. Evaluates the recorded operations
  /// on it, and throws the error of the first one that fails:
  /// `errc::type_error` if the value has another type or a sum overflows,
  /// `errc::conflict` if a comparison fails, and `errc::too_large` if the value
  /// becomes deeper than `json_depth_max`. Throws nothing if no changes are
  /// recorded.
  std::optional<value> find(std::string_view key) const;

  /// Returns true if `key` has a value. Throws as `find` does.
  bool contains(std::string_view key) const { return find(key).has_value(); }

  /// Returns the value of `key` as `T`. Throws `errc::not_found` if it is
  /// absent, `errc::type_error` if it has another type or a number does not fit
  /// `T`, and the errors of `find`.
  template <class T = json>
  T get(std::string_view key) const {
    const auto found = find(key);
    if (!found)
      throw error(errc::not_found,
                  "state has no key '" + std::string(key) + "'");
    return convert<T>(*found, key);
  }

  /// Returns the value of `key` as `T`, or `fallback` if it is absent. Throws
  /// `errc::type_error` if it has another type or a number does not fit `T`,
  /// and the errors of `find`.
  template <class T>
  T get(std::string_view key, T fallback) const {
    const auto found = find(key);
    return found ? convert<T>(*found, key) : std::move(fallback);
  }

  /// Returns all keys as one object, `{"topic": …, "app:theme": …}`. Throws as
  /// `find` does.
  state_object all() const;

  /// Returns a view with `keys` in place of the session's keys. The keys of
  /// user and app stay; recorded changes are left out.
  readonly_state with_session(state_map keys) const {
    return readonly_state({std::move(keys), snapshot_.user, snapshot_.app, {}});
  }

  /// Starts a loop over all keys:
  /// `for (const auto& [key, value] : session.state())`. Shows the state of
  /// this call, also if it changes during the loop. Throws as `find` does.
  state_iterator begin() const;

  /// Equals an iterator after the last key.
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Does not compile, since a read value cannot be written through. The error
  /// names the calls that read and write.
  template <class Key>
  json operator[](const Key&) const {
    static_assert(detail::never<Key>,
                  "a state has no []: read with get<T>(key) or get(key, "
                  "fallback), and write with set(key, value) or add(key, 1)");
    return {};
  }

  /// Does not compile, since this is a copy. The error names the call that
  /// writes.
  template <class... Arguments>
  void set(Arguments&&...) const {
    static_assert(detail::never<Arguments...>,
                  "this state is a copy for reading: write with "
                  "runtime.sessions().state(key).set(...), or inside of an "
                  "agent with context.state().set(...)");
  }

protected:
  /// Returns the changes recorded through this view, which are on top of all
  /// others.
  const delta& recorded() const noexcept { return recorded_; }

  /// State below all changes.
  state_snapshot snapshot_;
  /// Changes of finished tools of the turn, on top of the snapshot. May be
  /// null.
  std::shared_ptr<const staged_deltas> staged_;
  /// Changes recorded by a `state`, on top of all others. A copy of type
  /// `readonly_state` keeps them.
  delta recorded_;

private:
  template <class T>
  static T convert(const value& found, std::string_view key) {
    try {
      auto converted = found.data().get<T>();
      // nlohmann truncates numbers and accepts booleans as numbers.
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

/// A view that records changes. Every context uses this one delta tracker.
/// Reads see the recorded changes.
///
/// Not thread-safe: it belongs to the callback, tool or agent body that
/// received it. All writers throw `errc::invalid_argument` on a bad key (see
/// `check_new_key`; for removals `check_key`), on a value that `check_json`
/// refuses, and on an operand of the wrong type. They throw `errc::too_large`
/// on a value above the limit. A writer that throws records nothing.
///
/// Writers do not look at the present value. The owner evaluates the operation
/// when its event is appended, and refuses the event with `errc::type_error` if
/// the value has the wrong type.
///
/// In a run, reads are noted: a plain `set` or `erase` of a key that this step
/// has read, and that another event has changed since, is a lost update
/// (`run_options::lost_updates`). Calls of `find`, `get`, `contains` and `all`,
/// and loops over the keys, are reads of all keys that they return, and of the
/// absent key that they were asked for. Reads of the step's own plain writes,
/// reads of copies, and reads through a reference to `readonly_state` are not.
class state : public readonly_state {
public:
  state() = default;

  /// Makes a view of `snapshot` with the changes in `staged` on top; null means
  /// none. Each written value is checked against `limits.value_bytes_max`.
  explicit state(state_snapshot snapshot,
                 size_limits limits = {},
                 std::shared_ptr<const staged_deltas> staged = nullptr)
    : readonly_state(std::move(snapshot)),
      limits_(limits) {
    staged_ = std::move(staged);
  }

  /// Returns the value of `key`, as `readonly_state::find` does.
  std::optional<value> find(std::string_view key) const {
    note_read(key);
    return readonly_state::find(key);
  }

  /// Returns true if `key` has a value. Throws as `find` does.
  bool contains(std::string_view key) const { return find(key).has_value(); }

  /// Returns the value of `key` as `T`, as `readonly_state::get` does.
  template <class T = json>
  T get(std::string_view key) const {
    note_read(key);
    return readonly_state::get<T>(key);
  }

  /// Returns the value of `key` as `T`, or `fallback` if it is absent, as
  /// `readonly_state::get` does.
  template <class T>
  T get(std::string_view key, T fallback) const {
    note_read(key);
    return readonly_state::get<T>(key, std::move(fallback));
  }

  /// Returns all keys as one object, as `readonly_state::all` does.
  state_object all() const;

  /// Starts a loop over all keys, as `readonly_state::begin` does.
  state_iterator begin() const { return state_iterator(all()); }

  /// Replaces the value; null erases the key.
  void set(std::string_view key, json data);
  /// Records the removal of the key, also of a missing one.
  void erase(std::string_view key);

  /// Adds `number` to the value; a missing key counts as 0. The owner does the
  /// addition, so concurrent adds are never lost. Throws
  /// `errc::invalid_argument` if `number` is not a number.
  void add(std::string_view key, json number);
  /// Adds `element` at the end of a list; a missing key counts as `[]`.
  void append(std::string_view key, json element);
  /// Adds those elements of the list `elements` that the value does not
  /// contain; a missing key counts as `[]`. Throws `errc::invalid_argument` if
  /// `elements` is not a list.
  void add_to_set(std::string_view key, json elements);
  /// Keeps the smaller of the value and `number`; a missing key gets `number`.
  /// Throws `errc::invalid_argument` if `number` is not a number.
  void min(std::string_view key, json number);
  /// Keeps the larger of the value and `number`; a missing key gets `number`.
  /// Throws `errc::invalid_argument` if `number` is not a number.
  void max(std::string_view key, json number);
  /// Replaces top-level keys of an object; null removes a key. A missing key
  /// counts as `{}`. Throws `errc::invalid_argument` if `fields` is not an
  /// object.
  void merge(std::string_view key, json fields);
  /// Sets `desired` if the value equals `expected` (null: absent) when the
  /// event is appended. Otherwise the event is refused with `errc::conflict`.
  void compare_and_set(std::string_view key, json expected, json desired);

  /// Does not compile, since an update may have to wait and to try again. The
  /// error names the calls that do.
  template <class... Arguments>
  void update(Arguments&&...) const {
    static_assert(detail::never<Arguments...>,
                  "an update may have to try again: an agent's body writes "
                  "co_await context.update(key, fn), a tool or a callback "
                  "runtime.sessions().state(context.session()).update(key, fn) "
                  "or an operation such as add(key, 1)");
  }

  /// Returns the changes recorded so far.
  using readonly_state::recorded;

  /// Returns and clears the recorded changes, and drops their bases. Reads then
  /// start from the snapshot again.
  delta take() {
    static_cast<void>(reads_.take_bases());
    return std::exchange(recorded_, delta());
  }

  /// The reads of this step, for the code that runs it.
  step_reads& reads() noexcept { return reads_; }

  /// Replaces the snapshot; recorded changes stay.
  void renew(state_snapshot snapshot) { snapshot_ = std::move(snapshot); }

  /// Returns the state below all changes.
  const state_snapshot& snapshot() const noexcept { return snapshot_; }

private:
  void record(std::string_view key,
              operation_kind kind,
              json operand,
              json expected = nullptr);

  void note_read(std::string_view key) const {
    if (reads_.is_on())
      note_value_below(key);
  }

  void note_value_below(std::string_view key) const;

  size_limits limits_;
  // Reading does not change the state that is read.
  mutable step_reads reads_;
};

} // namespace troupe

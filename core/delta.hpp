// The effect of an event on state: operations on keys, grouped by the scope
// that owns them.
//
// A delta from a caller may hold typed operations. The owners evaluate them,
// and the stored delta holds plain values.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/core/value.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// An operation on one key. On a missing key `add` counts from 0, `append` and
/// `add_to_set` start with `[]`, `merge` starts with `{}`, and `min` and `max`
/// take the operand.
enum class operation_kind : std::uint8_t {
  set,        ///< Replaces the value.
  erase,      ///< Removes the key; written as null in a delta.
  add,        ///< Adds a number.
  append,     ///< Adds one element at the end of a list.
  add_to_set, ///< Adds the elements of a list that the value does not contain
              ///< yet (wire name `union`).
  min,        ///< Keeps the smaller number.
  max,        ///< Keeps the larger number.
  merge,      ///< Replaces top-level keys of an object; null removes a key.
  compare_and_set, ///< Sets if the value equals `expected`; null means absent
                   ///< (wire name `cas`).
};

/// One operation on one key.
struct operation {
  /// Scope of the key, which is its owner.
  scope where = scope::session;
  /// Effect on the key's value.
  operation_kind kind = operation_kind::set;
  std::string name; ///< Without prefix.
  /// Argument of the operation, as `kind` needs it: the new value, a number, an
  /// element, a list or an object. Null for `erase`.
  value operand;
  value expected; ///< Used only by `compare_and_set`.

  friend bool operator==(const operation&, const operation&) = default;
};

/// The outcome of an operation: the value of its key after it, null if erased.
/// If a share has a typed operation, the outcomes of all of its operations are
/// recorded in order.
struct resolution {
  /// Scope of the key.
  scope where;
  /// Key without prefix.
  std::string name;
  /// Value after the operation; null if the key is erased.
  value outcome;
  /// Value before the operation; null if the key was absent. Set by the owner
  /// that judged the operation.
  value before = {};
};

/// Returns true if the outcome depends on the current value. The owner may
/// refuse such an operation.
bool is_typed(const operation& done) noexcept;

/// Operations on keys, grouped by scope. A plain value; not thread-safe.
class delta {
public:
  delta() = default;

  /// Makes a delta from a `{"key": value}` object, as in `stateDelta`; null
  /// erases. Checks only the keys. Fails with `errc::invalid_argument`.
  static result<delta> from_json(const json& data);

  /// Records one operation on the full key `key`, after the existing ones. A
  /// `set` or `erase` replaces earlier operations on its key, unless one of
  /// them compares. A `set` to null is an `erase`. Fails with
  /// `errc::invalid_argument` on a bad key and on an operand that can never fit
  /// its operation; the delta is unchanged then.
  result<void> record(std::string_view key,
                      operation_kind kind,
                      value operand = {},
                      value expected = {});

  /// Appends the operations of `later` in order.
  void merge(const delta& later);

  /// Returns true if there is no operation in any scope.
  bool empty() const noexcept { return operations_.empty(); }

  /// All operations: session first, then user, app and temp; in recording order
  /// within a scope.
  const std::vector<operation>& operations() const noexcept {
    return operations_;
  }

  /// Returns the operations on the keys of one owner.
  std::span<const operation> share(scope where) const noexcept;

  /// Removes the operations on the keys of one owner.
  void drop(scope where);

  /// Replaces operations by their outcomes, in every scope that occurs in
  /// `outcomes`. The last outcome of a key counts.
  void resolve(std::span<const resolution> outcomes);

  /// Returns true if any operation is typed.
  bool has_typed() const noexcept;

  /// Returns the last recorded operation on a key, or null. Earlier ones may
  /// exist if operations are typed.
  const operation* find_last(scope where, std::string_view name) const noexcept;

  /// Returns the sets and erases as `{"key": value-or-null}`.
  json to_json() const;

  /// Returns the typed operations as JSON, `[{"op": string, "key": string,
  /// "value": any, "expected": any}]`. Only `cas` has `expected`.
  json typed_to_json() const;

  friend bool operator==(const delta& left, const delta& right) {
    return left.operations_ == right.operations_;
  }

private:
  void push(operation added);
  void count_shares();

  std::vector<operation> operations_;
  // End of each scope's share in `operations_`. It is stored although it can be
  // computed, because every owner that an append passes asks for its share.
  std::array<std::uint32_t, 4> ends_{};
};

/// Adds `actions.stateOps` to `target`: `[{"op": string, "key": string,
/// "value": any, "expected": any}]`, for example `{"op": "add", "key": "app:n",
/// "value": 1}`. Every operation but `erase` needs a value; only `cas` has
/// `expected`; `set` is not allowed. Fails with `errc::invalid_argument`; the
/// operations before the bad one stay in `target`.
result<void> record_operations(delta& target, const json& operations);

/// Returns the wire name: `"add"`, `"union"`, `"cas"`, ….
std::string_view to_string(operation_kind kind) noexcept;

/// Returns the operation with that wire name; unset if there is none.
std::optional<operation_kind> operation_named(std::string_view name) noexcept;

} // namespace troupe

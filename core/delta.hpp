// What an event does to state: operations on keys, grouped by the scope that
// owns them.
//
// A delta that callers hand in may hold typed operations; the owners evaluate
// them, and the stored delta holds plain values.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/core/value.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What is done to one key. Missing keys: `add` counts from 0, `append` and
/// `add_to_set` from `[]`, `merge` from `{}`, `min` and `max` take the operand.
enum class operation_kind : std::uint8_t {
  set,        ///< Replace.
  erase,      ///< Remove; a null in a delta is this.
  add,        ///< Add a number.
  append,     ///< Add one element at the end of a list.
  add_to_set, ///< Add the elements of a list that are not in the list yet (wire
              ///< name: `union`).
  min,        ///< Keep the smaller number.
  max,        ///< Keep the larger number.
  merge,      ///< Replace top-level keys of an object; null removes one.
  compare_and_set, ///< Set if the value equals `expected`; null means absent
                   ///< (wire name: `cas`).
};

struct operation {
  scope where = scope::session;
  operation_kind kind = operation_kind::set;
  std::string name; ///< Without the prefix.
  value operand;
  value expected; ///< Of `compare_and_set` alone.

  friend bool operator==(const operation&, const operation&) = default;
};

/// What an operation came to: the value that its key has after it (null:
/// erased). Recorded, in order, for every operation of a share that holds a
/// typed one.
struct resolution {
  scope where;
  std::string name;
  value outcome;
};

/// Whether the outcome depends on what is there, so that the owner may refuse
/// it.
bool is_typed(const operation& done) noexcept;

class delta {
public:
  delta() = default;

  /// From a `{"key": value}` object, as in `stateDelta`; null erases. Checks
  /// keys alone. Fails with `errc::invalid_argument`.
  static result<delta> from_json(const json& data);

  /// Records one operation on the full key `key`, after what is there; a `set`
  /// or `erase` replaces what was recorded for its key, unless that compares. A
  /// `set` to null is an `erase`. Fails with `errc::invalid_argument` on a bad
  /// key and on an operand that can never fit its operation, and then changes
  /// nothing.
  result<void> record(std::string_view key,
                      operation_kind kind,
                      value operand = {},
                      value expected = {});

  /// Takes over what `later` did, in order.
  void merge(const delta& later);

  bool empty() const noexcept { return operations_.empty(); }

  /// All operations, session first, then user, app and temp; in order of
  /// recording within a scope.
  const std::vector<operation>& operations() const noexcept {
    return operations_;
  }

  /// The share of one owner.
  std::span<const operation> share(scope where) const noexcept;

  /// Drops the share of one owner.
  void drop(scope where);

  /// Puts outcomes in the place of operations, in every scope that occurs in
  /// `outcomes`; the last outcome of a key counts.
  void resolve(std::span<const resolution> outcomes);

  /// Whether any operation is typed.
  bool has_typed() const noexcept;

  /// The last recorded operation on a key, or null. With typed operations there
  /// may be earlier ones.
  const operation* find_last(scope where, std::string_view name) const noexcept;

  /// `{"key": value-or-null}` of the sets and erases.
  json to_json() const;

  /// The typed operations as ADK-like JSON, `[{"op": string, "key": string,
  /// "value": any, "expected": any}]`.
  json typed_to_json() const;

  friend bool operator==(const delta& left, const delta& right) {
    return left.operations_ == right.operations_;
  }

private:
  void push(operation added);
  void count_shares();

  std::vector<operation> operations_;
  // Where the share of each scope ends among the operations. Follows from them
  // and is kept on purpose: every owner that an append passes asks for its
  // share, and gets it without a search.
  std::array<std::uint32_t, 4> ends_{};
};

/// Adds `actions.stateOps` to `target`: `[{"op": "add", "key": "app:n",
/// "value": 1}]`. Fails with `errc::invalid_argument`.
result<void> record_operations(delta& target, const json& operations);

/// The wire name: `"add"`, `"union"`, `"cas"`.
std::string_view to_string(operation_kind kind) noexcept;

} // namespace troupe

// The keys of all scopes as one JSON object, as `readonly_state::all` returns
// it, and the iterator of a state.
//
// Invariant: no member of a temporary returns a reference into it. A loop over
// `fetch().state().all().items()` is therefore as safe as one over a variable.

#pragma once

#include "troupe/core/json.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

namespace troupe {

/// The entries of a JSON object, for loops.
using state_items = decltype(std::declval<const json&>().items());

/// One key of a state and its value: `key()` and `value()`, or the two parts of
/// a structured binding.
using state_entry = decltype(std::declval<const state_items&>().begin());

/// A JSON object with full keys, `{"topic": …, "app:theme": …}`. It is a `json`
/// whose members return copies when the object is a temporary, in place of
/// references that would dangle.
class state_object : public json {
public:
  /// The entries of an object that was a temporary. Owns the object.
  class owned_items {
  public:
    /// Takes over the object.
    explicit owned_items(json object);

    /// Returns the position of the first entry. Valid as long as this.
    state_entry begin() const;

    /// Returns the position after the last entry.
    state_entry end() const;

  private:
    const json object_;
  };

  /// Makes an empty object.
  state_object();

  /// Takes over `object`, which must be a JSON object.
  explicit state_object(json object);

  /// Returns the entries, in the order of their keys:
  /// `for (const auto& [key, value] : all.items())`.
  state_items items() const&;

  /// Returns the entries of a temporary together with it.
  owned_items items() &&;

  /// Returns the value of `key`. Inserts null if the key is missing.
  json& operator[](std::string_view key) &;

  /// Returns the value of `key`, or null if the key is missing.
  const json& operator[](std::string_view key) const&;

  /// Returns a copy of the value of `key`, or null if the key is missing.
  json operator[](std::string_view key) const&&;

  // The same for a literal. Without these, clang also considers a conversion of
  // the object to a number, and `all["topic"]` is ambiguous.

  /// Returns the value of `key`. Inserts null if the key is missing.
  json& operator[](const char* key) &;

  /// Returns the value of `key`, or null if the key is missing.
  const json& operator[](const char* key) const&;

  /// Returns a copy of the value of `key`, or null if the key is missing.
  json operator[](const char* key) const&&;

  /// Returns the value of `key`. Throws `json::out_of_range` if the key
  /// is missing.
  const json& at(std::string_view key) const&;

  /// Returns a copy of the value of `key`. Throws `json::out_of_range` if the
  /// key is missing.
  json at(std::string_view key) const&&;

  /// Returns the position of `key`, or `end()`. Valid as long as this.
  json::const_iterator find(std::string_view key) const&;

  /// An iterator into a temporary would dangle: keep the object in a variable.
  void find(std::string_view key) const&& = delete;
};

/// Converts to plain JSON. Called by nlohmann_json.
void to_json(json& target, state_object all);

/// A position in the keys of a state, in the order of the keys. Owns the values
/// that it shows, so the state may be gone. Single pass.
class state_iterator {
public:
  /// Type of an element, for `std::iterator_traits`.
  using value_type = state_entry;
  /// Type of a distance, for `std::iterator_traits`. None is ever computed.
  using difference_type = std::ptrdiff_t;

  state_iterator() = default;

  /// Starts at the first key of `all`.
  explicit state_iterator(state_object all);

  /// Returns the entry; `key()` and `value()` are valid as long as this or a
  /// copy of it.
  const state_entry& operator*() const noexcept { return at_; }

  /// Gives access to `key()` and `value()` of the entry.
  const state_entry* operator->() const noexcept { return &at_; }

  /// Moves to the next key.
  state_iterator& operator++();

  /// Moves to the next key and returns nothing, as the iterator has a single
  /// pass.
  void operator++(int);

  friend bool operator==(const state_iterator& left, std::default_sentinel_t) {
    return left.is_end();
  }

private:
  bool is_end() const;

  std::shared_ptr<const state_object> all_;
  state_entry at_;
};

} // namespace troupe

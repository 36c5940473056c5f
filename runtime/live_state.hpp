// The state of a session as code outside of agents reads and writes it.
//
//   auto state = runtime.sessions().state(key);
//   state.add("app:visits", 1).value();
//   const auto visits = state.get("app:visits", 0).value();
//
// Each write is one event, so it is ordered, durable and part of the history
// like those of agents. The owner evaluates it, so no concurrent `add` is lost.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace detail {

class session_backend;

// A call whose answer is computed from that of another call.
template <class To, class From, class Convert>
class converted_call final : public call<To> {
public:
  converted_call(pending<From> from, Convert convert)
    : from_(std::move(from)),
      convert_(std::move(convert)) {}

  void start(completion<To> done) override {
    from_.then([convert = std::move(convert_), done = std::move(done)](
                 result<From> answer) { done(convert(std::move(answer))); });
  }

  result<To> wait() override { return convert_(from_.get()); }

private:
  pending<From> from_;
  Convert convert_;
};

} // namespace detail

/// Id, condition and author of a write to live state.
struct write_options {
  write_options() = default;

  /// A write with this event id, which takes effect once however often it is
  /// sent. With `expected`, it is refused unless the session has that revision.
  explicit write_options(std::string event_id,
                         std::optional<std::uint64_t> expected = {})
    : id(std::move(event_id)),
      expected_revision(expected) {}

  /// Id of the event, for retries after an unknown outcome. Empty: a new one.
  std::string id;
  /// Refuses the write with `errc::conflict` unless the session has this
  /// revision.
  std::optional<std::uint64_t> expected_revision;
  /// Author of the event: `system`, or `user` for a change that the user made.
  std::string author = "system";
};

/// A handle to the state of one session, with the keys of its user and its app;
/// copies refer to the same session. Thread-safe.
///
/// Keys have their prefix: `topic`, `user:name`, `app:theme`. The calls fail
/// like those of the session service. A write returns the stored event, whose
/// delta has the new value. It fails with `errc::invalid_argument` on a `temp:`
/// key, since only runs have these, and like the writers of
/// `troupe::state`; with `errc::type_error` if the present value does not fit
/// the operation.
class live_state {
public:
  /// Makes the handle. The key is checked by each call, not here.
  live_state(std::shared_ptr<detail::session_backend> backend, session_key key);

  /// The key as it was given, neither trimmed nor checked.
  const session_key& key() const noexcept { return key_; }

  /// Returns the state of all scopes, with each event completely or not at all.
  pending<readonly_state> snapshot() const;

  /// Returns the newest value, or nothing if the key is not set.
  pending<std::optional<value>> find(std::string key) const;

  /// Returns the newest value as `T`. Fails with `errc::not_found` if the key
  /// is not set, and with `errc::type_error` if the value has another type.
  template <class T = json>
  pending<T> get(std::string key) const {
    return read<T>(std::move(key),
                   [](const readonly_state& newest, const std::string& wanted) {
                     return newest.get<T>(wanted);
                   });
  }

  /// Returns the newest value as `T`, or `fallback` if the key is not set.
  /// Fails with `errc::type_error` if the value has another type.
  template <class T>
  pending<T> get(std::string key, T fallback) const {
    return read<T>(std::move(key),
                   [fallback = std::move(fallback)](
                     const readonly_state& newest, const std::string& wanted) {
                     return newest.get<T>(wanted, fallback);
                   });
  }

  /// Returns the newest value as text, or `fallback` if the key is not set.
  pending<std::string> get(std::string key, const char* fallback) const;

  /// Sets a key, without regard to its present value. Of concurrent writes the
  /// last one remains. A null removes the key.
  pending<event_ptr>
  set(std::string key, json data, write_options options = {}) const;

  /// Removes a key. It is no error if the key is not set.
  pending<event_ptr> erase(std::string key, write_options options = {}) const;

  /// Adds `number` to the value; a missing key counts as 0.
  pending<event_ptr>
  add(std::string key, json number, write_options options = {}) const;

  /// Adds `element` at the end of a list; a missing key counts as `[]`.
  pending<event_ptr>
  append(std::string key, json element, write_options options = {}) const;

  /// Adds those elements of the list `elements` that the value does not
  /// contain; a missing key counts as `[]`.
  pending<event_ptr>
  add_to_set(std::string key, json elements, write_options options = {}) const;

  /// Keeps the smaller of the value and `number`; a missing key gets `number`.
  pending<event_ptr>
  min(std::string key, json number, write_options options = {}) const;

  /// Keeps the larger of the value and `number`; a missing key gets `number`.
  pending<event_ptr>
  max(std::string key, json number, write_options options = {}) const;

  /// Replaces top-level keys of an object; null removes a key. A missing key
  /// counts as `{}`.
  pending<event_ptr>
  merge(std::string key, json fields, write_options options = {}) const;

  /// Sets `desired` if the value equals `expected` (null: absent). Otherwise
  /// fails with `errc::conflict`.
  pending<event_ptr> compare_and_set(std::string key,
                                     json expected,
                                     json desired,
                                     write_options options = {}) const;

private:
  template <class T, class Read>
  pending<T> read(std::string key, Read take) const {
    auto convert = [key = std::move(key), take = std::move(take)](
                     result<readonly_state> newest) -> result<T> {
      if (auto checked = check_key(key); !checked)
        return checked.error();
      if (!newest)
        return newest.error();
      try {
        return take(*newest, key);
      } catch (const error& failure) {
        return failure;
      }
    };
    using made = detail::converted_call<T, readonly_state, decltype(convert)>;
    return pending<T>(std::make_unique<made>(snapshot(), std::move(convert)));
  }

  pending<event_ptr> write(std::string key,
                           operation_kind kind,
                           json operand,
                           json expected,
                           write_options options) const;

  std::shared_ptr<detail::session_backend> backend_;
  session_key key_;
};

} // namespace troupe

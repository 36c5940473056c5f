// The calls that read and write one state from outside of agents, shared by the
// handles of a session and of an app or a user.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/delta.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"
#include "troupe/core/state_update.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace detail {

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

// Calls `change` with the present value. An exception becomes an error:
// `errc::callback_failed`, or the thrown `troupe::error`.
result<json> call_update(const state_update& change,
                         const std::string& key,
                         const std::optional<value>& now);

// Changes one key by a comparison with the value that a function was called
// with, again and again until that succeeds.
template <class Handle, class Written>
class update_call final : public call<Written> {
public:
  update_call(Handle on,
              std::string key,
              state_update change,
              std::size_t retries_max)
    : steps_{std::move(on), std::move(key), std::move(change), retries_max} {}

  void start(completion<Written> done) override {
    auto outcome = std::make_shared<result<Written>>(
      error(errc::internal, "an update was dropped"));
    troupe::start(perform(std::move(steps_), outcome),
                  [outcome, done = std::move(done)](const std::exception_ptr&) {
                    done(std::move(*outcome));
                  });
  }

  // The function is called on this thread.
  result<Written> wait() override {
    for (;;) {
      auto next = steps_.next(steps_.on.find(steps_.key).get());
      if (!next)
        return next.error();
      auto written = next->get();
      if (steps_.is_over(written))
        return written;
    }
  }

private:
  struct steps {
    Handle on;
    std::string key;
    state_update change;
    std::size_t retries_left;

    result<pending<Written>> next(const result<std::optional<value>>& now) {
      if (!now)
        return now.error();
      auto desired = call_update(change, key, *now);
      if (!desired)
        return desired.error();
      return on.compare_and_set(
        key, *now ? (*now)->data() : json(), *std::move(desired));
    }

    bool is_over(const result<Written>& written) {
      return written || written.error().code() != errc::conflict
             || retries_left-- == 0;
    }
  };

  static task<> perform(steps held, std::shared_ptr<result<Written>> outcome) {
    for (;;) {
      auto next = held.next(co_await held.on.find(held.key));
      if (!next) {
        *outcome = next.error();
        co_return;
      }
      auto written = co_await std::move(*next);
      if (held.is_over(written)) {
        *outcome = std::move(written);
        co_return;
      }
    }
  }

  steps steps_;
};

// Checks the key of a write: `check_new_key`, or `check_key` if the write
// removes the key, so that old keys with two prefixes can be removed.
result<scoped_key> check_written_key(const std::string& key,
                                     operation_kind kind,
                                     const json& operand);

} // namespace detail

/// The reads and writes of a handle to state: `live_state` for a session,
/// `shared_state` for an app or a user. Each of them says which keys it takes
/// and how its calls fail. `Written` is the answer to a write, and `Options`
/// its id and conditions.
template <class Handle, class Written, class Options>
class state_calls {
public:
  /// Returns the newest value, or nothing if the key is not set.
  pending<std::optional<value>> find(std::string key) const {
    return read<std::optional<value>>(
      std::move(key),
      [](const readonly_state& newest, const std::string& wanted) {
        return newest.find(wanted);
      });
  }

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
  pending<std::string> get(std::string key, const char* fallback) const {
    return get<std::string>(std::move(key), std::string(fallback));
  }

  /// Sets a key, without regard to its present value. Of concurrent writes the
  /// last one remains. A null removes the key.
  pending<Written> set(std::string key, json data, Options options = {}) const {
    return write(key, operation_kind::set, data, nullptr, options);
  }

  /// Removes a key. It is no error if the key is not set.
  pending<Written> erase(std::string key, Options options = {}) const {
    json none;
    return write(key, operation_kind::erase, none, nullptr, options);
  }

  /// Adds `number` to the value; a missing key counts as 0.
  pending<Written>
  add(std::string key, json number, Options options = {}) const {
    return write(key, operation_kind::add, number, nullptr, options);
  }

  /// Adds `element` at the end of a list; a missing key counts as `[]`.
  pending<Written>
  append(std::string key, json element, Options options = {}) const {
    return write(key, operation_kind::append, element, nullptr, options);
  }

  /// Adds those elements of the list `elements` that the value does not
  /// contain; a missing key counts as `[]`.
  pending<Written>
  add_to_set(std::string key, json elements, Options options = {}) const {
    return write(key, operation_kind::add_to_set, elements, nullptr, options);
  }

  /// Keeps the smaller of the value and `number`; a missing key gets `number`.
  pending<Written>
  min(std::string key, json number, Options options = {}) const {
    return write(key, operation_kind::min, number, nullptr, options);
  }

  /// Keeps the larger of the value and `number`; a missing key gets `number`.
  pending<Written>
  max(std::string key, json number, Options options = {}) const {
    return write(key, operation_kind::max, number, nullptr, options);
  }

  /// Replaces top-level keys of an object; null removes a key. A missing key
  /// counts as `{}`.
  pending<Written>
  merge(std::string key, json fields, Options options = {}) const {
    return write(key, operation_kind::merge, fields, nullptr, options);
  }

  /// Sets `desired` if the value equals `expected` (null: absent). Otherwise
  /// fails with `errc::conflict`.
  pending<Written> compare_and_set(std::string key,
                                   json expected,
                                   json desired,
                                   Options options = {}) const {
    return write(key,
                 operation_kind::compare_and_set,
                 desired,
                 std::move(expected),
                 options);
  }

  /// Changes the value by a function: calls `change` with the present value and
  /// writes the returned one, a null removes the key. If another change comes
  /// between, `change` is called again with the newer value, at most
  /// `retries_max` times; then it fails with `errc::conflict`. So no concurrent
  /// change is lost. An exception of `change` is the error of the call, and
  /// nothing is written: `errc::callback_failed`, or the `troupe::error` that
  /// was thrown. After `errc::store_failed` the outcome is unknown.
  ///
  /// `change` is called on the thread that blocks in `get` or `value`;
  /// otherwise on the caller's thread or on one of the runtime, where it must
  /// not block.
  pending<Written> update(std::string key,
                          state_update change,
                          std::size_t retries_max = 1'000) const {
    return pending<Written>(
      std::make_unique<detail::update_call<Handle, Written>>(
        self(), std::move(key), std::move(change), retries_max));
  }

protected:
  state_calls() = default;
  ~state_calls() = default;
  /// Copies a handle.
  state_calls(const state_calls&) = default;
  /// Moves a handle.
  state_calls(state_calls&&) noexcept = default;
  /// Copies a handle.
  state_calls& operator=(const state_calls&) = default;
  /// Moves a handle.
  state_calls& operator=(state_calls&&) noexcept = default;

private:
  const Handle& self() const { return static_cast<const Handle&>(*this); }

  template <class T, class Read>
  pending<T> read(std::string key, Read take) const {
    using snapshot_type = typename Handle::snapshot_type;
    auto checked = self().check_read(key);
    auto convert = [key = std::move(key),
                    take = std::move(take),
                    checked = std::move(checked)](
                     result<snapshot_type> newest) -> result<T> {
      if (!checked)
        return checked.error();
      if (!newest)
        return newest.error();
      try {
        return take(Handle::state_in(*newest), key);
      } catch (const error& failure) {
        return failure;
      }
    };
    using made = detail::converted_call<T, snapshot_type, decltype(convert)>;
    return pending<T>(
      std::make_unique<made>(self().snapshot(), std::move(convert)));
  }

  // Takes over its arguments.
  pending<Written> write(std::string& key,
                         operation_kind kind,
                         json& operand,
                         json expected,
                         Options& options) const {
    return self().write(std::move(key),
                        kind,
                        std::move(operand),
                        std::move(expected),
                        std::move(options));
  }
};

} // namespace troupe

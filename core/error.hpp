// Failures as a stable code and one line of reason.
//
// Expected failures are returned as `result<T>`. `error` is thrown where a
// coroutine or an iterator cannot return a result. The codes are part of the
// interface: their names appear on the command line and never change.

#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

/// The kind of a failure. Each comment says how the caller can react.
enum class errc : std::uint8_t {
  invalid_argument, ///< The input violates a rule; correct it.
  type_error, ///< An operation met a value of another type, or overflowed.
              ///< Nothing changed; correct the operation.
  too_large,  ///< A value, an event or a name exceeds its limit; split it.
  not_found,  ///< The app, user, session, agent or tool does not exist; create
              ///< it first.
  gone, ///< The revision or the event was deleted by a trim of its session;
        ///< read a later one.
  already_exists, ///< A session with this key exists; use it or choose another
                  ///< id.
  conflict, ///< A comparison failed, a revision is out of date, or an id came
            ///< again with other content; read again.
  busy,     ///< Too many requests are under way; retry later.
  store_failed,   ///< The store did not confirm. The outcome is unknown; retry
                  ///< with the same event id.
  corrupt,        ///< Stored data cannot be read back; restore it from a copy.
  template_error, ///< An instruction names a key that does not exist; set the
                  ///< key, or make it optional with `?`.
  model_failed,   ///< The model threw or reported an error; the message quotes
                  ///< it.
  tool_failed,    ///< A tool threw. It ends the run only if its options say so.
  callback_failed, ///< A callback, instruction provider or custom agent threw;
                   ///< correct it.
  circular_agent_call, ///< An agent was called while it is already on the call
                       ///< stack; change the agents.
  would_deadlock, ///< The call would wait for its own caller; await it instead
                  ///< of blocking.
  limit_exceeded, ///< A limit of the run was reached (model calls, depth);
                  ///< raise it in `run_options`.
  stuck_join,     ///< A join of a workflow waits for nodes that cannot run any
                  ///< more; change its edges, or set `join::on_missing`.
  deadline_exceeded, ///< A deadline or a time-out has passed; raise it, or try
                     ///< again.
  cancelled, ///< The run was cancelled, or its runtime or writer has stopped.
  internal,  ///< A defect of troupe; please report it.
};

/// Returns the stable name of the code, as in messages: `"not_found"`.
std::string_view to_string(errc code) noexcept;

/// Returns the code of that name; `errc::internal` if there is none.
errc errc_of(std::string_view name) noexcept;

/// A failure: its code, and a message that names the attempt and the objects.
/// Thrown where no `result` can be returned.
class error : public std::exception {
public:
  /// Makes a failure. `message` names the attempt and its objects.
  error(errc code, std::string message)
    : code_(code),
      message_(std::move(message)) {}

  /// Returns the kind of the failure; `errc` tells how to react.
  errc code() const noexcept { return code_; }

  /// Returns the reason for people, without the code.
  const std::string& message() const noexcept { return message_; }

  /// Returns the message alone; `to_string(error)` puts the code in front.
  const char* what() const noexcept override { return message_.c_str(); }

  friend bool operator==(const error& left, const error& right) noexcept {
    return left.code_ == right.code_ && left.message_ == right.message_;
  }

private:
  errc code_;
  std::string message_;
};

/// `"CODE: text"`.
std::string to_string(const error& failure);

/// A value or an error. `value()` throws the `troupe::error` if there is no
/// value.
template <class T>
class [[nodiscard]] result : public tl::expected<T, troupe::error> {
public:
  using tl::expected<T, troupe::error>::expected;

  /// Makes a failed result. Implicit, so that a function can return an `error`.
  result(troupe::error failure)
    : tl::expected<T, troupe::error>(tl::unexpect, std::move(failure)) {}

  /// Returns the value. Throws the `troupe::error` if there is none.
  template <class U = T>
  U& value() & {
    throw_if_failed();
    return **this;
  }

  /// Returns the value for reading. Throws the `troupe::error` if there is
  /// none.
  template <class U = T>
  const U& value() const& {
    throw_if_failed();
    return **this;
  }

  /// Moves the value out. Throws the `troupe::error` if there is none.
  template <class U = T>
  U value() && {
    throw_if_failed();
    return std::move(**this);
  }

  /// Gives access to a member of the value, which must be there.
  T* operator->() & { return tl::expected<T, troupe::error>::operator->(); }

  /// Gives access to a member of the value, which must be there.
  const T* operator->() const& {
    return tl::expected<T, troupe::error>::operator->();
  }

  /// Does not compile, since the member would be gone with the result, for
  /// example before the first round of a loop.
  template <class U = T>
  const U* operator->() const&& {
    static_assert(!std::is_same_v<U, T>,
                  "this result ends with the statement: keep it in a variable, "
                  "or write .value(), which throws the error of a failure, in "
                  "place of .get() and ->");
    return nullptr;
  }

private:
  void throw_if_failed() const {
    if (!this->has_value())
      throw this->error();
  }
};

/// Success without a value, or an error.
template <>
class [[nodiscard]] result<void> : public tl::expected<void, troupe::error> {
public:
  using tl::expected<void, troupe::error>::expected;

  result() = default;

  /// Makes a failed result. Implicit, so that a function can return an `error`.
  result(troupe::error failure)
    : tl::expected<void, troupe::error>(tl::unexpect, std::move(failure)) {}

  /// Does nothing after a success. Throws the `troupe::error` after a failure.
  void value() const {
    if (!has_value())
      throw this->error();
  }
};

} // namespace troupe

// What can go wrong, as a stable code and one line of reason.
//
// Expected failures travel as `result<T>`; `error` is also what is thrown where
// a coroutine or an iterator has no result to give. The codes are part of the
// interface: their names appear on the command line and never change.

#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Why a call failed. The comment beside each says what the caller can do.
enum class errc : std::uint8_t {
  invalid_argument, ///< The input breaks a rule; fix the input.
  type_error, ///< An operation met a value of another type, or overflowed;
              ///< nothing changed.
  too_large,  ///< A value, an event or a name is over its limit; split it.
  not_found,  ///< The app, user, session, agent or tool does not exist; create
              ///< it first.
  already_exists, ///< A session with this key is live; use it or choose another
                  ///< id.
  conflict, ///< A compare failed, a revision moved on, or an id came twice with
            ///< other content; read again.
  busy,     ///< Too much is under way; try again when some of it is done.
  store_failed,    ///< The store did not confirm; the outcome is unknown, retry
                   ///< with the same event id.
  corrupt,         ///< Stored data does not read back; restore it from a copy.
  template_error,  ///< An instruction names a key that does not exist.
  model_failed,    ///< The model threw or reported an error.
  tool_failed,     ///< A tool threw and was told to end the run.
  callback_failed, ///< A callback, instruction provider or custom agent threw.
  circular_agent_call, ///< An agent was called while already on the call stack.
  would_deadlock, ///< The call waits for something that waits for the caller.
  limit_exceeded, ///< A limit of the run was reached (model calls, depth);
                  ///< raise it in `run_options`.
  deadline_exceeded, ///< The run's deadline passed.
  cancelled, ///< The run was cancelled, or its runtime or writer has stopped.
  internal,  ///< A defect of troupe; please report it.
};

/// The code's stable name, as it appears in messages: `"not_found"`.
std::string_view to_string(errc code) noexcept;

/// The code of that name, or `errc::internal` if there is none.
errc errc_of(std::string_view name) noexcept;

/// A failure: its code and what was being attempted, with names. Thrown as it
/// is where there is no `result` to return.
class error : public std::exception {
public:
  error(errc code, std::string message)
    : code_(code),
      message_(std::move(message)) {}

  errc code() const noexcept { return code_; }

  const std::string& message() const noexcept { return message_; }

  /// The message alone; `to_string(error)` has the code in front.
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

/// A value or the error that took its place. `value()` throws that
/// `troupe::error`.
template <class T>
class [[nodiscard]] result : public tl::expected<T, troupe::error> {
public:
  using tl::expected<T, troupe::error>::expected;

  result(troupe::error failure)
    : tl::expected<T, troupe::error>(tl::unexpect, std::move(failure)) {}

  template <class U = T>
  U& value() & {
    throw_if_failed();
    return **this;
  }

  template <class U = T>
  const U& value() const& {
    throw_if_failed();
    return **this;
  }

  template <class U = T>
  U value() && {
    throw_if_failed();
    return std::move(**this);
  }

private:
  void throw_if_failed() const {
    if (!this->has_value())
      throw this->error();
  }
};

template <>
class [[nodiscard]] result<void> : public tl::expected<void, troupe::error> {
public:
  using tl::expected<void, troupe::error>::expected;

  result() = default;

  result(troupe::error failure)
    : tl::expected<void, troupe::error>(tl::unexpect, std::move(failure)) {}

  void value() const {
    if (!has_value())
      throw this->error();
  }
};

} // namespace troupe

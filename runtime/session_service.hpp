// Sessions as users hold them: create, read, list, append, delete; from any
// thread, three ways each.
//
// A call without a completion blocks its thread until the owners have answered.
// With a completion it returns at once, and the completion runs on a thread of
// the runtime, or inside of the call when that is refused at the entry: it must
// not block. The `_async` form is for `co_await`: a
// coroutine of an agent goes on on its lane, any other on a thread of the
// runtime.

#pragma once

#include "troupe/contexts/task.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/session_request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// What a coroutine awaits to get a `result<T>`; the call starts when it is
/// awaited.
template <class T, class Start>
class [[nodiscard]] pending {
public:
  explicit pending(Start start) : start_(std::move(start)) {}

  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;

  bool await_ready() const noexcept { return false; }

  bool await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    lane_ = executor::current();
    // One pointer fits into the function object without an allocation.
    start_(completion<T>([this](result<T> answer) {
      answer_.emplace(std::move(answer));
      if (!met_.exchange(true, std::memory_order_acq_rel))
        return; // The coroutine has not suspended yet, and now need not.
      if (lane_ != nullptr)
        lane_->post(waiting_);
      else
        waiting_.resume();
    }));
    return !met_.exchange(true, std::memory_order_acq_rel);
  }

  result<T> await_resume() { return std::move(*answer_); }

private:
  Start start_;
  std::optional<result<T>> answer_;
  std::coroutine_handle<> waiting_;
  executor* lane_ = nullptr;
  std::atomic<bool> met_{
    false}; // By the answer or the suspension, whichever is first.
};

class session_state;
class session_writer;

namespace detail {
class session_backend;
}

/// All members are thread-safe. Ids are trimmed and checked on every call
/// (`errc::invalid_argument`); a blocking call from a thread that the answer
/// needs is `errc::would_deadlock`; after shutdown every call is
/// `errc::cancelled`.
class session_service {
public:
  explicit session_service(std::shared_ptr<detail::session_backend> backend);

  /// Creates a session. Its initial state is split by scope and is revision 0,
  /// not an event. Fails with `errc::already_exists` if the key is live; of
  /// racing creators one succeeds.
  result<session> create(create_request request);
  void create(create_request request, completion<session> done);

  auto create_async(create_request request) {
    return pending<session, std::function<void(completion<session>)>>(
      [this, request = std::move(request)](completion<session> done) {
        create(request, std::move(done));
      });
  }

  /// One consistent cut over session, user and app. Fails with
  /// `errc::not_found`.
  result<session> get(const session_key& key, get_options options = {});
  void
  get(const session_key& key, get_options options, completion<session> done);

  auto get_async(session_key key, get_options options = {}) {
    auto start
      = [this, key = std::move(key), options](completion<session> done) {
          get(key, options, std::move(done));
        };
    return pending<session, decltype(start)>(std::move(start));
  }

  /// Sessions of an app, or of one of its users; none is no error. Fails with
  /// `errc::invalid_argument` on a foreign cursor.
  result<session_page> list(const list_request& request);
  void list(const list_request& request, completion<session_page> done);

  auto list_async(list_request request) {
    auto start
      = [this, request = std::move(request)](completion<session_page> done) {
          list(request, std::move(done));
        };
    return pending<session_page, decltype(start)>(std::move(start));
  }

  /// Appends `said` to the session, applies its delta in all scopes at once,
  /// and gives the event as stored.
  ///
  /// Missing id, timestamp and invocation id are filled in; `temp:` keys are
  /// dropped; `said` itself never changes. Calls from one thread on one session
  /// take effect in call order. A partial event is given back and changes
  /// nothing. An event whose id the session remembers is not applied again: the
  /// answer is the stored one.
  ///
  /// Fails with `errc::not_found`, `errc::conflict`, `errc::type_error`,
  /// `errc::too_large`, `errc::busy` (try again later); nothing is applied
  /// then. Scope rules follow ADK.
  result<event_ptr>
  append_event(const session_key& key, event said, append_options options = {});
  void append_event(const session_key& key,
                    event said,
                    append_options options,
                    completion<event_ptr> done);

  auto
  append_event_async(session_key key, event said, append_options options = {}) {
    auto start = [this, key = std::move(key), said = std::move(said), options](
                   completion<event_ptr> done) mutable {
      append_event(key, std::move(said), options, std::move(done));
    };
    return pending<event_ptr, decltype(start)>(std::move(start));
  }

  /// The same for an event that is shared already; it is stored as it is when
  /// nothing is missing in it.
  result<event_ptr> append_event(const session_key& key,
                                 event_ptr said,
                                 append_options options = {});
  void append_event(const session_key& key,
                    event_ptr said,
                    append_options options,
                    completion<event_ptr> done);

  auto append_event_async(session_key key,
                          event_ptr said,
                          append_options options = {}) {
    auto start = [this, key = std::move(key), said = std::move(said), options](
                   completion<event_ptr> done) mutable {
      append_event(key, std::move(said), options, std::move(done));
    };
    return pending<event_ptr, decltype(start)>(std::move(start));
  }

  /// Deletes a session; says whether there was one. A member of the session's
  /// order: what was appended before is answered, what comes behind gets
  /// `errc::not_found`. Cancels the session's runs and removes its
  /// artifacts; user and app state stay.
  result<bool> remove(const session_key& key);
  void remove(const session_key& key, completion<bool> done);

  auto remove_async(session_key key) {
    auto start = [this, key = std::move(key)](completion<bool> done) {
      remove(key, std::move(done));
    };
    return pending<bool, decltype(start)>(std::move(start));
  }

  /// Deletes a user's sessions, state and artifacts; says whether there was
  /// anything.
  result<bool> remove_user(const std::string& app, const std::string& user);
  void remove_user(const std::string& app,
                   const std::string& user,
                   completion<bool> done);

  auto remove_user_async(std::string app, std::string user) {
    auto start
      = [this, app = std::move(app), user = std::move(user)](
          completion<bool> done) { remove_user(app, user, std::move(done)); };
    return pending<bool, decltype(start)>(std::move(start));
  }

  /// The keys of one owner, without their prefix; `{}` if there are none.
  result<json> get_user_state(const std::string& app, const std::string& user);
  void get_user_state(const std::string& app,
                      const std::string& user,
                      completion<json> done);

  auto get_user_state_async(std::string app, std::string user) {
    auto start = [this, app = std::move(app), user = std::move(user)](
                   completion<json> done) {
      get_user_state(app, user, std::move(done));
    };
    return pending<json, decltype(start)>(std::move(start));
  }

  result<json> get_app_state(const std::string& app);
  void get_app_state(const std::string& app, completion<json> done);

  auto get_app_state_async(std::string app) {
    auto start = [this, app = std::move(app)](completion<json> done) {
      get_app_state(app, std::move(done));
    };
    return pending<json, decltype(start)>(std::move(start));
  }

  /// A live handle to the state of one session; checks nothing yet.
  session_state state(session_key key);

  /// A writer whose appends to the session stop at the first failure
  /// (runtime/session_writer.hpp); checks nothing yet.
  session_writer writer(session_key key);

private:
  std::shared_ptr<detail::session_backend> backend_;
};

/// A live view of one session's state: copies are views of the same owner.
/// Thread-safe; each call blocks like the session service's. Each write is an
/// event by author `system`.
class session_state {
public:
  session_state(session_service service, session_key key)
    : service_(std::move(service)),
      key_(std::move(key)) {}

  const session_key& key() const noexcept { return key_; }

  /// The newest value, or nothing.
  result<std::optional<value>> get(std::string_view key);

  result<void> set(std::string_view key, json data);
  result<void> remove(std::string_view key);

  /// All scopes at one moment.
  result<readonly_state> snapshot();

private:
  result<void> write(std::string_view key, operation_kind kind, json operand);

  session_service service_;
  session_key key_;
};

} // namespace troupe

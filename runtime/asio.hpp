// Calls of troupe inside of Boost.Asio: `co_await` in a
// `boost::asio::awaitable`, and any other completion token.
//
//   boost::asio::awaitable<void> serve(troupe::runtime& runtime, …) {
//     auto held = co_await troupe::awaitable(runtime.sessions().get(key));
//     …
//   }
//
// Not part of troupe.hpp, since Boost.Asio takes long to compile. It is
// header-only; link no library of Boost.

#pragma once

#include "troupe/contexts/pending.hpp"

// Boost 1.74 looks for the coroutines of clang in a header that libstdc++ does
// not have. Must come before the headers of Boost.Asio.
#if defined(__clang__) && __has_include(<coroutine>)                           \
  && !defined(BOOST_ASIO_HAS_CO_AWAIT)
#define BOOST_ASIO_HAS_CO_AWAIT 1
#define BOOST_ASIO_HAS_STD_COROUTINE 1
#endif

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace troupe {

namespace detail {

// Starts a call, and passes its answer to a handler of Asio on the handler's
// executor. The executor counts as busy until then, so its `run` does not
// return.
template <class T>
struct asio_start {
  template <class Handler>
  void operator()(Handler&& handler, pending<T> call) const {
    using held = std::decay_t<Handler>;
    auto executor = boost::asio::get_associated_executor(handler);
    // A completion can be copied, a handler of Asio only moved.
    const auto kept = std::make_shared<held>(std::forward<Handler>(handler));
    auto work = boost::asio::make_work_guard(executor);
    call.then([kept, executor, work](result<T> answer) mutable {
      boost::asio::post(executor, [kept, answer = std::move(answer)]() mutable {
        std::move (*kept)(std::move(answer));
      });
      work.reset();
    });
  }
};

} // namespace detail

/// Starts the call, and completes `token` with its `result<T>` on the token's
/// executor. A token is a handler `void(result<T>)`, `boost::asio::use_future`
/// or a yield context. The threads of the runtime run no code of the caller.
template <class T, class Token>
auto async_answer(pending<T> call, Token&& token) {
  return boost::asio::async_initiate<Token, void(result<T>)>(
    detail::asio_start<T>(), token, std::move(call));
}

/// Starts the call when it is awaited inside of a `boost::asio::awaitable`, and
/// gives its `result<T>`. The coroutine continues on its own executor. It
/// cannot be cancelled there; end a run with `run::cancel`.
template <class T>
boost::asio::awaitable<result<T>> awaitable(pending<T> call) {
  return async_answer(std::move(call), boost::asio::use_awaitable);
}

} // namespace troupe

// Awaits calls of an installed troupe inside of Boost.Asio.

#include "troupe/runtime/asio.hpp"

#include "troupe/runtime/runtime.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace {

boost::asio::awaitable<void> count(troupe::runtime& runtime, int& counted) {
  const troupe::session_key key("press", "ann", "s");
  auto session
    = co_await troupe::awaitable(runtime.sessions().get_or_create(key));
  auto state = runtime.sessions().state(session.value().key());
  auto stored = co_await troupe::awaitable(state.add("n", 2));
  stored.value();
  auto found = co_await troupe::awaitable(state.get("n", 0));
  counted = found.value();
}

} // namespace

int main() {
  auto runtime = troupe::runtime::open().value();
  boost::asio::io_context context;
  int counted = 0;
  boost::asio::co_spawn(
    context, count(runtime, counted), boost::asio::detached);
  context.run();
  return counted == 2 ? 0 : 1;
}

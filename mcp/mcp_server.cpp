#include "troupe/mcp/mcp_server.hpp"

#include "troupe/core/key.hpp"
#include "troupe/mcp/server/agent_calls.hpp"
#include "troupe/mcp/server/exchange.hpp"
#include "troupe/mcp/server/line_reader.hpp"
#include "troupe/mcp/server/line_writer.hpp"
#include "troupe/mcp/server/offered_agent.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// A descriptor that becomes readable when it is raised, and stays so.
class flag {
public:
  flag() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  ~flag() { ::close(descriptor_); }

  flag(const flag&) = delete;
  flag& operator=(const flag&) = delete;

  void raise() const {
    const std::uint64_t one = 1;
    // Cannot fail: few threads raise it, once each.
    [[maybe_unused]] const auto written
      = ::write(descriptor_, &one, sizeof one);
  }

  int descriptor() const noexcept { return descriptor_; }

private:
  int descriptor_;
};

result<void> check(const mcp_server_options& options) {
  if (options.calls_max == 0 || options.message_bytes_max == 0)
    return error(errc::invalid_argument,
                 "calls_max and message_bytes_max of an MCP server must be "
                 "above 0");
  if (options.grace.count() < 0)
    return error(errc::invalid_argument,
                 "the grace period of an MCP server is negative");
  return {};
}

// Reads until the input ends, the output breaks, or the flag is raised.
result<void> read_messages(mcp::exchange& talk,
                           mcp::line_reader& input,
                           mcp::line_writer& output,
                           std::size_t bytes_max,
                           const std::stop_token& stop) {
  using outcome = mcp::line_reader::outcome;
  // A client that does not read its answers is not read either.
  while (output.wait_for_room(stop)) {
    const auto read = input.next();
    if (!read)
      return read.error();
    if (*read == outcome::line)
      talk.take(input.line());
    else if (*read == outcome::too_long)
      talk.refuse_long_message(bytes_max);
    else
      break;
  }
  return {};
}

} // namespace

result<void> serve_agent(runtime& on,
                         const agent& root,
                         mcp_server_options options,
                         std::stop_token stop) {
  if (options.app.empty())
    options.app = root.name();
  if (auto checked = check(options); !checked)
    return checked;
  if (auto named = check_key(session_key{options.app, options.user, "s"});
      !named)
    return named.error();
  using clock = std::chrono::steady_clock;
  const flag woken;
  const std::stop_callback stopped(stop, [&woken] { woken.raise(); });
  const mcp::offered_agent offered(root);
  std::stop_source broken;
  mcp::line_writer output(options.output, [&woken, &broken] {
    broken.request_stop();
    woken.raise();
  });
  mcp::agent_calls calls(on, offered, options, output);
  const std::stop_callback unheard(broken.get_token(),
                                   [&calls] { calls.cancel_all(); });
  mcp::exchange talk(offered, calls, output);
  mcp::line_reader input(
    options.input, woken.descriptor(), options.message_bytes_max);
  auto done
    = read_messages(talk, input, output, options.message_bytes_max, stop);
  const auto until = clock::now() + options.grace;
  // A stop that has caused this end does not shorten the grace period.
  const auto hurry = stop.stop_requested() ? std::stop_token() : stop;
  calls.wait(until, hurry);
  calls.cancel_all();
  calls.wait(clock::time_point::max(), {});
  output.finish(until, hurry);
  // The last answers may just have been given.
  output.finish(clock::now() + std::chrono::seconds(1), {});
  if (output.is_broken())
    return error(errc::cancelled, "the client has closed the output");
  return done;
}

} // namespace troupe

#include "tool_bench.hpp"

#include "troupe/agents/agent.hpp"
#include "troupe/core/processes/child_process.hpp"
#include "troupe/mcp/mcp_tools.hpp"
#include "troupe/runtime/runtime.hpp"

#include "measure.hpp"
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t at_once = 64;
constexpr std::size_t in_flight = 1'000;
constexpr std::size_t servers = 10;

troupe::mcp_source small_server() {
  troupe::mcp_source made;
  made.command = TROUPE_SMALL_SERVER;
  return made;
}

const troupe::tool& find(const troupe::tool_list& tools,
                         const std::string& name) {
  return *std::ranges::find(*tools, name, &troupe::tool::name);
}

std::vector<troupe::tool_call> calls_of(const troupe::tool& which,
                                        const troupe::json& args,
                                        std::size_t count) {
  std::vector<troupe::tool_call> calls(count);
  for (std::size_t index = 0; index < count; ++index) {
    calls[index].which = &which;
    calls[index].call = troupe::function_call(
      std::to_string(index), which.name(), troupe::value(args));
  }
  return calls;
}

void check(const std::vector<troupe::tool_call>& answered) {
  for (const auto& each : answered)
    each.outcome.value();
}

// Turns of 64 calls by one agent, until the time is over.
round_result call_by_agent(const troupe::tool_list& tools, double seconds) {
  const auto& echo = find(tools, "echo");
  const troupe::json args{{"text", "hello"}};
  round_result made;
  const auto root = troupe::custom(
    "caller", [&](troupe::invocation_context& context) -> troupe::agent_run {
      const stopwatch watch;
      while (watch.seconds() < seconds) {
        auto calls = calls_of(echo, args, at_once);
        const auto answered = co_await context.call(std::move(calls));
        check(answered);
        made.operations += at_once;
      }
      made.seconds = watch.seconds();
      made.cpu_seconds = watch.cpu_seconds();
    });
  auto on = troupe::runtime::open({.threads = 2}).value();
  const auto key = on.sessions().create({"app", "user", "s"}).value().key();
  troupe::run_options options;
  options.tool_calls_max = at_once;
  on.run(root, key, "go", options).wait().value();
  return made;
}

// A program that is spoken to without anything around it.
class bare_client {
public:
  bare_client()
    : child_(troupe::processes::start_program({TROUPE_SMALL_SERVER, {}, {}, {}})
               .value()) {}

  bare_client(const bare_client&) = delete;
  bare_client& operator=(const bare_client&) = delete;

  ~bare_client() {
    child_.input = {};
    troupe::processes::reap(child_.pid);
  }

  round_result call(double seconds) {
    round_result made;
    const stopwatch watch;
    while (watch.seconds() < seconds) {
      for (std::size_t index = 0; index < at_once; ++index)
        write(fmt::format(
          R"({{"id":{},"jsonrpc":"2.0","method":"tools/call","params":)"
          R"({{"arguments":{{"text":"hello"}},"name":"echo"}}}})"
          "\n",
          index));
      read_lines(at_once);
      made.operations += at_once;
    }
    made.seconds = watch.seconds();
    made.cpu_seconds = watch.cpu_seconds();
    return made;
  }

private:
  void write(const std::string& line) {
    if (::write(child_.input.number(), line.data(), line.size())
        != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("the server does not read");
  }

  void read_lines(std::size_t count) {
    std::array<char, 65'536> piece{};
    while (count > 0) {
      const auto size
        = ::read(child_.output.number(), piece.data(), piece.size());
      if (size <= 0)
        throw std::runtime_error("the server has ended");
      count -= static_cast<std::size_t>(
        std::count(piece.begin(), piece.begin() + size, '\n'));
    }
  }

  troupe::processes::child_process child_;
};

// The server answers when all of the calls have come.
void call_many(const troupe::tool_list& tools) {
  const troupe::json args{{"count", in_flight}, {"name", "n"}};
  const auto root = troupe::custom(
    "caller", [&](troupe::invocation_context& context) -> troupe::agent_run {
      auto calls = calls_of(find(tools, "meet"), args, in_flight);
      const auto answered = co_await context.call(std::move(calls));
      check(answered);
    });
  auto on = troupe::runtime::open({.threads = 2}).value();
  const auto key = on.sessions().create({"app", "user", "s"}).value().key();
  troupe::run_options options;
  options.tool_calls_max = in_flight;
  const stopwatch watch;
  on.run(root, key, "go", options).wait().value();
  fmt::print(
    "  {} calls in flight on one connection: all answered, {:.1f} ms\n",
    in_flight,
    watch.seconds() * 1e3);
}

double start_time(std::size_t count) {
  const stopwatch watch;
  std::vector<troupe::toolset_ptr> started;
  for (std::size_t index = 0; index < count; ++index)
    started.push_back(troupe::mcp_tools(small_server()));
  for (const auto& each : started)
    each->tools({}).value();
  return watch.seconds() * 1e3;
}

} // namespace

void call_tools(std::size_t rounds, double seconds) {
  fmt::print("\ntools of an MCP server over stdio\n");
  const auto set = troupe::mcp_tools(small_server());
  const auto tools = set->tools({}).value();
  bare_client bare;
  const auto sides = alternate(rounds,
                               {[&] { return bare.call(seconds); },
                                [&] { return call_by_agent(tools, seconds); }});
  const auto each = [](const summary& side) { return 1e6 / side.rate; };
  fmt::print(
    "  {} calls at once, us per call: {:.1f} by lines alone, {:.1f} by "
    "an agent: {:.1f} more; {:.1f} us of CPU in this process\n",
    at_once,
    each(sides[0]),
    each(sides[1]),
    each(sides[1]) - each(sides[0]),
    sides[1].cpu);
  call_many(tools);
  std::vector<double> one;
  std::vector<double> ten;
  for (std::size_t round = 0; round < rounds; ++round) {
    one.push_back(start_time(1));
    ten.push_back(start_time(servers));
  }
  fmt::print("  start of one server {:.1f} ms, of {} servers {:.1f} ms\n",
             median(std::move(one)),
             servers,
             median(std::move(ten)));
}

} // namespace bench

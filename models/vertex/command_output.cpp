#include "troupe/models/vertex/command_output.hpp"

#include "troupe/core/processes/command_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <future>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t output_bytes_max = std::size_t{64} << 10U;

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** next = environ; *next != nullptr; ++next)
    all.emplace_back(*next);
  return all;
}

} // namespace

result<std::string> command_output(const std::vector<std::string>& command,
                                   std::chrono::milliseconds limit,
                                   const std::stop_token& stop) {
  std::promise<result<std::string>> ended;
  auto outcome = ended.get_future();
  processes::command_run printing(
    {.command = command.front(),
     .args = {command.begin() + 1, command.end()},
     .environment = whole_environment(),
     .folder = {}},
    {},
    {.output_bytes_max = output_bytes_max, .output_is_secret = true},
    [&ended](result<std::string> printed) {
      ended.set_value(std::move(printed));
    });
  const auto stop_for = [&](errc code, std::string_view reason) {
    printing.stop(
      error(code, fmt::format("the program '{}' {}", command.front(), reason)));
  };
  printing.start();
  const std::stop_callback stopped(
    stop, [&stop_for] { stop_for(errc::cancelled, "was cancelled"); });
  if (outcome.wait_for(limit) != std::future_status::ready)
    stop_for(errc::model_failed, "did not end in time");
  auto printed = outcome.get();
  if (printed || printed.error().code() == errc::cancelled)
    return printed;
  return error(errc::model_failed, printed.error().message());
}

} // namespace troupe

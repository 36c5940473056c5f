#include "answering_process.hpp"

#include "../tests/models/http_server.hpp"
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>

namespace bench {

namespace {

using namespace std::chrono_literals;
using troupe::testing::served_request;
using troupe::testing::server_script;

std::chrono::nanoseconds now() {
  // This clock is the same in all processes of a machine.
  return std::chrono::steady_clock::now().time_since_epoch();
}

std::string event_saying(std::string_view text) {
  return fmt::format(
    R"(data: {{"id":"chatcmpl-1","object":"chat.completion.chunk",)"
    R"("created":1760000000,"model":"m","choices":[{{"index":0,)"
    R"("delta":{{"content":"{}"}},"finish_reason":null}}]}})"
    "\n\n",
    text);
}

std::string piece_of(std::string first) {
  for (auto more = answering_process::events / answering_process::pieces;
       more > 1;
       --more)
    first += event_saying(" a word");
  return troupe::testing::chunk(first);
}

std::string first_piece() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
         "Transfer-Encoding: chunked\r\n\r\n"
         + piece_of(event_saying(fmt::format("{} ", now().count())));
}

std::string next_piece() {
  return piece_of(event_saying(" a word"));
}

std::string last_piece() {
  return next_piece()
         + troupe::testing::chunk(
           R"(data: {"model":"m","choices":[{"index":0,"delta":{},)"
           R"("finish_reason":"stop"}],"usage":{"prompt_tokens":40,)"
           R"("completion_tokens":20,"total_tokens":60}})"
           "\n\ndata: [DONE]\n\n")
         + "0\r\n\r\n";
}

server_script answer_to(const served_request& asked) {
  using troupe::testing::say_now;
  using troupe::testing::wait_for;
  if (asked.line.starts_with("POST /silent/"))
    return {troupe::testing::hold()};
  const auto first
    = asked.line.starts_with("POST /spread/")
        ? std::chrono::milliseconds(50 + asked.connection * 37 % 101)
        : 100ms;
  server_script script{wait_for(first), say_now(first_piece)};
  for (auto more = answering_process::pieces - 2; more > 0; --more) {
    script.push_back(wait_for(10ms));
    script.push_back(say_now(next_piece));
  }
  script.push_back(wait_for(10ms));
  script.push_back(say_now(last_piece));
  return script;
}

[[noreturn]] void answer(int told, int lifeline) {
  {
    const troupe::testing::http_server server(answer_to);
    const int port = server.port();
    if (::write(told, &port, sizeof port) != sizeof port)
      ::_exit(1);
    char nothing = 0;
    while (::read(lifeline, &nothing, 1) < 0 && errno == EINTR) {
    }
  }
  ::_exit(0);
}

} // namespace

answering_process::answering_process() {
  int told[2];
  int lifeline[2];
  if (::pipe(told) != 0 || ::pipe(lifeline) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  process_ = ::fork();
  if (process_ < 0)
    throw std::system_error(errno, std::generic_category(), "fork");
  if (process_ == 0) {
    ::close(lifeline[1]);
    answer(told[1], lifeline[0]);
  }
  ::close(told[1]);
  ::close(lifeline[0]);
  lifeline_ = lifeline[1];
  const auto size = ::read(told[0], &port_, sizeof port_);
  ::close(told[0]);
  if (size != sizeof port_)
    throw std::system_error(EPIPE, std::generic_category(), "the server");
}

answering_process::~answering_process() {
  ::close(lifeline_);
  ::waitpid(process_, nullptr, 0);
}

void answering_process::wait_until_idle() const {
  namespace fs = std::filesystem;
  constexpr std::ptrdiff_t own = 50;
  const auto held = fs::path("/proc") / std::to_string(process_) / "fd";
  while (std::distance(fs::directory_iterator(held), fs::directory_iterator())
         > own)
    std::this_thread::sleep_for(10ms);
}

std::string answering_process::url(const char* path) const {
  return fmt::format("http://127.0.0.1:{}/{}", port_, path);
}

std::chrono::nanoseconds age_of(const std::string& text) {
  std::int64_t sent = 0;
  const auto read
    = std::from_chars(text.data(), text.data() + text.size(), sent);
  return read.ec == std::errc() ? now() - std::chrono::nanoseconds(sent)
                                : std::chrono::nanoseconds(-1);
}

} // namespace bench

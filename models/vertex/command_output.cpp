#include "troupe/models/vertex/command_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t output_bytes_max = std::size_t{64} << 10U;
// The longest time until a stop is noticed.
constexpr int slice_ms = 50;

// Both ends of a pipe, which are closed with it.
class pipe_pair {
public:
  pipe_pair() { is_open_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }

  pipe_pair(const pipe_pair&) = delete;
  pipe_pair& operator=(const pipe_pair&) = delete;

  ~pipe_pair() {
    close_end(0);
    close_end(1);
  }

  bool is_open() const { return is_open_; }

  int read_end() const { return ends_[0]; }

  int write_end() const { return ends_[1]; }

  void close_write_end() { close_end(1); }

  // Appends the bytes that are there. Returns false at the end.
  bool read(std::string& into) {
    std::array<char, 4096> bytes{};
    const auto count = ::read(ends_[0], bytes.data(), bytes.size());
    if (count < 0)
      return errno == EINTR;
    into.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

private:
  void close_end(std::size_t which) {
    if (is_open_ && ends_[which] >= 0)
      ::close(std::exchange(ends_[which], -1));
  }

  std::array<int, 2> ends_{-1, -1};
  bool is_open_ = false;
};

// The settings of a start: the three descriptors, a process group of its own,
// and no blocked or ignored signals.
class start_settings {
public:
  start_settings(const pipe_pair& output, const pipe_pair& errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(
      &actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(
      &actions_, output.write_end(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(
      &actions_, errors.write_end(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK
                               | POSIX_SPAWN_SETSIGDEF);
  }

  start_settings(const start_settings&) = delete;
  start_settings& operator=(const start_settings&) = delete;

  ~start_settings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // Returns 0, or the number of the failure.
  int start(std::vector<std::string> command, pid_t& child) const {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (auto& each : command)
      words.push_back(each.data());
    words.push_back(nullptr);
    return ::posix_spawnp(
      &child, words[0], &actions_, &attributes_, words.data(), environ);
  }

private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::string last_line(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ')
    text.remove_suffix(1);
  const auto start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text
                                                     : text.substr(start + 1));
}

int reap_status(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Waits for the end of a program that may have closed its pipes before. Returns
// the reason to kill it, or its status.
result<int>
status_of(pid_t child, clock::time_point due, const std::stop_token& stop) {
  for (;;) {
    int status = 0;
    const auto ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child)
      return status;
    if (ended < 0 && errno != EINTR)
      return error(errc::model_failed, std::generic_category().message(errno));
    if (stop.stop_requested())
      return error(errc::cancelled, "it was cancelled");
    if (clock::now() >= due)
      return error(errc::model_failed, "it did not end in time");
    ::poll(nullptr, 0, slice_ms);
  }
}

// Reads both pipes to their ends. Returns the reason to kill the program, or
// success.
result<void> read_all(pipe_pair& output,
                      pipe_pair& errors,
                      std::string& printed,
                      std::string& said,
                      clock::time_point due,
                      const std::stop_token& stop) {
  bool output_ended = false;
  bool errors_ended = false;
  while (!output_ended || !errors_ended) {
    if (stop.stop_requested())
      return error(errc::cancelled, "it was cancelled");
    if (clock::now() >= due)
      return error(errc::model_failed, "it did not end in time");
    std::array<pollfd, 2> polled{
      pollfd{output_ended ? -1 : output.read_end(), POLLIN, 0},
      pollfd{errors_ended ? -1 : errors.read_end(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), slice_ms) <= 0)
      continue;
    if (polled[0].revents != 0)
      output_ended = !output.read(printed);
    if (polled[1].revents != 0)
      errors_ended = !errors.read(said);
    if (printed.size() > output_bytes_max)
      return error(errc::model_failed, "it printed more than 64 KiB");
    if (said.size() > output_bytes_max)
      said.erase(0, said.size() - output_bytes_max);
  }
  return {};
}

} // namespace

result<std::string> command_output(const std::vector<std::string>& command,
                                   std::chrono::milliseconds limit,
                                   const std::stop_token& stop) {
  const auto failed = [&command](errc code, std::string_view why) {
    return error(code,
                 fmt::format("the program '{}': {}", command.front(), why));
  };
  pipe_pair output;
  pipe_pair errors;
  if (!output.is_open() || !errors.is_open())
    return failed(errc::model_failed, std::generic_category().message(errno));
  pid_t child = -1;
  if (const auto number = start_settings(output, errors).start(command, child);
      number != 0)
    return failed(errc::model_failed,
                  "it cannot be started: "
                    + std::generic_category().message(number));
  output.close_write_end();
  errors.close_write_end();
  std::string printed;
  std::string said;
  const auto due = clock::now() + limit;
  const auto read = read_all(output, errors, printed, said, due, stop);
  auto ended = read ? status_of(child, due, stop) : result<int>(read.error());
  if (!ended) {
    ::kill(-child, SIGKILL);
    reap_status(child);
    return failed(ended.error().code(), ended.error().message());
  }
  const auto status = *ended;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return printed;
  const auto how = WIFEXITED(status)
                     ? fmt::format("exit status {}", WEXITSTATUS(status))
                     : fmt::format("signal {}", WTERMSIG(status));
  const auto reason = last_line(said);
  return failed(errc::model_failed,
                reason.empty() ? how : fmt::format("{}: {}", how, reason));
}

} // namespace troupe

#include "program.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace troupe::testing {

namespace {

constexpr std::chrono::seconds program_time_max{180};

void close_once(int& descriptor) {
  if (descriptor >= 0)
    ::close(std::exchange(descriptor, -1));
}

[[noreturn]] void start(std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (auto& argument : arguments)
    words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  return ends;
}

} // namespace

program::program(std::vector<std::string> arguments,
                 screen shown,
                 const std::string& path) {
  arguments.insert(arguments.begin(), path.empty() ? TROUPE_PROGRAM : path);
  // The greatest memory of a child begins with that of its parent at this
  // moment, so what the test has freed is given back before.
  ::malloc_trim(0);
  std::signal(SIGPIPE, SIG_IGN);
  if (shown == screen::terminal) {
    pid_ = ::forkpty(&output_, nullptr, nullptr, nullptr);
    if (pid_ == 0)
      start(arguments);
    return;
  }
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(input[0], STDIN_FILENO);
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(errors[1], STDERR_FILENO);
    std::signal(SIGPIPE, SIG_DFL);
    start(arguments);
  }
  close_once(input[0]);
  close_once(output[1]);
  close_once(errors[1]);
  input_ = input[1];
  output_ = output[0];
  errors_ = errors[0];
}

program::~program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_input();
  close_output();
  close_once(errors_);
}

void program::write(std::string_view text) const {
  // The program reads from a terminal as if this was typed.
  const int target = input_ >= 0 ? input_ : output_;
  while (!text.empty()) {
    const auto written = ::write(target, text.data(), text.size());
    if (written <= 0)
      return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void program::close_input() {
  close_once(input_);
}

void program::close_output() {
  close_once(output_);
}

bool program::read_some() {
  if (output_ < 0 && errors_ < 0)
    return false;
  std::array<pollfd, 2> waiting{pollfd{output_, POLLIN, 0},
                                pollfd{errors_, POLLIN, 0}};
  const auto limit
    = std::chrono::duration_cast<std::chrono::milliseconds>(program_time_max)
        .count();
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(limit)) <= 0) {
    send(SIGKILL);
    return false;
  }
  const auto take = [](const pollfd& ready, int& source, std::string& target) {
    if (ready.revents == 0)
      return;
    std::array<char, 4096> piece;
    const auto count = ::read(source, piece.data(), piece.size());
    if (count > 0)
      target.append(piece.data(), static_cast<std::size_t>(count));
    else
      close_once(source); // The end of a terminal is an error.
  };
  take(waiting[0], output_, seen_.output);
  take(waiting[1], errors_, seen_.errors);
  return true;
}

bool program::read_until(std::string_view text) {
  while (seen_.output.find(text) == std::string::npos)
    if (!read_some())
      return false;
  return true;
}

bool program::read_next(std::string_view text) {
  for (auto at = seen_.output.find(text, read_);;
       at = seen_.output.find(text, read_)) {
    if (at != std::string::npos) {
      read_ = at + text.size();
      return true;
    }
    if (!read_some())
      return false;
  }
}

void program::send(int signal) const {
  ::kill(pid_, signal);
}

ended program::wait() {
  close_input();
  while (read_some()) {
  }
  reap();
  return seen_;
}

ended program::end_by(int signal) {
  send(signal);
  reap();
  return wait();
}

void program::reap() {
  if (pid_ < 0)
    return;
  int status = 0;
  rusage used{};
  ::wait4(std::exchange(pid_, -1), &status, 0, &used);
  seen_.memory_max = static_cast<std::size_t>(used.ru_maxrss) * 1'024;
  seen_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ended run_program(std::vector<std::string> arguments, std::string_view input) {
  program started(std::move(arguments));
  started.write(input);
  return started.wait();
}

scratch_folder::scratch_folder() {
  auto pattern
    = (std::filesystem::temp_directory_path() / "troupe.XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

scratch_folder::~scratch_folder() {
  std::filesystem::remove_all(path_);
}

std::string scratch_folder::write(const std::string& name,
                                  std::string_view text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return (path_ / name).string();
}

} // namespace troupe::testing

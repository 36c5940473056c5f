#include "child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <system_error>

namespace bench {

namespace {

[[noreturn]] void fail(int reason, const char* what) {
  throw std::system_error(reason, std::generic_category(), what);
}

pid_t spawn(const std::vector<std::string>& command, int output, bool drops) {
  std::vector<char*> arguments;
  for (const auto& each : command)
    arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (drops)
    for (const int each : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(
        &actions, each, "/dev/null", O_WRONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t started = -1;
  const int failed = ::posix_spawnp(
    &started, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    fail(failed, command.front().c_str());
  return started;
}

} // namespace

child_process::child_process(const std::vector<std::string>& command,
                             output kept) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail(errno, "pipe");
  output_ = ends[0];
  process_ = spawn(command, ends[1], kept == output::none);
  ::close(ends[1]);
}

child_process::~child_process() {
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
  ::close(output_);
}

std::string child_process::read_line() const {
  std::string line;
  char next = 0;
  while (::read(output_, &next, 1) == 1) {
    if (next == '\n')
      return line;
    line += next;
  }
  return line;
}

double child_process::cpu_seconds() const {
  clockid_t clock = 0;
  timespec used{};
  if (const int failed = ::clock_getcpuclockid(process_, &clock))
    fail(failed, "clock_getcpuclockid");
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec)
         + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::size_t child_process::resident_bytes() const {
  std::ifstream statm(fmt::format("/proc/{}/statm", process_));
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace bench

#include "troupe/core/processes/child_process.hpp"

#include "troupe/core/processes/running_children.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>

namespace troupe::processes {

namespace {

struct pipe_ends {
  descriptor read;
  descriptor write;
};

error start_failure(const program& started, int number) {
  return {
    errc::tool_failed,
    fmt::format("the program '{}' cannot be started{}: {}",
                started.command,
                started.folder.empty()
                  ? std::string()
                  : fmt::format(" in the folder '{}'", started.folder.string()),
                std::generic_category().message(number))};
}

// Returns 0, or the number of the failure.
int open_pipe(pipe_ends& made) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return errno;
  made.read = descriptor(ends[0]);
  made.write = descriptor(ends[1]);
  return 0;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (auto& each : texts)
    pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The header of glibc 2.36 declares `pidfd_open` for C only.
int open_handle(pid_t child) {
  return static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
}

class file_actions {
public:
  file_actions() { posix_spawn_file_actions_init(&actions_); }

  file_actions(const file_actions&) = delete;
  file_actions& operator=(const file_actions&) = delete;

  ~file_actions() { posix_spawn_file_actions_destroy(&actions_); }

  // Each call returns 0, or the number of the failure.
  int connect(const descriptor& from, int to) {
    return posix_spawn_file_actions_adddup2(&actions_, from.number(), to);
  }

  int enter(const std::filesystem::path& folder) {
    return posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }

  int close_others() {
    return posix_spawn_file_actions_addclosefrom_np(&actions_,
                                                    STDERR_FILENO + 1);
  }

  const posix_spawn_file_actions_t* get() const { return &actions_; }

private:
  posix_spawn_file_actions_t actions_;
};

class spawn_attributes {
public:
  // A process group of its own, no blocked signal, and the default effect of
  // all signals: those that this process blocks or ignores are its own matter.
  spawn_attributes() {
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

  spawn_attributes(const spawn_attributes&) = delete;
  spawn_attributes& operator=(const spawn_attributes&) = delete;

  ~spawn_attributes() { posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

private:
  posix_spawnattr_t attributes_;
};

} // namespace

result<child_process> start_program(const program& started) {
  pipe_ends input;
  pipe_ends output;
  pipe_ends errors;
  for (auto* each : {&input, &output, &errors})
    if (const int number = open_pipe(*each); number != 0)
      return start_failure(started, number);
  file_actions actions;
  int number = 0;
  const auto add = [&number](int outcome) {
    if (number == 0)
      number = outcome;
  };
  add(actions.connect(input.read, STDIN_FILENO));
  add(actions.connect(output.write, STDOUT_FILENO));
  add(actions.connect(errors.write, STDERR_FILENO));
  if (!started.folder.empty())
    add(actions.enter(started.folder));
  add(actions.close_others());
  if (number != 0)
    return start_failure(started, number);
  // The new folder is entered before the program is looked up.
  const auto command = started.command.find('/') == std::string::npos
                         ? started.command
                         : std::filesystem::absolute(started.command).string();
  std::vector<std::string> words{started.command};
  words.insert(words.end(), started.args.begin(), started.args.end());
  auto environment = started.environment;
  const auto arguments = pointers_to(words);
  const auto variables = pointers_to(environment);
  const spawn_attributes attributes;
  child_process made;
  number = running_children::all().start([&](pid_t& child) {
    const int failed = posix_spawnp(&child,
                                    command.c_str(),
                                    actions.get(),
                                    attributes.get(),
                                    arguments.data(),
                                    variables.data());
    made.pid = child;
    return failed;
  });
  if (number != 0)
    return start_failure(started, number);
  made.handle = descriptor(open_handle(made.pid));
  if (made.handle.number() < 0) {
    number = errno;
    signal_group(made.pid, SIGKILL);
    reap(made.pid);
    return start_failure(started, number);
  }
  made.input = std::move(input.write);
  made.output = std::move(output.read);
  made.errors = std::move(errors.read);
  return made;
}

process_end reap(pid_t child) {
  running_children::all().remove(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return {false, "an unknown end"};
  if (WIFSIGNALED(status))
    return {false, fmt::format("signal {}", WTERMSIG(status))};
  return {status == 0, fmt::format("exit status {}", WEXITSTATUS(status))};
}

void signal_group(pid_t child, int signal) noexcept {
  // 0 and 1 would mean this process's own group, and all processes.
  assert(child > 1);
  if (child > 1)
    ::kill(-child, signal);
}

} // namespace troupe::processes

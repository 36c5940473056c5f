// The list of child processes, and the end of all of them.

#include "troupe/core/processes/running_children.hpp"

#include <boost/test/unit_test.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

using troupe::processes::running_children;

BOOST_AUTO_TEST_SUITE(child_list, *boost::unit_test::timeout(60))

namespace {

using std::chrono::milliseconds;

// Starts a shell, as the leader of a process group.
int spawn_shell(pid_t& child, std::string script) {
  std::string shell = "sh";
  std::string option = "-c";
  const std::array<char*, 4> words{
    shell.data(), option.data(), script.data(), nullptr};
  const std::array<char*, 1> variables{nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawn(
    &child, "/bin/sh", nullptr, &attributes, words.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  return failed;
}

// Starts a program that waits, adds it to the list, and returns its id.
pid_t start_in(running_children& list, const std::string& script) {
  pid_t started = -1;
  const int failed = list.start([&](pid_t& child) {
    const int number = spawn_shell(child, script);
    started = child;
    return number;
  });
  BOOST_REQUIRE(failed == 0);
  return started;
}

// Waits for the end of a child, which stays a zombie.
void await_end(pid_t child) {
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
}

// Waits for a child; returns the signal that has ended it, or 0.
int signal_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(children_get_sigterm_and_time_to_end) {
  running_children list;
  const auto first = start_in(list, "exec sleep 600");
  const auto second = start_in(list, "exec sleep 600");
  int first_signal = 0;
  int second_signal = 0;
  // As the thread of a connection does.
  std::thread reaping([&] {
    await_end(first);
    list.remove(first);
    first_signal = signal_of(first);
    await_end(second);
    list.remove(second);
    second_signal = signal_of(second);
  });
  list.end(std::chrono::minutes(10)); // Returns before.
  reaping.join();
  BOOST_TEST(first_signal == SIGTERM);
  BOOST_TEST(second_signal == SIGTERM);
}

BOOST_AUTO_TEST_CASE(those_that_ignore_it_are_killed) {
  running_children list;
  std::array<int, 2> ready{};
  BOOST_REQUIRE(::pipe(ready.data()) == 0);
  // The program tells when it ignores the signal.
  const auto stubborn = start_in(
    list,
    "trap '' TERM; echo >&" + std::to_string(ready[1]) + "; exec sleep 600");
  char told = 0;
  BOOST_REQUIRE(::read(ready[0], &told, 1) == 1);
  list.end(milliseconds(1));
  BOOST_TEST(signal_of(stubborn) == SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
}

BOOST_AUTO_TEST_CASE(without_a_grace_all_are_killed_at_once) {
  running_children list;
  const auto child = start_in(list, "exec sleep 600");
  list.end(milliseconds(0));
  BOOST_TEST(signal_of(child) == SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_reaped_child_gets_no_signal) {
  running_children list;
  const auto removed = start_in(list, "exec sleep 600");
  list.remove(removed);
  list.end(milliseconds(0));
  BOOST_TEST(::waitpid(removed, nullptr, WNOHANG) == 0);
  ::kill(removed, SIGINT);
  BOOST_TEST(signal_of(removed) == SIGINT);
}

BOOST_AUTO_TEST_CASE(a_start_under_way_does_not_escape) {
  running_children list;
  pid_t late = -1;
  std::thread ending;
  const int failed = list.start([&](pid_t& child) {
    ending = std::thread([&list] { list.end(milliseconds(0)); });
    // The end has begun when starts are refused.
    while (list.start([](pid_t&) { return EAGAIN; }) != ECANCELED)
      std::this_thread::yield();
    const int number = spawn_shell(child, "exec sleep 600");
    late = child;
    return number;
  });
  ending.join();
  BOOST_TEST(failed == 0);
  BOOST_TEST(signal_of(late) == SIGKILL);
}

BOOST_AUTO_TEST_CASE(failed_starts_leave_nothing) {
  running_children list;
  BOOST_TEST(list.start([](pid_t&) { return ENOENT; }) == ENOENT);
  list.end(std::chrono::minutes(10)); // Does not wait.
  bool is_called = false;
  BOOST_TEST(list.start([&](pid_t&) {
    is_called = true;
    return 0;
  }) == ECANCELED);
  BOOST_TEST(!is_called);
}

BOOST_AUTO_TEST_SUITE_END()

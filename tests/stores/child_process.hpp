// Child processes of a test, made by fork.

#pragma once

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace troupe::testing {

/// Runs `body` in a child process, which fails if `body` throws.
inline pid_t start(const std::function<void()>& body) {
  const auto child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child != 0)
    return child;
  int status = 1;
  try {
    body();
    status = 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "child: %s\n", failure.what());
  }
  ::_exit(status);
}

/// Waits for the end of a child process; returns its status as `waitpid` does.
inline int await(pid_t child) {
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

} // namespace troupe::testing

// A process that works on a store until it ends or is killed.
//
// ledger_writer --store ADDRESS --ledger FOLDER [--seed N] [--sessions N]
// [--users N] [--run N] [--threads N] [--window N] [--events N] [--retries 1]
// [--small 1] [--durability NAME] [--file-bytes-max N]
//
// Prints "open" when the store is open, "ready" when the sessions exist, and
// "done" after the last event. With `--file-bytes-max` no file can grow beyond
// that size until an append has failed. Exit codes: 0, or 1 with the reason on
// stderr.

#include "troupe/runtime/runtime.hpp"

#include "ledger_load.hpp"
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

using namespace troupe;
using namespace troupe::testing;

namespace {

using options_by_name = std::map<std::string, std::string>;

std::uint32_t number_of(const options_by_name& given,
                        const std::string& name,
                        std::uint32_t otherwise) {
  const auto found = given.find(name);
  return found == given.end()
           ? otherwise
           : static_cast<std::uint32_t>(std::stoul(found->second));
}

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

int fail(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  return 1;
}

void limit_files(rlim_t bytes_max) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes_max;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

int work(const options_by_name& given) {
  runtime_options options;
  options.store = given.at("--store");
  options.threads = 2;
  options.append_wait_max = {}; // A slow machine refuses nothing.
  if (const auto name = given.find("--durability"); name != given.end())
    options.durability = durability_from(name->second).value();
  if (number_of(given, "--small", 0) != 0) {
    options.live_sessions_max = 2;
    options.events_kept = 4;
  }
  load_plan plan;
  plan.work.seed = number_of(given, "--seed", 1);
  plan.work.sessions = number_of(given, "--sessions", plan.work.sessions);
  plan.work.users = number_of(given, "--users", plan.work.users);
  plan.run = number_of(given, "--run", 0);
  plan.threads = number_of(given, "--threads", plan.threads);
  plan.window = number_of(given, "--window", plan.window);
  plan.events = number_of(given, "--events", 0);
  plan.retries = number_of(given, "--retries", 0) != 0;

  ledgers written(given.at("--ledger"));
  const auto bytes_max = number_of(given, "--file-bytes-max", 0);
  if (bytes_max != 0)
    limit_files(bytes_max);
  auto opened = runtime::open(options);
  if (!opened)
    return fail("open: " + to_string(opened.error()));
  say("open");
  ledger_load load(opened->sessions(), plan, written);
  if (const auto reason = load.create_sessions(); !reason.empty())
    return fail("create: " + reason);
  say("ready");
  {
    const std::jthread watcher([&load, bytes_max](std::stop_token stopped) {
      while (bytes_max != 0 && load.failed() == 0 && !stopped.stop_requested())
        std::this_thread::yield();
      if (bytes_max != 0) {
        say(load.failed() == 0 ? "never full" : "was full");
        limit_files(RLIM_INFINITY);
      }
    });
    load.work();
  }
  const auto closed = opened->shut_down();
  // A PostgreSQL server may be down at this moment; everything acknowledged is
  // stored already.
  if (!closed
      && !(plan.retries && given.at("--store").starts_with("postgres:")))
    return fail("close: " + to_string(closed.error()));
  const auto surprises = load.surprises();
  if (!surprises.empty())
    return fail("append: " + surprises.front());
  say("done");
  return 0;
}

} // namespace

int main(int count, char** words) {
  options_by_name given;
  for (int index = 1; index + 1 < count; index += 2)
    given[words[index]] = words[index + 1];
  try {
    return work(given);
  } catch (const std::exception& failure) {
    return fail(failure.what());
  }
}

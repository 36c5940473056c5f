// A folder with a store and the ledgers of the events sent to it, and processes
// that work on it.

#pragma once

#include "../../cli/program.hpp"
#include "../../random.hpp"
#include "ledger_check.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Settings of one process that works on a place.
struct writer_options {
  std::uint32_t run = 0;
  std::uint32_t threads = 4;
  std::uint32_t window = 1;
  std::uint32_t events = 0; ///< Events per thread; 0: until it is killed.
  bool retries = false;
  bool small = false; ///< Keeps as little as possible in memory.
  std::uint32_t file_bytes_max = 0;
};

class durable_place {
public:
  /// Makes a place with a new SQLite file.
  explicit durable_place(work_plan work)
    : work_(work),
      store_("sqlite:" + folder_.path() + "/store/sessions.db"),
      written_(ledger_folder()) {
    std::filesystem::create_directory(store_folder());
  }

  durable_place(work_plan work, std::string store)
    : work_(work),
      store_(std::move(store)),
      written_(ledger_folder()) {}

  /// The command line of a process. It prints "open", then "ready".
  std::vector<std::string> words(const writer_options& how) const {
    return {"--store",
            store_,
            "--ledger",
            folder_.path(),
            "--durability",
            "durable",
            "--seed",
            std::to_string(work_.seed),
            "--sessions",
            std::to_string(work_.sessions),
            "--users",
            std::to_string(work_.users),
            "--run",
            std::to_string(how.run),
            "--threads",
            std::to_string(how.threads),
            "--window",
            std::to_string(how.window),
            "--events",
            std::to_string(how.events),
            "--retries",
            how.retries ? "1" : "0",
            "--small",
            how.small ? "1" : "0",
            "--file-bytes-max",
            std::to_string(how.file_bytes_max)};
  }

  /// Checks the store against the ledgers; returns the violations as text,
  /// empty if there are none.
  std::string findings() {
    runtime_options options;
    options.store = store_;
    options.threads = 2;
    options.append_wait_max = {}; // A slow machine refuses nothing.
    // Retried events may be old: between two checks a fast machine appends more
    // events than the default number of remembered ids.
    options.remembered_ids = 1'000'000;
    std::string text;
    for (const auto& each : findings_at(options, work_, written_))
      text += "\n  " + each;
    return text;
  }

  std::size_t acknowledged() const {
    return written_.answered.records().size();
  }

  const work_plan& work() const noexcept { return work_; }

  const std::string& store() const noexcept { return store_; }

  std::string store_folder() const { return folder_.path() + "/store"; }

  ledgers& written() noexcept { return written_; }

private:
  std::string ledger_folder() const { return folder_.path(); }

  scratch_folder folder_;
  work_plan work_;
  std::string store_;
  ledgers written_;
};

/// Waits until the process has started its work.
inline void await_ready(program& writer) {
  if (!writer.read_until("ready"))
    BOOST_FAIL("no work: " << writer.wait().errors);
}

/// Sleeps for a random time, so that the next action hits a random moment.
inline void pass_time(random_source& random, std::size_t microseconds_max) {
  std::this_thread::sleep_for(
    std::chrono::microseconds(random.below(microseconds_max)));
}

/// Waits for the end of a process, which must not fail.
inline void check_end(program& writer) {
  const auto end = writer.wait();
  BOOST_TEST(end.code == 0);
  BOOST_TEST(end.errors == "");
}

/// Checks a place on which four processes have appended at the same time.
inline void check_four_writers(durable_place& place) {
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 4; ++run)
    writers.emplace_back(place.words({.run = run, .threads = 2, .events = 60}));
  for (auto& writer : writers)
    check_end(writer);
  BOOST_TEST(place.findings() == "");
}

/// Checks a place on which three processes have appended, while three others
/// were started and killed one after another.
inline void check_killed_writers(durable_place& place) {
  random_source random(place.work().seed);
  std::list<program> writers;
  for (std::uint32_t run = 0; run < 3; ++run)
    writers.emplace_back(
      place.words({.run = run, .threads = 2, .events = 60, .small = run == 1}));
  for (std::uint32_t run = 3; run < 6; ++run) {
    program victim(place.words({.run = run, .threads = 2, .window = 8}));
    await_ready(victim);
    pass_time(random, 100'000);
    victim.send(SIGKILL);
    BOOST_TEST(victim.wait().errors == "");
  }
  for (auto& writer : writers)
    check_end(writer);
  BOOST_TEST(place.findings() == "");
}

} // namespace troupe::testing

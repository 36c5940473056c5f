// A folder with a store and the ledgers of what was sent to it, and processes
// that work on it.

#pragma once

#include "../cli/program.hpp"
#include "../random.hpp"
#include "ledger_check.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Which processes work on a place, and how.
struct writer_options {
  std::uint32_t run = 0;
  std::uint32_t threads = 4;
  std::uint32_t window = 1;
  std::uint32_t events = 0; ///< Per thread; 0: until it is killed.
  bool retries = false;
  bool small = false; ///< Keeps next to nothing in memory.
  std::uint32_t file_bytes_max = 0;
};

class durable_place {
public:
  /// A SQLite file of its own.
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

  /// The words that start a process. It says "open", then "ready".
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

  /// What is wrong with the store, as text; empty when nothing is.
  std::string findings() {
    runtime_options options;
    options.store = store_;
    options.threads = 2;
    // What is sent again may be older than usual: between two checks a fast
    // machine appends more than are remembered otherwise.
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

/// Waits until the process is at work.
inline void await_ready(program& writer) {
  if (!writer.read_until("ready"))
    BOOST_FAIL("no work: " << writer.wait().errors);
}

/// Lets a random time pass: the moment after it is what a test is about.
inline void pass_time(random_source& random, std::size_t microseconds_max) {
  std::this_thread::sleep_for(
    std::chrono::microseconds(random.below(microseconds_max)));
}

} // namespace troupe::testing

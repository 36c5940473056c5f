// A process that starts or recovers the run of a session, until the run has
// ended or the process is killed.
//
// run_worker --store ADDRESS --calls FILE --tree NUMBER --lease MILLISECONDS
// --seed NUMBER --starts 0|1
//
// `--tree` is an index of `counted_trees()`. With `--starts 1` the process
// creates the session and starts the run if it is not there yet. Each step
// appends a line to the file of `--calls` before it begins: the step, its key
// and the run, separated by tabs.
//
// Prints "open" when the store is open, "started" when the message of the run
// is stored, "recovers" before each recovery, and "ended" at the end. Exit
// codes: 0 when the run has ended, or 1 with the reason on stderr.

#include "troupe/runtime/runtime.hpp"

#include "counted_trees.hpp"
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

using options_by_name = std::map<std::string, std::string>;

const session_key key{"press", "ann", "s"};

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

// Steps of random length, which are written to a file as they begin.
class file_world final : public outside_world {
public:
  file_world(const std::string& path, std::uint64_t seed)
    : file_(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
      engine_(seed) {
    if (file_ < 0)
      throw std::system_error(errno, std::generic_category(), path);
  }

  ~file_world() override { ::close(file_); }

  void note(const std::string& step,
            const std::string& of_step,
            const std::string& run) override {
    const auto line = step + "\t" + of_step + "\t" + run + "\n";
    // One call, so that lines of several processes do not mix.
    const auto written = ::write(file_, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size()))
      throw std::system_error(errno, std::generic_category(), "note");
  }

  void work() override { std::this_thread::sleep_for(delay()); }

  std::chrono::nanoseconds delay() override {
    const std::lock_guard guard(mutex_);
    // Most often short, sometimes longer than a commit.
    const auto most = engine_() % 4 == 0 ? 8'000'000U : 1'000'000U;
    return std::chrono::nanoseconds(engine_() % most);
  }

private:
  const int file_;
  std::mutex mutex_;
  std::mt19937_64 engine_;
};

class worker {
public:
  worker(runtime& on, const options_by_name& given)
    : on_(on),
      tree_(counted_trees().at(std::stoul(given.at("--tree")))),
      starts_(given.at("--starts") == "1"),
      root_(tree_.make(std::make_shared<file_world>(
        given.at("--calls"), std::stoull(given.at("--seed"))))) {}

  void work_until_end() {
    while (!is_over()) {
      // Only time ends a lease. The other process needs the processor, too.
      std::this_thread::sleep_for(3ms);
    }
  }

private:
  // Returns true if the run has ended. Starts or recovers it if that is
  // possible now.
  bool is_over() {
    const auto held = on_.sessions().get(key, {.num_recent_events = 1}).get();
    if (!held && held.error().code() != errc::not_found)
      throw held.error();
    if (!held || held->events().empty())
      return starts_ && start(!held);
    return recover();
  }

  bool start(bool creates) {
    if (creates)
      on_.sessions().create(create_request(key)).get().value();
    user_message message("go", tree_.delta);
    auto started = on_.run(root_, key, std::move(message), options());
    return follow(started);
  }

  bool recover() {
    const auto listed
      = on_.unfinished(key.app, {.with_own = true}).get().value();
    if (listed.empty())
      return true;
    const auto& found = listed.front();
    if (listed.size() > 1 || found.session != key)
      throw std::runtime_error("more than the one run is open");
    if (!found.is_free)
      return false;
    say("recovers");
    auto started = on_.recover(root_, key, found.invocation_id, options());
    return follow(started);
  }

  static run_options options() {
    run_options chosen;
    chosen.recoveries_max = 1'000'000;
    return chosen;
  }

  // Returns true if the run has come to its end here.
  static bool follow(troupe::run& started) {
    const auto first = started.next().get();
    if (first && *first)
      say("started");
    const auto ended
      = first ? started.wait().get() : result<void>(first.error());
    if (ended)
      return true;
    // Another process has the run, or it has ended since it was listed.
    const auto& why = ended.error();
    if (why.code() == errc::busy || why.code() == errc::not_found)
      return false;
    if ((why.code() == errc::conflict || why.code() == errc::cancelled)
        && why.message().find("another process has recovered")
             != std::string::npos)
      return false;
    throw why;
  }

  runtime& on_;
  const counted_tree& tree_;
  const bool starts_;
  const agent root_;
};

int work(const options_by_name& given) {
  runtime_options options;
  options.store = given.at("--store");
  options.threads = 2;
  options.tool_threads = 4;
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.run_lease
    = std::chrono::milliseconds(std::stoul(given.at("--lease")));
  auto on = runtime::open(std::move(options)).value();
  say("open");
  worker(on, given).work_until_end();
  on.shut_down().value();
  say("ended");
  return 0;
}

} // namespace

int main(int count, char** words) {
  options_by_name given;
  for (int index = 1; index + 1 < count; index += 2)
    given[words[index]] = words[index + 1];
  try {
    return work(given);
  } catch (const error& failure) {
    std::fprintf(stderr, "%s\n", to_string(failure).c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  return 1;
}

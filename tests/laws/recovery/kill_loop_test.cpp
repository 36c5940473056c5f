// Runs whose processes are killed again and again, over a real store. Other
// processes recover them, sometimes two at once, and sometimes while the former
// one is only stopped.
//
// `test_recovery --run_test=*/over_a_file_* -- KILLS SEED` does more of it; see
// kill_runs.

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/open_store.hpp"

#include "../../cli/program.hpp"
#include "../../random.hpp"
#include "../../stores/postgres_server.hpp"
#include "run_outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(killed_runs)

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::size_t lease = 100; // Milliseconds.
// After so many kills of one run its next process is left alone.
constexpr std::size_t kills_of_run_max = 12;

std::uint64_t argument(int index, std::uint64_t otherwise) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  return suite.argc > index ? std::stoull(suite.argv[index]) : otherwise;
}

// A random time, so that the next action hits a random moment.
void pass_time(random_source& random, std::size_t milliseconds_max) {
  std::this_thread::sleep_for(
    std::chrono::microseconds(random.below(milliseconds_max * 1'000)));
}

// A folder for the files of one run, which stays if the run has failed.
class run_folder {
public:
  run_folder() {
    auto name
      = (std::filesystem::temp_directory_path() / "killed-run-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }

  run_folder(const run_folder&) = delete;
  run_folder& operator=(const run_folder&) = delete;

  ~run_folder() {
    std::error_code ignored; // A folder that stays does no harm.
    if (is_done_)
      std::filesystem::remove_all(path_, ignored);
  }

  void done() noexcept { is_done_ = true; }

  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
  bool is_done_ = false;
};

// One run, its store, and the processes that work on it.
class killed_run {
public:
  // An empty store stands for a file in the folder of the run.
  killed_run(random_source& random, std::size_t tree, std::string store = {})
    : random_(random),
      tree_(tree),
      is_file_(store.empty()),
      store_(is_file_ ? "sqlite:" + folder_.path() + "/runs.db"
                      : std::move(store)) {}

  // Starts processes until the run has ended. Kills at most `kills_max` of
  // them; returns the number of those killed.
  std::size_t perform(std::size_t kills_max) {
    while (!has_ended_ && problems_.empty())
      go_on(kills_ < std::min(kills_max, kills_of_run_max));
    if (problems_.empty())
      check();
    return kills_;
  }

  // Describes all violations; empty, and the files are deleted, if there are
  // none.
  std::string findings() {
    if (problems_.empty()) {
      folder_.done();
      return {};
    }
    std::string all = "tree " + counted_trees()[tree_].name + ", "
                      + std::to_string(kills_) + " kills, files in "
                      + folder_.path() + ", store " + store_;
    for (const auto& each : problems_)
      all += "\n  " + each;
    return all;
  }

private:
  std::unique_ptr<program> start(bool starts) {
    const std::vector<std::string> words{
      "--store",
      store_,
      "--calls",
      calls_file(),
      "--tree",
      std::to_string(tree_),
      "--lease",
      std::to_string(lease),
      "--seed",
      std::to_string(random_.below(1U << 30U)),
      "--starts",
      starts ? "1" : "0"};
    return std::make_unique<program>(words);
  }

  // One process; behind the first one, sometimes with another one that wants
  // the run, too.
  void go_on(bool kills) {
    const auto one = start(true);
    std::unique_ptr<program> two;
    if (has_begun_ && random_.one_in(3))
      two = start(false);
    if (kills)
      disturb(*one, two != nullptr);
    end(*one, kills);
    if (two) {
      const bool kills_two = kills && random_.one_in(2);
      if (kills_two) {
        pass_time(random_, 100);
        two->send(SIGKILL);
      }
      end(*two, kills_two);
    }
  }

  void disturb(program& victim, bool has_rival) {
    // A server may still commit the message of a process that was killed, and
    // the next process would then start a second run.
    if (!has_begun_ && !is_file_ && !victim.read_until("started"))
      return;
    if (has_rival && random_.one_in(2)) {
      // Silent for longer than its lease, but alive.
      pass_time(random_, 200);
      victim.send(SIGSTOP);
      pass_time(random_, 4 * lease);
      victim.send(SIGCONT);
    }
    pass_time(random_, random_.one_in(4) ? 500 : 150);
    victim.send(SIGKILL);
  }

  void end(program& worker, bool may_be_killed) {
    const auto ended = worker.wait();
    if (ended.output.find("started") != std::string::npos)
      has_begun_ = true;
    if (ended.code == 0)
      has_ended_ = true;
    else if (ended.code == 128 + SIGKILL && may_be_killed)
      ++kills_;
    else
      problems_.push_back("a process has ended with "
                          + std::to_string(ended.code) + ": " + ended.errors);
  }

  std::string calls_file() const { return folder_.path() + "/calls"; }

  // Reads the calls of all processes of the run with this id.
  outside_calls read_calls(const std::string& run) {
    outside_calls calls;
    std::ifstream file(calls_file());
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string step;
      std::string key;
      std::string of;
      std::getline(words, step, '\t');
      std::getline(words, key, '\t');
      std::getline(words, of, '\t');
      if (!of.empty() && of != run)
        problems_.push_back("a step of another run: " + line);
      calls[step].insert(key);
    }
    return calls;
  }

  void add(const std::vector<std::string>& more) {
    problems_.insert(problems_.end(), more.begin(), more.end());
  }

  void check() {
    runtime_options options;
    options.store = store_;
    options.threads = 1;
    auto on = runtime::open(std::move(options)).value();
    const session_key key{"press", "ann", "s"};
    const auto held = on.sessions().get(key).get().value();
    const json state(held.state().all());
    const auto& expected = undisturbed_outcomes()[tree_].state;
    if (state != expected)
      problems_.push_back("the state is " + state.dump() + ", expected "
                          + expected.dump());
    add(compare_events(tree_, held));
    add(
      compare_calls(tree_, held, read_calls(held.events()[0]->invocation_id)));
    for (const auto& each : on.unfinished("").get().value())
      problems_.push_back("is open after its end: run " + each.invocation_id);
    on.shut_down().value();
    if (is_file_)
      add(open_store(store_).value()->check({}).value());
  }

  random_source& random_;
  const std::size_t tree_;
  const bool is_file_;
  run_folder folder_;
  const std::string store_;
  bool has_begun_ = false; // The message of the run is stored.
  bool has_ended_ = false;
  std::size_t kills_ = 0;
  std::vector<std::string> problems_;
};

// Performs runs until so many processes were killed.
template <class MakeStore>
void kill_many(std::size_t kills, std::uint64_t seed, MakeStore make_store) {
  random_source random(seed);
  std::size_t killed = 0;
  for (std::size_t number = 0; killed < kills; ++number) {
    const auto tree = number % counted_trees().size();
    killed_run one(random, tree, make_store(number));
    killed += one.perform(kills - killed);
    const auto findings = one.findings();
    BOOST_TEST_REQUIRE(findings.empty(),
                       "run " << number << " of seed " << seed << ": "
                              << findings);
    BOOST_TEST_MESSAGE(number + 1 << " runs, " << killed << " kills");
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(over_a_file_end_as_undisturbed_ones) {
  kill_many(argument(1, 40), argument(2, 20'262), [](std::size_t) {
    return std::string();
  });
}

BOOST_AUTO_TEST_CASE(over_a_server_end_as_undisturbed_ones) {
  const postgres_server server;
  kill_many(10, 20'263, [&server](std::size_t number) {
    return server.url("run" + std::to_string(number));
  });
}

// The comparison finds a run that lacks a step, has one twice, or has begun a
// step with another key.
BOOST_AUTO_TEST_CASE(an_outcome_of_another_tree_is_found) {
  runtime_options options;
  options.threads = 1;
  auto on = runtime::open(std::move(options)).value();
  const session_key key{"press", "ann", "s"};
  on.sessions().create(create_request(key)).get().value();
  const auto held = on.sessions().get(key).get().value();
  for (std::size_t tree = 0; tree < counted_trees().size(); ++tree) {
    const auto& expected = undisturbed_outcomes()[tree];
    const auto missing = compare_events(tree, held);
    BOOST_TEST(missing.size() == expected.events.size());
    BOOST_TEST(compare_calls(tree, held, {}).size() == expected.calls.size());
    BOOST_TEST(expected.state.size() > 2U);
  }
}

BOOST_AUTO_TEST_SUITE_END()

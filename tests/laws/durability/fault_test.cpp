// A SQLite store on a faulty disk: calls that fail at random, and power
// failures.

#include "troupe/stores/sqlite/open.hpp"

#include "../../outcome.hpp"
#include "../../stores/sqlite_file.hpp"
#include "durable_place.hpp"
#include "fault_vfs.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace troupe;
using namespace troupe::testing;

namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(faults, *boost::unit_test::timeout(120))

namespace {

// A low number, so that folding also meets faults.
constexpr std::int64_t fold_rows = 64;

// A place whose store is on a faulty disk, with a runtime on it.
class faulty_place : public durable_place {
public:
  faulty_place(work_plan work, std::uint64_t seed)
    : durable_place(work),
      disk(seed) {}

  runtime open(durability promised = durability::durable) const {
    runtime_options options;
    options.threads = 2;
    options.live_sessions_max = 3;
    options.append_wait_max = {}; // A slow machine refuses nothing.
    options.store = open_store(promised).value();
    return runtime::open(std::move(options)).value();
  }

  result<std::unique_ptr<troupe::store>> open_store(durability promised) const {
    return detail::open_sqlite_store({.file = store_folder() + "/sessions.db",
                                      .options = {.durability = promised},
                                      .vfs = disk.name(),
                                      .fold_rows = fold_rows});
  }

  fault_vfs disk;
};

std::string text_of_all(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& each : all)
    text += "\n  " + each;
  return text;
}

struct named_faults {
  const char* name;
  disk_faults faults;
};

std::ostream& operator<<(std::ostream& out, const named_faults& faults) {
  return out << faults.name;
}

const std::vector<named_faults> kinds_of_faults = {
  {"errors on writing", {.write_error = 60}},
  {"short writes", {.short_write = 60}},
  {"a full disk", {.disk_full = 60}},
  {"failed syncs", {.sync_error = 15}},
  {"errors on reading", {.read_error = 4, .failures_max = 40}},
  {"all of it",
   {.read_error = 200,
    .write_error = 200,
    .short_write = 200,
    .disk_full = 200,
    .sync_error = 60}},
};

} // namespace

BOOST_DATA_TEST_CASE(failed_appends_are_not_doubled_and_later_ones_work,
                     data::make(kinds_of_faults),
                     kind) {
  faulty_place place({.seed = 601, .sessions = 5, .users = 2}, 601);
  {
    auto on = place.open();
    ledger_load load(on.sessions(),
                     {.work = place.work(), .events = 150, .retries = true},
                     place.written());
    BOOST_TEST(load.create_sessions() == "");
    place.disk.fail(kind.faults);
    load.work();
    // Memory may have served all reads so far; opening the store reads from the
    // disk.
    while (kind.faults.read_error > 0 && place.disk.failures() == 0)
      static_cast<void>(place.open_store(durability::durable));
    place.disk.fail({});
    BOOST_TEST(place.disk.failures() > 0U);
    BOOST_TEST_MESSAGE(kind.name << ": " << place.disk.failures() << " faults, "
                                 << load.failed() << " failed appends");
    BOOST_TEST(text_of_all(load.surprises()) == "");
    BOOST_TEST(
      text_of_all(findings_of(on.sessions(), place.work(), place.written()))
      == "");
    BOOST_TEST(code_of(on.shut_down()) == "ok");
  }
  BOOST_TEST(place.findings() == "");
}

// A failed append that is not retried may be stored or not.
BOOST_AUTO_TEST_CASE(a_failed_append_may_be_left_alone) {
  faulty_place place({.seed = 602, .sessions = 5, .users = 2}, 602);
  {
    auto on = place.open();
    ledger_load load(on.sessions(),
                     {.work = place.work(), .window = 4, .events = 150},
                     place.written());
    BOOST_TEST(load.create_sessions() == "");
    place.disk.fail({.write_error = 100, .sync_error = 60});
    load.work();
    place.disk.fail({});
    BOOST_TEST(load.failed() > 0U);
    BOOST_TEST(
      text_of_all(findings_of(on.sessions(), place.work(), place.written()))
      == "");
  }
  BOOST_TEST(place.findings() == "");
}

BOOST_DATA_TEST_CASE(what_was_acknowledged_survives_power_failures,
                     data::xrange(3),
                     round) {
  const auto seed = static_cast<std::uint64_t>(610 + round);
  random_source random(seed);
  faulty_place place({.seed = seed, .sessions = 5, .users = 2}, seed);
  for (std::uint32_t run = 0; run < 8; ++run) {
    bool ended_early = false; // Before the syncs that the load should make.
    {
      auto on = place.open();
      ledger_load load(
        on.sessions(),
        {.work = place.work(), .run = run, .threads = 3, .retries = true},
        place.written());
      const auto enough = place.disk.syncs() + random.below(60);
      // The power fails after a number of syncs, while the threads are in the
      // middle of any action. A store that has lost data may refuse all work;
      // one that acknowledges more than syncs allow loses events now.
      std::atomic<bool> is_refused{false};
      std::jthread work([&load, &is_refused] {
        if (load.create_sessions().empty())
          load.work();
        else
          is_refused = true;
      });
      if (random.one_in(2))
        place.disk.fail({.sync_error = 40});
      while (place.disk.syncs() < enough && load.acknowledged() < 1'000
             && !is_refused)
        std::this_thread::yield();
      ended_early = place.disk.syncs() < enough;
      pass_time(random, 2'000);
      place.disk.cut_power();
      load.stop();
      work.join();
      (void)on.shut_down();
    }
    place.disk.fail({});
    place.disk.restore_power(random.one_in(2));
    const auto findings = place.findings();
    BOOST_TEST_REQUIRE(findings == "",
                       "run " << run << " of seed " << seed << findings);
    BOOST_TEST_REQUIRE(!ended_early, "run " << run << " of seed " << seed);
  }
}

// Shows that the case above can fail.
BOOST_AUTO_TEST_CASE(what_is_never_synced_does_not_survive_a_power_failure) {
  faulty_place place({.seed = 620, .sessions = 5, .users = 2}, 620);
  {
    auto on = place.open(durability::os);
    ledger_load load(
      on.sessions(), {.work = place.work(), .events = 20}, place.written());
    BOOST_TEST(load.create_sessions() == "");
    load.work();
    place.disk.cut_power();
    (void)on.shut_down();
  }
  place.disk.restore_power(true);
  BOOST_TEST(place.findings().find("lost: ") != std::string::npos);
}

// Cuts the power at each write and sync in turn, until the migration completes.
BOOST_FIXTURE_TEST_CASE(a_migration_is_all_or_nothing, sqlite_file) {
  fill(60);
  set_back_to(3);
  const auto older = folder.path() / "older.db";
  std::filesystem::copy_file(file, older);
  std::size_t unfinished = 0;
  std::size_t finished = 0;
  for (std::size_t changes = 0; finished < 2; ++changes) {
    std::filesystem::copy_file(
      older, file, std::filesystem::copy_options::overwrite_existing);
    fault_vfs disk(changes);
    disk.cut_power_after(changes);
    const bool is_open
      = detail::open_sqlite_store({.file = file, .vfs = disk.name()})
          .has_value();
    disk.cut_power();
    disk.restore_power(changes % 2 == 0);
    const auto layout = number("PRAGMA user_version");
    BOOST_TEST_REQUIRE((layout == 9 || (layout == 3 && !is_open)));
    finished += is_open ? 1U : 0U;
    unfinished += layout == 3 ? 1U : 0U;
    const auto opened = open();
    BOOST_TEST_REQUIRE(
      opened->load_session(ann, {}).value().value().scope.revision == 60U);
    BOOST_TEST_REQUIRE(opened->check({}).value().empty());
    opened->close().value();
    for (const auto* const log : {"-wal", "-shm"})
      std::filesystem::remove(file.string() + log);
  }
  BOOST_TEST(unfinished > 10U);
}

BOOST_AUTO_TEST_SUITE_END()

// Runtimes that stay open while their SQLite file is removed, replaced or
// restored. A file overwritten in place is tested in tests/stores: two stores
// of one process share SQLite's knowledge of such a file.

#include "troupe/stores/open_store.hpp"

#include "../../runtime/staged_store.hpp"
#include "../../stores/sqlite_copy.hpp"
#include "../../stores/temporary_folder.hpp"
#include "lost_history.hpp"
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(sqlite_lost_history, *boost::unit_test::timeout(120))

namespace {

struct watched_file : temporary_folder {
  fs::path file = path() / "s.db";
  fs::path copy = path() / "copy.db";
  std::string url = "sqlite:" + file.string();

  void remove_log() const {
    fs::remove(file.string() + "-wal");
    fs::remove(file.string() + "-shm");
  }

  void lose(const std::string& how) const {
    if (how == "restored")
      return copy_database(copy, file);
    remove_log();
    fs::rename(copy, file);
  }
};

} // namespace

BOOST_DATA_TEST_CASE_F(watched_file,
                       an_older_copy_leaves_no_false_answer,
                       boost::unit_test::data::make({"restored", "replaced"}),
                       how) {
  lose_under_two_runtimes(
    url,
    durability::durable,
    [this] { copy_database(file, copy); },
    [this, how = std::string(how)] { lose(how); });
}

BOOST_FIXTURE_TEST_CASE(a_removed_file_leaves_no_false_answer, watched_file) {
  warnings of_one;
  warnings of_other;
  {
    runtime_fixture one(of_one.options(url, durability::durable));
    runtime_fixture other(of_other.options(url, durability::durable));
    one.open();
    BOOST_TEST(one.append(here, counting("a")) == "ok");
    BOOST_TEST(other.append(here, counting("b")) == "ok");
    fs::remove(file);
    remove_log();
    BOOST_TEST(one.append(here, counting("c")) == "not_found");
    BOOST_TEST(code_of(one.sessions().get(here).get()) == "not_found");
    BOOST_TEST(other.append(here, counting("b")) == "not_found");
    other.open();
    BOOST_TEST(other.append(here, counting("b")) == "ok");
    for (auto* const each : {&one, &other}) {
      BOOST_TEST(each->state(here) == counted(1), each->state(here));
      BOOST_TEST(ids_of(each->events(here)) == std::vector<std::string>{"b"},
                 boost::test_tools::per_element());
    }
  }
  of_one.check({"2 commits", "a file has appeared"});
  of_other.check({"1 commit "});
  const auto stored = open_store(url, {.read_only = true}).value();
  BOOST_TEST(stored->check({}).value().empty());
}

// The parent loses its event between the two steps of a fork, and gets another
// one. It is at the same revision then, as the same incarnation.
BOOST_FIXTURE_TEST_CASE(a_fork_has_no_state_that_its_parent_lost,
                        watched_file) {
  const auto script = std::make_shared<store_script>();
  std::atomic<bool> is_armed = false;
  std::atomic<int> loads = 0;
  script->on_session_load = [&] {
    // The second load is that of the fork's key.
    if (!is_armed || loads.fetch_add(1) != 1)
      return;
    lose("replaced");
    runtime_options options;
    options.store = url;
    runtime_fixture other(options);
    BOOST_TEST(other.append(here, {{"topic", "bats"}}) == "ok");
  };
  runtime_options options;
  options.store
    = std::make_shared<staged_store>(open_store(url).value(), script);
  runtime_fixture on(options);
  on.open();
  copy_database(file, copy);
  BOOST_TEST(on.append(here, {{"topic", "owls"}}) == "ok");
  is_armed = true;
  const auto fork = on.sessions().fork(here, {}, "fork").get();
  BOOST_TEST(code_of(fork) == "ok", reason_of(fork));
  const auto made = on.fetch({"press", "ann", "fork"});
  BOOST_TEST(made.state().all() == replay(made.events()));
  BOOST_TEST(made.state().all() == json({{"topic", "bats"}}));
}

BOOST_AUTO_TEST_SUITE_END()

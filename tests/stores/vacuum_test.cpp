// A SQLite file after a vacuum, and after one that was refused or killed.

#include "troupe/stores/vacuum_store.hpp"

#include "child_process.hpp"
#include "refusing_disk.hpp"
#include "sqlite_file.hpp"
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

namespace {

store_change numbered(std::uint64_t number, const session_key& key) {
  store_change made;
  made.owner = {key.app, key.user, key.id};
  made.event = make_event(key.id + std::to_string(number), {{"n", number}});
  made.session_revision = number;
  return made;
}

// A file in which the user `zebra` was removed, and a session of `ann` that has
// a fork. The program was killed: the rows are still to be deleted.
struct file_with_rests : sqlite_file {
  file_with_rests() {
    const auto killed = open();
    for (const auto& key : {ann, zebra}) {
      std::vector<store_change> changes{creation(key)};
      for (std::uint64_t number = 1; number <= 200; ++number)
        changes.push_back(numbered(number, key));
      killed->commit(changes).value();
    }
    store_change fork = creation(forked);
    fork.event = make_event("", {{"n", 150}});
    fork.session_revision = 150;
    fork.past = shared_past{ann.id, 150};
    store_change user;
    user.kind = change_kind::remove_user;
    user.owner = {zebra.app, zebra.user};
    store_change parent;
    parent.kind = change_kind::remove;
    parent.owner = {ann.app, ann.user, ann.id};
    killed->commit(std::array{fork, user, parent}).value();
  }

  result<vacuumed_store> vacuum() const {
    return vacuum_store("sqlite:" + file.string());
  }

  bool holds(const std::string& bytes) const {
    for (const auto& each : fs::directory_iterator(folder.path())) {
      std::ifstream source(each.path(), std::ios::binary);
      std::ostringstream text;
      text << source.rdbuf();
      if (text.str().find(bytes) != std::string::npos)
        return true;
    }
    return false;
  }

  void expect_sound() const {
    const auto read = open();
    BOOST_TEST(read->check({}).value().empty());
    BOOST_TEST(read->load_events(forked, 1, 150).value().size() == 150U);
    BOOST_TEST(!read->load_session(zebra, {}).value());
    BOOST_TEST(read->close().has_value());
  }

  const session_key zebra{"press", "zebra", "stripes"};
  const session_key forked{"press", "ann", "fork"};
};

// The process ends at the write to a file with this number.
int writes_left = 0;

ssize_t write_or_die(int file, const void* bytes, std::size_t count, off_t at) {
  if (--writes_left == 0)
    ::_exit(9);
  return ::pwrite(file, bytes, count, at);
}

void die_at_write(int number) {
  writes_left = number;
  auto* const system = sqlite3_vfs_find(nullptr);
  for (const auto* const name : {"pwrite", "pwrite64"})
    system->xSetSystemCall(
      system, name, reinterpret_cast<sqlite3_syscall_ptr>(&write_or_die));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(vacuum, file_with_rests)

BOOST_AUTO_TEST_CASE(deletes_what_a_killed_program_has_left) {
  BOOST_TEST(number("SELECT count(*) FROM purges") == 3);
  BOOST_TEST(holds("stripes"));
  const auto sizes = vacuum().value();
  BOOST_TEST(sizes.bytes_after < sizes.bytes_before);
  BOOST_TEST(sizes.bytes_after == fs::file_size(file));
  BOOST_TEST(!holds("stripes"));
  BOOST_TEST(!holds("zebra"));
  // The events that a fork shares stay, the others go.
  BOOST_TEST(holds("s1150"));
  BOOST_TEST(!holds("s1151"));
  expect_sound();
}

BOOST_AUTO_TEST_CASE(leaves_a_whole_store_on_a_full_disk) {
  open()->close().value(); // Nothing is left to fold.
  {
    const refusing_disk full(refusing_disk::kind::full);
    BOOST_TEST(code_of(vacuum()) == "store_failed");
  }
  expect_sound();
  BOOST_TEST(code_of(vacuum()) == "ok");
  BOOST_TEST(!holds("stripes"));
}

// Killed at its first write, its second, its fourth, and so on.
BOOST_AUTO_TEST_CASE(leaves_a_whole_store_when_it_is_killed) {
  int killed = 0;
  for (int number = 1;; number *= 2) {
    const auto child = start([&] {
      die_at_write(number);
      vacuum().value();
    });
    const auto status = await(child);
    expect_sound();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      break;
    BOOST_REQUIRE(WEXITSTATUS(status) == 9);
    ++killed;
  }
  BOOST_TEST(killed > 5);
  BOOST_TEST(!holds("stripes"));
}

BOOST_AUTO_TEST_CASE(leaves_a_file_alone_that_others_use) {
  const auto other = open();
  const auto refused = vacuum();
  BOOST_TEST(code_of(refused) == "conflict");
  BOOST_TEST(reason_of(refused)
             == "vacuum: another program uses " + file.string()
                  + "; close it, and try again");
  BOOST_TEST(number("SELECT count(*) FROM purges") == 3);
  BOOST_TEST(other->close().has_value());
  BOOST_TEST(code_of(vacuum()) == "ok");
}

BOOST_AUTO_TEST_CASE(brings_an_older_layout_forward) {
  open()->close().value();
  vacuum().value();
  execute("DELETE FROM pasts"); // The older layout has no forks.
  set_back_to(5);
  BOOST_TEST(code_of(vacuum()) == "ok");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(vacuum_of_nothing, sqlite_file)

BOOST_AUTO_TEST_CASE(an_empty_file_stays) {
  BOOST_TEST(code_of(vacuum_store("sqlite:" + file.string())) == "not_found");
  BOOST_TEST(!fs::exists(file));
  std::ofstream(file).close();
  BOOST_TEST(vacuum_store("sqlite:" + file.string()).value().bytes_after == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

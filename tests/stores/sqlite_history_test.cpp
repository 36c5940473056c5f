// A SQLite file that is removed, replaced, overwritten or restored while a
// store has it open: nothing is acknowledged that the file does not hold.

#include "troupe/stores/sqlite_store.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

namespace {

const session_key ann{"press", "ann", "s1"};

store_change change_of(change_kind kind, std::uint64_t revision) {
  event said(content("model", {part("said")}));
  said.id = "e" + std::to_string(revision);
  said.author = "agent";
  store_change made;
  made.kind = kind;
  made.owner = {ann.app, ann.user, ann.id};
  made.said = std::make_shared<const event>(std::move(said));
  made.session_revision = revision;
  return made;
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(folder))
    names.insert(each.path().filename().string());
  return names;
}

class opened_file {
public:
  opened_file() {
    auto name = (fs::temp_directory_path() / "troupe-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder = name;
    file = folder / "s.db";
    opened = open_sqlite_store(file).value();
    commit(change_kind::create, 0);
    for (std::uint64_t revision = 1; revision <= 5; ++revision)
      commit(change_kind::append, revision);
  }

  opened_file(const opened_file&) = delete;
  opened_file& operator=(const opened_file&) = delete;

  ~opened_file() {
    opened.reset();
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  // "ok", "moved" or the code of the failure.
  std::string commit(change_kind kind, std::uint64_t revision) const {
    const auto done = opened->commit(std::array{change_of(kind, revision)});
    if (!done)
      return code_of(done);
    return done->moved.empty() ? "ok" : "moved";
  }

  std::uint64_t lost() const {
    const auto found = opened->take_lost_history();
    return found ? found->commits : 0;
  }

  // Of a copy that SQLite makes, or puts back.
  static void copy(const fs::path& from, const fs::path& to) {
    sqlite3* source = nullptr;
    sqlite3* target = nullptr;
    BOOST_REQUIRE(sqlite3_open(from.c_str(), &source) == SQLITE_OK);
    BOOST_REQUIRE(sqlite3_open(to.c_str(), &target) == SQLITE_OK);
    auto* const copying = sqlite3_backup_init(target, "main", source, "main");
    BOOST_REQUIRE(copying != nullptr);
    BOOST_TEST(sqlite3_backup_step(copying, -1) == SQLITE_DONE);
    sqlite3_backup_finish(copying);
    sqlite3_close(source);
    sqlite3_close(target);
  }

  void remove_log() const {
    fs::remove(file.string() + "-wal");
    fs::remove(file.string() + "-shm");
  }

  fs::path folder;
  fs::path file;
  std::unique_ptr<store> opened;
};

} // namespace

BOOST_AUTO_TEST_SUITE(sqlite_history)

BOOST_FIXTURE_TEST_CASE(nothing_is_acknowledged_into_a_removed_file,
                        opened_file) {
  fs::remove(file);
  remove_log();
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(lost() == 6U);
  BOOST_TEST(lost() == 0U);
  BOOST_TEST(!opened->load_session(ann, {}).value());
  BOOST_TEST(commit(change_kind::create, 0) == "ok");
  BOOST_TEST(fs::exists(file));
}

BOOST_FIXTURE_TEST_CASE(a_replaced_file_counts_from_then_on, opened_file) {
  copy(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  BOOST_TEST(commit(change_kind::append, 7) == "ok");
  remove_log();
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(commit(change_kind::append, 8) == "moved");
  BOOST_TEST(lost() == 2U);
  BOOST_TEST(opened->load_session(ann, {}).value()->scope.revision == 5U);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  BOOST_TEST(opened->check({}).value().empty());
}

BOOST_FIXTURE_TEST_CASE(the_log_of_a_replaced_file_is_not_applied,
                        opened_file) {
  copy(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(commit(change_kind::append, 6) == "store_failed");
  remove_log();
  // Others may have written since the owners have loaded.
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(lost() == 1U);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
}

// By SQLite, under its locks, as `.restore` does.
BOOST_FIXTURE_TEST_CASE(a_restored_copy_is_recognised, opened_file) {
  copy(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  copy(folder / "copy.db", file);
  // Another process goes on with the number that was lost.
  const auto other = open_sqlite_store(file).value();
  BOOST_TEST(other->commit(std::array{change_of(change_kind::append, 6)})
               .value()
               .moved.empty());
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
  BOOST_TEST(lost() == 1U);
  BOOST_TEST(commit(change_kind::append, 7) == "ok");
}

BOOST_FIXTURE_TEST_CASE(a_file_that_is_cut_off_is_noticed, opened_file) {
  fs::resize_file(file, 0);
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(lost() == 6U);
}

BOOST_FIXTURE_TEST_CASE(a_check_of_a_file_at_rest_writes_nothing, opened_file) {
  BOOST_REQUIRE(opened->close());
  opened.reset();
  const auto before = fs::last_write_time(file);
  const auto files = files_in(folder);
  const auto reading = open_sqlite_store(file, {.read_only = true}).value();
  BOOST_TEST(reading->check({}).value().empty());
  BOOST_TEST(reading->load_session(ann, {}).value()->scope.revision == 5U);
  BOOST_TEST(
    code_of(reading->commit(std::array{change_of(change_kind::append, 6)}))
    == "store_failed");
  BOOST_REQUIRE(reading->close());
  BOOST_TEST((fs::last_write_time(file) == before));
  BOOST_TEST(files_in(folder) == files);
}

BOOST_AUTO_TEST_SUITE_END()

// A SQLite file that is removed, replaced, overwritten or restored while a
// store has it open. No event is acknowledged that the file does not contain.

#include "troupe/stores/sqlite/open.hpp"

#include "../outcome.hpp"
#include "sqlite_copy.hpp"
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(sqlite_history)

namespace {

const session_key ann{"press", "ann", "s1"};

store_change change_of(change_kind kind, std::uint64_t revision) {
  event said(content("model", {part(std::string(2'000, 's'))}));
  said.id = "e" + std::to_string(revision);
  said.author = "agent";
  store_change made;
  made.kind = kind;
  made.owner = {ann.app, ann.user, ann.id};
  made.event = std::make_shared<const event>(std::move(said));
  made.session_revision = revision;
  return made;
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(folder))
    names.insert(each.path().filename().string());
  return names;
}

fs::path make_folder() {
  auto name = (fs::temp_directory_path() / "troupe-XXXXXX").string();
  BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
  return name;
}

// Another process that opens a store and then waits until the end.
class resting_process {
public:
  explicit resting_process(
    const std::function<std::unique_ptr<store>()>& open) {
    std::array<int, 2> ready{};
    std::array<int, 2> end{};
    BOOST_REQUIRE(::pipe(ready.data()) == 0);
    BOOST_REQUIRE(::pipe(end.data()) == 0);
    child_ = ::fork();
    BOOST_REQUIRE(child_ >= 0);
    char byte = 0;
    if (child_ == 0) {
      ::close(end[1]);
      const auto opened = open();
      static_cast<void>(::write(ready[1], &byte, 1) + ::read(end[0], &byte, 1));
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(end[0]);
    BOOST_TEST(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    end_ = end[1];
  }

  resting_process(const resting_process&) = delete;
  resting_process& operator=(const resting_process&) = delete;

  ~resting_process() {
    ::close(end_);
    ::waitpid(child_, nullptr, 0);
  }

private:
  pid_t child_ = -1;
  int end_ = -1;
};

class opened_file {
public:
  opened_file() {
    file = folder / "s.db";
    opened = open(file);
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

  // Returns "ok", "moved" or the code of the failure.
  std::string commit(change_kind kind, std::uint64_t revision) const {
    const auto done = opened->commit(std::array{change_of(kind, revision)});
    if (!done)
      return code_of(done);
    return done->moved.empty() ? "ok" : "moved";
  }

  // Returns the revision of the loaded session, or the code of the failure.
  std::string revision() const {
    const auto loaded = opened->load_session(ann, {});
    if (!loaded)
      return code_of(loaded);
    return *loaded ? std::to_string((*loaded)->scope.revision) : "none";
  }

  // Runs SQL on a connection of its own.
  void execute(const char* sql) const {
    sqlite3* connection = nullptr;
    BOOST_REQUIRE(sqlite3_open(file.c_str(), &connection) == SQLITE_OK);
    BOOST_TEST(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr)
               == SQLITE_OK);
    sqlite3_close(connection);
  }

  std::uint64_t lost() const {
    const auto found = opened->take_lost_history();
    return found ? found->commits : 0;
  }

  void remove_log() const {
    fs::remove(file.string() + "-wal");
    fs::remove(file.string() + "-shm");
  }

  static std::unique_ptr<store> open(const fs::path& path) {
    return detail::open_sqlite_store(
             {.file = path, .lock_timeout = std::chrono::milliseconds(1)})
      .value();
  }

  fs::path folder = make_folder();
  fs::path file;
  std::unique_ptr<store> opened;
};

} // namespace

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
  copy_database(file, folder / "copy.db");
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
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(commit(change_kind::append, 6) == "store_failed");
  remove_log();
  // Other processes may have written since the owners were loaded.
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(lost() == 1U);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
}

// The pooled reader has seen only the log before the last one.
BOOST_FIXTURE_TEST_CASE(a_later_log_of_a_replaced_file_is_not_applied,
                        opened_file) {
  BOOST_TEST(revision() == "5");
  copy_database(file, folder / "copy.db");
  execute("PRAGMA wal_checkpoint(RESTART)");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(revision() == "store_failed");
  remove_log();
  BOOST_TEST(revision() == "5");
  BOOST_TEST(opened->check({}).value().empty());
}

// A restart leaves the frames of the previous log in its file.
BOOST_FIXTURE_TEST_CASE(the_log_before_a_restart_is_not_applied, opened_file) {
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  execute("PRAGMA wal_checkpoint(RESTART)");
  BOOST_TEST(revision() == "6");
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(revision() == "store_failed");
}

// Copies the files without a checkpoint, as a killed program leaves them.
BOOST_FIXTURE_TEST_CASE(a_file_that_is_cut_off_after_a_recovery_is_noticed,
                        opened_file) {
  const auto copied = folder / "killed.db";
  fs::copy(file, copied);
  fs::copy(file.string() + "-wal", copied.string() + "-wal");
  opened = open(copied);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  fs::resize_file(copied, 0);
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
}

BOOST_FIXTURE_TEST_CASE(a_new_reader_notices_a_replaced_file, opened_file) {
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  remove_log();
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(revision() == "5");
  BOOST_TEST(opened->load_events(ann, 1, 9).value().size() == 5U);
  BOOST_TEST(lost() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_pooled_reader_notices_a_restored_copy, opened_file) {
  BOOST_TEST(revision() == "5");
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  copy_database(folder / "copy.db", file);
  BOOST_TEST(revision() == "5");
  BOOST_TEST(lost() == 1U);
}

// The failure has closed the only connection.
BOOST_FIXTURE_TEST_CASE(a_file_replaced_after_a_failed_commit_is_noticed,
                        opened_file) {
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  sqlite3* other = nullptr;
  BOOST_REQUIRE(sqlite3_open(file.c_str(), &other) == SQLITE_OK);
  sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  BOOST_TEST(commit(change_kind::append, 7) == "store_failed");
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(commit(change_kind::append, 7) == "store_failed");
  sqlite3_close(other);
}

BOOST_FIXTURE_TEST_CASE(a_reader_notices_an_overwritten_file, opened_file) {
  BOOST_TEST(revision() == "5");
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
  BOOST_TEST(revision() == "5");
  {
    std::ofstream overwriting(file, std::ios::binary | std::ios::in);
    overwriting << std::string(fs::file_size(file), 'x');
  }
  BOOST_TEST(revision() == "corrupt");
  BOOST_TEST(opened->take_lost_history().has_value());
}

BOOST_FIXTURE_TEST_CASE(a_file_that_is_lost_while_it_is_counted_is_noticed,
                        opened_file) {
  copy_database(file, folder / "copy.db");
  copy_database(file, folder / "copy2.db");
  remove_log();
  fs::rename(folder / "copy.db", file);
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(revision() == "5");
  remove_log();
  fs::rename(folder / "copy2.db", file);
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
}

BOOST_FIXTURE_TEST_CASE(a_link_that_is_switched_is_noticed, opened_file) {
  copy_database(file, folder / "copy.db");
  const auto link = folder / "link.db";
  fs::create_symlink(file, link);
  opened = open(link);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  fs::remove(link);
  fs::create_symlink(folder / "copy.db", link);
  BOOST_TEST(commit(change_kind::append, 7) == "moved");
  BOOST_TEST(commit(change_kind::append, 6) == "moved");
  BOOST_TEST(lost() == 1U);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
}

BOOST_FIXTURE_TEST_CASE(a_path_is_that_of_the_opening, opened_file) {
  const auto before = fs::current_path();
  fs::current_path(folder);
  opened = open("s.db");
  fs::current_path(before);
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  BOOST_TEST(revision() == "6");
}

// The `-wal` and `-shm` files remain, and another process has them open.
BOOST_AUTO_TEST_CASE(a_file_removed_alone_is_made_anew_beside_others) {
  const auto folder = make_folder();
  const auto file = folder / "s.db";
  const resting_process other([&file] {
    auto opened = opened_file::open(file);
    opened->commit(std::array{change_of(change_kind::create, 0)}).value();
    return opened;
  });
  const auto opened = opened_file::open(file);
  const auto commit = [&opened](change_kind kind, std::uint64_t revision) {
    return opened->commit(std::array{change_of(kind, revision)})
      .value()
      .moved.empty();
  };
  BOOST_TEST(commit(change_kind::append, 1));
  fs::remove(file);
  BOOST_TEST(!commit(change_kind::append, 2));
  BOOST_TEST(opened->take_lost_history().has_value());
  BOOST_TEST(commit(change_kind::create, 0));
  BOOST_TEST(commit(change_kind::append, 1));
  BOOST_TEST(opened->check({}).value().empty());
  fs::remove_all(folder);
}

// Restores the file with SQLite, under its locks, as `.restore` does.
BOOST_FIXTURE_TEST_CASE(a_restored_copy_is_recognised, opened_file) {
  copy_database(file, folder / "copy.db");
  BOOST_TEST(commit(change_kind::append, 6) == "ok");
  copy_database(folder / "copy.db", file);
  // Another process writes an event with the revision that was lost.
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

// Another program opens the file, writes to it, and closes it during the check.
BOOST_FIXTURE_TEST_CASE(a_check_notices_that_a_file_comes_into_use,
                        opened_file) {
  // Writes more than a connection caches.
  for (std::uint64_t revision = 6; revision <= 2'000; ++revision)
    BOOST_REQUIRE(commit(change_kind::append, revision) == "ok");
  BOOST_REQUIRE(opened->close());
  opened.reset();
  const auto reading = open_sqlite_store(file, {.read_only = true}).value();
  bool is_used = false;
  const auto findings = reading->check([&](double) {
    if (std::exchange(is_used, true))
      return;
    opened = open(file);
    for (std::uint64_t revision = 2'001; revision <= 2'100; ++revision)
      BOOST_REQUIRE(commit(change_kind::append, revision) == "ok");
    BOOST_TEST(opened->close().has_value());
    opened.reset();
  });
  BOOST_TEST(findings.value().empty());
  BOOST_TEST(reading->load_session(ann, {}).value()->scope.revision == 2'100U);
}

BOOST_FIXTURE_TEST_CASE(a_check_of_a_linked_file_sees_its_log, opened_file) {
  const auto link = folder / "link.db";
  fs::create_symlink(file, link);
  const auto reading = open_sqlite_store(link, {.read_only = true}).value();
  BOOST_TEST(reading->load_session(ann, {}).value()->scope.revision == 5U);
}

BOOST_AUTO_TEST_SUITE_END()

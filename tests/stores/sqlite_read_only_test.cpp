// Read-only use of a SQLite file creates and changes no file: on a sound, a
// full and a read-only disk.

#include "troupe/stores/sqlite/open.hpp"

#include "../outcome.hpp"
#include "child_process.hpp"
#include "refusing_disk.hpp"
#include "sqlite_file.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(sqlite_read_only)

namespace {

enum class disk { sound, full, read_only };

std::ostream& operator<<(std::ostream& out, disk each) {
  return out << (each == disk::sound  ? "a sound disk"
                 : each == disk::full ? "a full disk"
                                      : "a read-only disk");
}

struct left_log : sqlite_file {
  // A program that ends after three events without closing its store, as a
  // killed program does.
  left_log() {
    const auto killed = start([this] {
      const auto opened = open();
      counter counting(*opened, ann);
      counting.create();
      for (const auto* id : {"e1", "e2", "e3"})
        counting.add(id);
      ::_exit(0);
    });
    BOOST_TEST(await(killed) == 0);
    BOOST_TEST(fs::file_size(beside("-wal")) > 0U);
  }

  fs::path beside(const std::string& suffix) const {
    return file.string() + suffix;
  }

  // Content and times of each file in the folder.
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> found;
    for (const auto& each : fs::directory_iterator(folder.path())) {
      std::ifstream bytes(each.path(), std::ios::binary);

      struct stat facts {};

      BOOST_REQUIRE(::stat(each.path().c_str(), &facts) == 0);
      found[each.path().filename()]
        = std::to_string(facts.st_mtim.tv_sec) + "."
          + std::to_string(facts.st_mtim.tv_nsec) + " "
          + std::string(std::istreambuf_iterator<char>(bytes), {});
    }
    return found;
  }

  void expect_sound(std::uint64_t revision) const {
    const auto opened = open_sqlite_store(file, {.read_only = true});
    BOOST_TEST_REQUIRE(reason_of(opened) == "");
    const auto findings = (*opened)->check({});
    BOOST_TEST_REQUIRE(reason_of(findings) == "");
    BOOST_TEST(findings->empty());
    BOOST_TEST((*opened)->load_session(ann, {}).value()->scope.revision
               == revision);
    BOOST_TEST(reason_of((*opened)->close()) == "");
  }

  // Expects that on this disk the file is sound and that no file changes.
  void expect_sound_and_unchanged(disk on) const {
    const auto before = content();
    {
      std::optional<refusing_disk> refusing;
      if (on != disk::sound)
        refusing.emplace(on == disk::full ? refusing_disk::kind::full
                                          : refusing_disk::kind::read_only);
      expect_sound(3);
      if (refusing)
        BOOST_TEST(refusing->changes() == 0U);
    }
    BOOST_TEST((content() == before));
  }
};

constexpr auto disks = {disk::sound, disk::full, disk::read_only};

} // namespace

BOOST_DATA_TEST_CASE_F(left_log,
                       a_check_beside_a_left_log_changes_nothing,
                       data::make(disks),
                       on) {
  expect_sound_and_unchanged(on);
}

// Only the file and its log were copied, or the index was deleted.
BOOST_DATA_TEST_CASE_F(left_log,
                       a_check_beside_a_log_without_index_changes_nothing,
                       data::make(disks),
                       on) {
  fs::remove(beside("-shm"));
  expect_sound_and_unchanged(on);
}

BOOST_DATA_TEST_CASE_F(left_log,
                       a_check_beside_an_index_that_is_cut_off_changes_nothing,
                       data::make(disks),
                       on) {
  fs::resize_file(beside("-shm"), 3);
  expect_sound_and_unchanged(on);
}

BOOST_DATA_TEST_CASE_F(left_log,
                       a_check_beside_an_index_without_log_changes_nothing,
                       data::make(disks),
                       on) {
  open()->close().value();
  std::ofstream(beside("-shm"));
  expect_sound_and_unchanged(on);
}

BOOST_DATA_TEST_CASE_F(left_log,
                       a_check_beside_a_living_program_changes_nothing,
                       data::make(disks),
                       on) {
  std::array<int, 2> ready{};
  std::array<int, 2> end{};
  BOOST_REQUIRE(::pipe(ready.data()) == 0);
  BOOST_REQUIRE(::pipe(end.data()) == 0);
  char byte = 0;
  const auto living = start([&] {
    ::close(end[1]);
    const auto opened = open();
    counter(*opened, ann).add("e4");
    static_cast<void>(::write(ready[1], &byte, 1) + ::read(end[0], &byte, 1));
    ::_exit(0);
  });
  ::close(ready[1]);
  ::close(end[0]);
  BOOST_TEST(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  const auto before = content();
  {
    std::optional<refusing_disk> refusing;
    if (on != disk::sound)
      refusing.emplace(on == disk::full ? refusing_disk::kind::full
                                        : refusing_disk::kind::read_only);
    expect_sound(4);
    if (refusing)
      BOOST_TEST(refusing->changes() == 0U);
  }
  BOOST_TEST((content() == before));
  ::close(end[1]);
  BOOST_TEST(await(living) == 0);
}

// Another program recovers the log, writes, and closes the file, which removes
// the log that the check was reading.
BOOST_FIXTURE_TEST_CASE(a_program_that_opens_a_left_log_is_not_held_up,
                        left_log) {
  fs::remove(beside("-shm"));
  const auto reading = open_sqlite_store(file, {.read_only = true}).value();
  std::size_t starts = 0;
  const auto findings = reading->check([&](double done) {
    if (done > 0.5)
      return;
    if (++starts > 1)
      return;
    const auto other = start([this] {
      const auto opened
        = detail::open_sqlite_store(
            {.file = file, .lock_timeout = std::chrono::milliseconds(0)})
            .value();
      counter(*opened, ann).add("e4");
      opened->close().value();
    });
    BOOST_TEST(await(other) == 0);
  });
  BOOST_TEST_REQUIRE(reason_of(findings) == "");
  BOOST_TEST(findings->empty());
  BOOST_TEST(starts > 1U);
  BOOST_TEST(reading->load_session(ann, {}).value()->scope.revision == 4U);
}

BOOST_FIXTURE_TEST_CASE(a_writer_of_this_process_can_follow_a_check, left_log) {
  const auto reading = open_sqlite_store(file, {.read_only = true}).value();
  BOOST_TEST(reading->check({}).value().empty());
  const auto writing = open();
  counter(*writing, ann).add("e4");
  BOOST_TEST(reading->load_session(ann, {}).value()->scope.revision == 4U);
}

BOOST_FIXTURE_TEST_CASE(a_log_that_may_not_be_read_is_named, left_log) {
  const refusing_disk disk(refusing_disk::kind::unreadable_log);
  const auto opened = open_sqlite_store(file, {.read_only = true});
  BOOST_TEST(code_of(opened) == "store_failed");
  BOOST_TEST(reason_of(opened).find("Permission denied): check that this "
                                    "process may open the file and its -wal "
                                    "and -shm files")
               != std::string::npos,
             reason_of(opened));
}

BOOST_AUTO_TEST_SUITE_END()

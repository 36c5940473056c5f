// Output files: links, access rights, and leftovers of unfinished files.

#include "troupe/core/support/output_file.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(output_files)

namespace {

using readers = output_file::readers;
using placement = output_file::placement;

constexpr std::array placements = {placement::at_once, placement::whole};

std::string text_in(const fs::path& path) {
  std::ifstream source(path);
  return {std::istreambuf_iterator<char>(source), {}};
}

unsigned mode_of(const fs::path& path) {
  return static_cast<unsigned>(fs::status(path).permissions());
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator(folder), {}));
}

result<void> write_all(const fs::path& path, readers who, placement when) {
  auto opened = output_file::open(path, who, when);
  if (!opened)
    return opened.error();
  if (auto written = opened->write("new"); !written)
    return written;
  return opened->finish();
}

/// A folder with an existing file.
struct old_file : temporary_folder {
  fs::path file = path() / "file";

  explicit old_file(unsigned mode = 0644) {
    std::ofstream(file) << "what was there";
    fs::permissions(file, static_cast<fs::perms>(mode));
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_link_is_refused_and_what_it_leads_to_stays) {
  for (const auto when : placements) {
    const old_file held;
    const auto link = held.path() / "link";
    for (const auto& target : {held.file, held.path() / "nothing"}) {
      fs::remove(link);
      fs::create_symlink(target, link);
      const auto done = write_all(link, readers::umask, when);
      BOOST_TEST(code_of(done) == "store_failed");
      BOOST_TEST(reason_of(done).find("symbolic link") != std::string::npos,
                 reason_of(done));
      BOOST_TEST(fs::is_symlink(link));
    }
    BOOST_TEST(text_in(held.file) == "what was there");
    BOOST_TEST(files_in(held.path()) == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_link_put_beside_it_is_not_followed) {
  const old_file held;
  const auto target = held.path() / "new";
  fs::create_symlink(
    held.file, target.string() + "." + std::to_string(::getpid()) + ".part");
  write_all(target, readers::umask, placement::whole).value();
  BOOST_TEST(text_in(held.file) == "what was there");
  BOOST_TEST(text_in(target) == "new");
}

BOOST_AUTO_TEST_CASE(a_link_on_the_way_is_followed) {
  const temporary_folder folder;
  fs::create_directory(folder.path() / "real");
  fs::create_directory_symlink(folder.path() / "real", folder.path() / "link");
  for (const auto when : placements)
    BOOST_TEST(
      code_of(write_all(folder.path() / "link" / "x", readers::umask, when))
      == "ok");
}

BOOST_AUTO_TEST_CASE(an_open_descriptor_is_written_to_where_it_stands) {
  const old_file held;
  const int opened = ::open(held.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  BOOST_REQUIRE(opened >= 0);
  for (const auto when : placements)
    for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"})
      write_all(folder + std::to_string(opened), readers::umask, when).value();
  ::close(opened);
  BOOST_TEST(text_in(held.file) == "what was therenewnewnewnew");
  BOOST_TEST(files_in(held.path()) == 1U);
  BOOST_TEST(code_of(write_all("/dev/fd/" + std::to_string(opened),
                               readers::umask,
                               placement::whole))
             == "store_failed");
}

BOOST_AUTO_TEST_CASE(what_may_hold_secrets_is_for_its_owner) {
  for (const auto when : placements) {
    for (const unsigned before : {0600U, 0644U, 0666U}) {
      const old_file held(before);
      write_all(held.file, readers::owner, when).value();
      BOOST_TEST(mode_of(held.file) == 0600U);
      BOOST_TEST(text_in(held.file) == "new");
    }
    const temporary_folder folder;
    const auto before = ::umask(0);
    const auto done = write_all(folder.path() / "x", readers::owner, when);
    ::umask(before);
    BOOST_TEST(code_of(done) == "ok");
    BOOST_TEST(mode_of(folder.path() / "x") == 0600U);
  }
}

BOOST_AUTO_TEST_CASE(who_reads_the_file_of_before_reads_no_secret) {
  for (const auto when : placements) {
    const old_file held(0644);
    std::ifstream reader(held.file);
    write_all(held.file, readers::owner, when).value();
    const std::string seen{std::istreambuf_iterator<char>(reader), {}};
    BOOST_TEST(seen == "what was there");
    BOOST_TEST(text_in(held.file) == "new");
  }
}

BOOST_AUTO_TEST_CASE(the_file_of_another_user_gets_no_secret) {
  for (const auto when : placements) {
    const old_file held(0666);
    if (::chown(held.file.c_str(), ::geteuid() + 1, ::getegid()) != 0)
      return; // Only root may change the owner of a file.
    const auto done = write_all(held.file, readers::owner, when);
    BOOST_TEST(code_of(done) == "store_failed");
    BOOST_TEST(reason_of(done).ends_with("it belongs to another user"),
               reason_of(done));
    BOOST_TEST(text_in(held.file) == "what was there");
    BOOST_TEST(code_of(write_all(held.file, readers::umask, when)) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(a_file_gets_no_more_readers_than_it_had) {
  for (const auto when : placements) {
    const old_file held(0600);
    const auto before = ::umask(0022);
    const auto done = write_all(held.file, readers::umask, when);
    const auto made = write_all(held.path() / "x", readers::umask, when);
    ::umask(before);
    BOOST_TEST(code_of(done) == "ok");
    BOOST_TEST(mode_of(held.file) == 0600U);
    BOOST_TEST(code_of(made) == "ok");
    BOOST_TEST(mode_of(held.path() / "x") == 0644U);
  }
}

BOOST_AUTO_TEST_CASE(a_whole_file_is_in_place_when_it_is_finished) {
  const old_file held;
  {
    auto opened
      = output_file::open(held.file, readers::umask, placement::whole).value();
    opened.write("half").value();
    BOOST_TEST(text_in(held.file) == "what was there");
    BOOST_TEST(files_in(held.path()) == 1U);
  }
  BOOST_TEST(text_in(held.file) == "what was there");
  BOOST_TEST(files_in(held.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_told) {
  for (const auto when : placements) {
    const auto done = write_all("/dev/full", readers::owner, when);
    BOOST_TEST(code_of(done) == "store_failed");
    BOOST_TEST(reason_of(done) == "write /dev/full: No space left on device");
    BOOST_TEST(code_of(write_all("/dev/null", readers::owner, when)) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(a_path_that_cannot_be_written_is_told) {
  const temporary_folder folder;
  for (const auto when : placements)
    for (const auto& path : {folder.path(), folder.path() / "none" / "x"})
      BOOST_TEST(code_of(write_all(path, readers::umask, when))
                 == "store_failed");
}

BOOST_AUTO_TEST_SUITE_END()

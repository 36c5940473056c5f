// Names of the processes that have runs, and the question if such a process has
// died.

#include "troupe/actors/running/holder_name.hpp"

#include "../stores/child_process.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using troupe::actors::has_died;
using troupe::actors::make_holder_name;
using troupe::testing::temporary_folder;
namespace data = boost::unit_test::data;
namespace files = std::filesystem;

BOOST_AUTO_TEST_SUITE(holder_names, *boost::unit_test::timeout(60))

namespace {

using words = std::vector<std::string>;

words parts_of(const std::string& name) {
  words parts;
  std::istringstream source(name);
  for (std::string part; std::getline(source, part, '/');)
    parts.push_back(part);
  return parts;
}

// Replaces one part of a name: 1 is the process, 2 its start, 3 the namespaces,
// 4 the boot.
std::string
with_part(const std::string& name, std::size_t number, std::string text) {
  auto parts = parts_of(name);
  parts.at(number) = std::move(text);
  std::string made = parts.front();
  for (std::size_t index = 1; index < parts.size(); ++index)
    made += "/" + parts[index];
  return made;
}

// A process that tells its name and waits to be killed.
class child {
public:
  child() {
    std::array<int, 2> ends{};
    BOOST_REQUIRE(::pipe(ends.data()) == 0);
    pid_ = troupe::testing::start([&ends] {
      const auto name = make_holder_name("child") + "\n";
      if (::write(ends[1], name.data(), name.size()) < 0)
        ::_exit(2);
      while (true)
        ::pause();
    });
    ::close(ends[1]);
    auto* const read_end = ::fdopen(ends[0], "r");
    for (int next = std::fgetc(read_end); next != '\n' && next != EOF;
         next = std::fgetc(read_end))
      name_ += static_cast<char>(next);
    std::fclose(read_end);
  }

  child(const child&) = delete;
  child& operator=(const child&) = delete;

  ~child() {
    if (pid_ > 0) {
      kill();
      reap();
    }
  }

  const std::string& name() const { return name_; }

  // It stays a zombie.
  void kill() const {
    ::kill(pid_, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }

  void reap() {
    BOOST_TEST(WIFSIGNALED(troupe::testing::await(pid_)));
    pid_ = 0;
  }

private:
  pid_t pid_ = 0;
  std::string name_;
};

// A folder in place of `/proc`, with copies of the files of this process.
struct copied_folder : temporary_folder {
  copied_folder() {
    const auto self = (path() / std::to_string(::getpid())).string();
    files::create_directories(self + "/ns");
    files::create_directories(path() / "sys/kernel/random");
    files::create_symlink(std::to_string(::getpid()), path() / "self");
    files::create_symlink("pid:[11]", self + "/ns/pid");
    files::create_symlink("time:[12]", self + "/ns/time");
    write("sys/kernel/random/boot_id", "b-1\n");
    write_status("S", 3, "77");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path() / name) << text;
  }

  // The fields of `proc(5)` up to the start.
  void write_status(const std::string& state,
                    int threads,
                    const std::string& start) const {
    const auto pid = std::to_string(::getpid());
    write(pid + "/stat",
          pid + " (a ) b (c) " + state + " 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 "
            + std::to_string(threads) + " 0 " + start + " 0 0\n");
  }

  std::string folder() const { return path().string(); }

  std::string name() const { return make_holder_name("id", folder()); }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_name_tells_process_start_and_machine) {
  const copied_folder kept;
  BOOST_TEST(kept.name()
             == "id/" + std::to_string(::getpid()) + "/77/11-12/b-1");
}

BOOST_AUTO_TEST_CASE(a_process_that_lives_has_not_died) {
  const child other;
  const auto own = make_holder_name("own");
  BOOST_TEST_REQUIRE(parts_of(other.name()).size() == 5U, other.name());
  BOOST_TEST(!has_died(own, own));
  BOOST_TEST(!has_died(other.name(), own));
}

BOOST_AUTO_TEST_CASE(a_process_that_was_killed_has_died) {
  child other;
  const auto own = make_holder_name("own");
  other.kill();
  BOOST_TEST(has_died(other.name(), own)); // A zombie.
  other.reap();
  BOOST_TEST(has_died(other.name(), own));
}

BOOST_AUTO_TEST_CASE(a_process_with_the_id_of_a_dead_one_is_another) {
  const child other;
  const auto own = make_holder_name("own");
  BOOST_TEST(has_died(with_part(other.name(), 2, "1"), own));
}

BOOST_DATA_TEST_CASE(nothing_is_known_of_other_machines_and_containers,
                     data::make({3, 4})) {
  child other;
  const auto own = make_holder_name("own");
  other.kill();
  other.reap();
  const auto part = static_cast<std::size_t>(sample);
  BOOST_TEST(!has_died(with_part(other.name(), part, "another"), own));
  BOOST_TEST(!has_died(other.name(), with_part(own, part, "another")));
}

BOOST_AUTO_TEST_CASE(nothing_is_known_of_other_names) {
  child other;
  const auto own = make_holder_name("own");
  other.kill();
  other.reap();
  BOOST_TEST_REQUIRE(has_died(other.name(), own));
  const auto& name = other.name();
  for (const auto& unknown : {std::string(),
                              std::string("an-id-of-an-earlier-version"),
                              name + ".left",
                              name + "/x",
                              with_part(name, 1, "0"),
                              with_part(name, 1, "-1"),
                              with_part(name, 1, "x"),
                              with_part(name, 2, ""),
                              with_part(name, 2, "1x")})
    BOOST_TEST(!has_died(unknown, own), unknown);
  BOOST_TEST(!has_died(name, "own"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_read_tells_nothing) {
  const temporary_folder empty;
  const auto folder = empty.path().string();
  BOOST_TEST(make_holder_name("id", folder) == "id");
  // Such as files of other users that are hidden.
  const child other;
  const auto own = make_holder_name("own");
  BOOST_TEST(!has_died(other.name(), own, folder));
}

BOOST_DATA_TEST_CASE(a_name_without_all_its_parts_is_the_id,
                     data::make(words{"self", "stat", "ns/pid", "boot"})) {
  const copied_folder kept;
  const auto own = kept.path() / std::to_string(::getpid());
  BOOST_TEST_REQUIRE(kept.name() != "id");
  if (sample == "self") {
    // Shows the processes of another namespace.
    files::rename(own, kept.path() / "1");
    files::remove(kept.path() / "self");
    files::create_symlink("1", kept.path() / "self");
  } else {
    files::remove(sample == "boot" ? kept.path() / "sys/kernel/random/boot_id"
                                   : own / sample);
  }
  BOOST_TEST(kept.name() == "id");
}

BOOST_AUTO_TEST_CASE(an_old_kernel_has_no_namespaces_of_times) {
  const copied_folder kept;
  files::remove(kept.path() / std::to_string(::getpid()) / "ns/time");
  BOOST_TEST(parts_of(kept.name()).at(3) == "11-0");
}

BOOST_AUTO_TEST_CASE(a_process_whose_first_thread_has_ended_lives) {
  const copied_folder kept;
  const auto own = kept.name();
  BOOST_TEST(!has_died(own, own, kept.folder()));
  kept.write_status("Z", 2, "77");
  BOOST_TEST(!has_died(own, own, kept.folder()));
  kept.write_status("Z", 1, "77");
  BOOST_TEST(has_died(own, own, kept.folder()));
}

BOOST_AUTO_TEST_SUITE_END()

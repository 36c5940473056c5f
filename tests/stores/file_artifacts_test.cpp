// Artifacts on a disk: their paths, how they appear there, and other processes
// that work on them.

#include "troupe/core/content.hpp"
#include "troupe/stores/artifacts/in_files.hpp"

#include "artifact_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(file_artifacts)

namespace {

// Reports the entries that appear in a folder while `act` runs: "moved to NAME"
// or "made NAME".
std::string appeared_in(const fs::path& folder,
                        const std::function<void()>& act) {
  const auto watch = ::inotify_init1(IN_NONBLOCK);
  BOOST_REQUIRE(
    ::inotify_add_watch(watch, folder.c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
  act();
  std::string told;
  alignas(inotify_event) std::array<char, 4'096> events{};
  const auto bytes = ::read(watch, events.data(), events.size());
  ::close(watch);
  for (std::ptrdiff_t next = 0; next < bytes;) {
    inotify_event seen{};
    std::memcpy(&seen, events.data() + next, sizeof(seen));
    told += told.empty() ? "" : ", ";
    told += (seen.mask & IN_CREATE) != 0 ? "made " : "moved to ";
    told += events.data() + next + sizeof(seen);
    next += static_cast<std::ptrdiff_t>(sizeof(seen) + seen.len);
  }
  return told;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(files_look_as_documented, in_folder) {
  save("Report.pdf", inline_data("hi!", "text/plain"));
  save("user:notes", "words");
  BOOST_TEST(files()
               == (std::set<std::string>{
                 "kept/press/ann/sessions/s1/%52eport.pdf/0/data",
                 "kept/press/ann/sessions/s1/%52eport.pdf/0/metadata.json",
                 "kept/press/ann/own/notes/0/data",
                 "kept/press/ann/own/notes/0/metadata.json"}),
             boost::test_tools::per_element());
  const auto report = place_of("Report.pdf") / "0";
  BOOST_TEST(content_of(report / "data") == "hi!");
  BOOST_TEST(content_of(report / "metadata.json")
             == R"({"bytes":3,"fields":{"inlineData":{"mimeType":)"
                R"("text/plain"}},"form":"bytes","format":1,)"
                R"("name":"Report.pdf"})");
  const auto notes = place_of({{"press", "ann"}, "notes"}) / "0";
  BOOST_TEST(content_of(notes / "data") == "words");
  BOOST_TEST(content_of(notes / "metadata.json")
             == R"({"bytes":5,"form":"text","format":1,"name":"user:notes"})");
  BOOST_TEST(scratch_is_empty());
}

BOOST_FIXTURE_TEST_CASE(what_is_saved_is_there_after_a_restart, in_folder) {
  BOOST_TEST(save("a", "one") == 0);
  BOOST_TEST(save("a", "two") == 1);
  BOOST_TEST(load("a") == "two");
  BOOST_TEST(open()->remove(ann_1, "a").value());
  BOOST_TEST(load("a") == "nothing");
  BOOST_TEST(save("a", "three") == 0);
}

BOOST_FIXTURE_TEST_CASE(files_are_for_the_user_alone, in_folder) {
  constexpr auto others = fs::perms::group_all | fs::perms::others_all;
  save("a", "one");
  for (const auto& entry : fs::recursive_directory_iterator(root))
    BOOST_TEST(((entry.status().permissions() & others) == fs::perms::none),
               entry.path());
}

const std::vector<std::string> hostile_ids = {"..",
                                              "../../../..",
                                              "/etc",
                                              ".",
                                              "a/../b",
                                              "..\\..",
                                              "%2e%2e",
                                              "kept",
                                              "own",
                                              "sessions",
                                              std::string(512, '/'),
                                              std::string(512, 'x')};

BOOST_DATA_TEST_CASE_F(in_folder,
                       no_id_leads_out_of_the_folder,
                       data::make(hostile_ids),
                       id) {
  const auto kept = open();
  for (const auto& key : {session_key{id, "ann", "s1"},
                          session_key{"press", id, "s1"},
                          session_key{"press", "ann", id},
                          session_key{id, id, id}}) {
    kept->save(key, "a", to_string(key)).value();
    kept->save(key, "user:a", "of the user").value();
    BOOST_TEST(*kept->load(key, "a").value()->text() == to_string(key));
    BOOST_TEST(kept->list(key).value().size() == 2U);
  }
  BOOST_TEST(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  BOOST_TEST(std::distance(fs::directory_iterator(root), {}) == 2);
  kept->remove_user(id, id).value();
  BOOST_TEST(kept->list({id, id, id}).value().empty());
}

BOOST_FIXTURE_TEST_CASE(the_longest_names_are_kept, in_folder) {
  const session_key key{
    std::string(512, '\x01'), std::string(512, 'U'), std::string(512, '/')};
  const auto kept = open();
  std::set<std::string> saved;
  for (const auto* last : {"x", ".", "X"}) {
    for (const std::size_t size : {127U, 128U, 129U, 256U}) {
      std::string name(size - std::string_view(last).size(), 'n');
      name += last;
      kept->save(key, name, name).value();
      kept->save(key, "user:" + name, "user's").value();
      saved.insert(name);
      saved.insert("user:" + name);
    }
  }
  BOOST_TEST(kept->list(key).value()
               == std::vector<std::string>(saved.begin(), saved.end()),
             boost::test_tools::per_element());
  for (const auto& name : saved)
    BOOST_TEST(*kept->load(key, name).value()->text()
               == (name.starts_with("user:") ? "user's" : name));
  BOOST_TEST(kept->remove(key, *saved.begin()).value());
  BOOST_TEST(kept->list(key).value().size() == saved.size() - 1);
  kept->remove_user(key.app, key.user).value();
  BOOST_TEST(kept->list(key).value().empty());
  BOOST_TEST(scratch_is_empty());
}

BOOST_FIXTURE_TEST_CASE(names_that_differ_by_case_or_encoding_do_not_meet,
                        in_folder) {
  const std::vector<std::string> alike
    = {"a", "A", "%61", "%41", "%2541", "a.", "é", "e\xcc\x81", "%c3%a9"};
  for (const auto& name : alike)
    BOOST_TEST(save(name, name) == 0);
  std::set<std::string> folded;
  for (const auto& name : alike) {
    BOOST_TEST(load(name) == name);
    auto path = place_of(name).string();
    for (auto& letter : path)
      letter
        = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    folded.insert(path);
  }
  BOOST_TEST(folded.size() == alike.size());
}

BOOST_FIXTURE_TEST_CASE(saves_of_4_processes_leave_no_gap, in_folder) {
  constexpr int processes = 4;
  constexpr int saves = 25;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < processes; ++writer)
    writers.push_back(start([this, writer] {
      const auto kept = open();
      for (int number = 0; number < saves; ++number)
        kept->save(ann_1, "a", std::to_string(writer * saves + number)).value();
    }));
  for (const auto writer : writers)
    BOOST_TEST(await(writer) == 0);
  const auto kept = open();
  const auto versions = kept->versions(ann_1, "a").value();
  BOOST_TEST(versions.size() == std::size_t{processes * saves});
  BOOST_TEST(versions.back() == processes * saves - 1);
  std::set<std::string> texts;
  for (const auto version : versions)
    texts.insert(*kept->load(ann_1, "a", version).value()->text());
  BOOST_TEST(texts.size() == std::size_t{processes * saves});
  BOOST_TEST(scratch_is_empty());
}

// Neither is created in its final place, where a reader could see half of it.
BOOST_FIXTURE_TEST_CASE(an_artifact_and_a_version_appear_by_a_move, in_folder) {
  save("first", "one");
  const auto session = place_of("first").parent_path();
  BOOST_TEST(appeared_in(session, [this] { save("a", "one"); })
             == "moved to a");
  BOOST_TEST(appeared_in(place_of("a"), [this] { save("a", "two"); })
             == "moved to 1");
}

// The removal would delete the saved version with the folder.
BOOST_FIXTURE_TEST_CASE(a_save_waits_for_a_removal_under_way, in_folder) {
  save("a", "one");
  const auto kept = root / "kept";
  const auto removal = ::open(kept.c_str(), O_RDONLY | O_DIRECTORY);
  BOOST_REQUIRE(::flock(removal, LOCK_EX) == 0);
  std::array<int, 2> pipe{};
  BOOST_REQUIRE(::pipe(pipe.data()) == 0);
  const auto writer = start([this, &pipe] {
    save("a", "two");
    if (::write(pipe[1], "2", 1) != 1)
      throw error(errc::internal, "nobody listens");
  });
  ::close(pipe[1]);
  pollfd answer{pipe[0], POLLIN, 0};
  BOOST_TEST(::poll(&answer, 1, 100) == 0);
  ::flock(removal, LOCK_UN);
  BOOST_TEST(await(writer) == 0);
  ::close(removal);
  ::close(pipe[0]);
  BOOST_TEST(load("a") == "two");
}

BOOST_FIXTURE_TEST_CASE(removals_of_another_process_are_seen, in_folder) {
  const auto kept = open();
  kept->save(ann_1, "a", "one").value();
  BOOST_TEST(await(start([this] { open()->remove(ann_1, "a").value(); })) == 0);
  BOOST_TEST(kept->versions(ann_1, "a").value().empty());
  BOOST_TEST(kept->save(ann_1, "a", "two").value() == 0);
}

// Kills the writer at random moments: all acknowledged artifacts are there and
// whole, and no other file remains.
BOOST_FIXTURE_TEST_CASE(a_killed_writer_leaves_only_what_is_whole, in_folder) {
  for (int round = 0; round < 12; ++round) {
    std::array<int, 2> pipe{};
    BOOST_REQUIRE(::pipe(pipe.data()) == 0);
    const auto writer = start([this, &pipe] {
      const auto kept = open();
      for (char number = 0;; ++number) {
        kept->save(ann_1, "a", std::string(20'000, 'x')).value();
        if (::write(pipe[1], &number, 1) != 1)
          return;
      }
    });
    ::close(pipe[1]);
    char acknowledged = 0;
    for (int count = 0; count <= round % 4; ++count)
      BOOST_REQUIRE(::read(pipe[0], &acknowledged, 1) == 1);
    ::kill(writer, SIGKILL);
    await(writer);
    while (::read(pipe[0], &acknowledged, 1) == 1)
      ;
    ::close(pipe[0]);
    const auto kept = open();
    const auto versions = kept->versions(ann_1, "a").value();
    BOOST_TEST(versions.size() > static_cast<std::size_t>(acknowledged));
    for (std::size_t index = 0; index < versions.size(); ++index) {
      BOOST_TEST(versions[index] == static_cast<std::int64_t>(index));
      BOOST_TEST(kept->load(ann_1, "a", versions[index]).value()->text()->size()
                 == 20'000U);
    }
    kept->remove(ann_1, "a").value();
    BOOST_TEST(scratch_is_empty());
  }
}

BOOST_FIXTURE_TEST_CASE(a_file_in_place_of_the_folder_is_refused, in_folder) {
  write(folder.path() / "file", "");
  for (const auto& path :
       {folder.path() / "file", folder.path() / "file" / "a"})
    BOOST_TEST(code_of(open_file_artifacts(path)) == "store_failed");
}

BOOST_FIXTURE_TEST_CASE(the_path_itself_may_be_a_link, in_folder) {
  fs::create_directory(folder.path() / "real");
  fs::create_directory_symlink(folder.path() / "real", root);
  BOOST_TEST(save("a", "one") == 0);
  BOOST_TEST(load("a") == "one");
}

BOOST_AUTO_TEST_SUITE_END()

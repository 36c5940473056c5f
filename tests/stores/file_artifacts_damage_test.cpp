// Artifacts on a damaged disk: leftovers of a crash, foreign files, changed
// bytes, and failing calls.

#include "artifact_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(file_artifacts_damage)

BOOST_FIXTURE_TEST_CASE(a_save_takes_away_what_a_crash_left, in_folder) {
  save("a", "one");
  const auto left = root / "scratch" / "left";
  fs::create_directories(left / "made" / "0");
  write(left / "made" / "0" / "data", "half of i");
  fs::create_directory_symlink(folder.path(), left / "link");
  BOOST_TEST(open()->list(ann_1).value() == std::vector<std::string>{"a"});
  BOOST_TEST(save("a", "two") == 1);
  BOOST_TEST(scratch_is_empty());
  BOOST_TEST(fs::exists(folder.path()), "a link is removed, not what it names");
}

BOOST_FIXTURE_TEST_CASE(work_under_way_is_left_alone, in_folder) {
  save("a", "one");
  const auto work = root / "scratch" / "work";
  fs::create_directory(work);
  write(work / "data", "half of i");
  const auto held = ::open(work.c_str(), O_RDONLY | O_DIRECTORY);
  BOOST_REQUIRE(::flock(held, LOCK_EX) == 0);
  save("a", "two");
  BOOST_TEST(content_of(work / "data") == "half of i");
  ::close(held);
  save("a", "three");
  BOOST_TEST(!fs::exists(work));
}

// A symbolic link takes the place of a folder of the store.
BOOST_FIXTURE_TEST_CASE(a_link_is_not_followed, in_folder) {
  save("a", "one");
  const auto elsewhere = folder.path() / "elsewhere";
  fs::copy(root, elsewhere, fs::copy_options::recursive);
  const auto before = elsewhere / "kept" / "press";
  for (const auto& link : {root / "kept" / "press",
                           root / "kept" / "press" / "ann",
                           root / "kept" / "press" / "ann" / "sessions" / "s1",
                           place_of("a"),
                           place_of("a") / "0"}) {
    const auto target = elsewhere / link.lexically_relative(root);
    BOOST_TEST_CONTEXT(link) {
      fs::rename(link, folder.path() / "aside");
      fs::create_directory_symlink(target, link);
      BOOST_TEST(load("a") == "corrupt");
      const auto saved = open()->save(ann_1, "a", "two");
      // A link in place of version 0 does not prevent a save of version 1.
      BOOST_TEST(code_of(saved) == (link.filename() == "0" ? "ok" : "corrupt"));
      fs::remove(link);
      fs::rename(folder.path() / "aside", link);
    }
  }
  BOOST_TEST(!fs::exists(elsewhere / "kept/press/ann/sessions/s1/a/1"));
}

BOOST_FIXTURE_TEST_CASE(what_is_no_file_is_not_read, in_folder) {
  const auto aside = folder.path() / "aside";
  for (const auto* name : {"data", "metadata.json"}) {
    save(name, "one");
    const auto file = place_of(name) / "0" / name;
    fs::rename(file, aside);
    BOOST_TEST(load(name) == "corrupt");
    fs::create_symlink(aside, file);
    BOOST_TEST(load(name) == "corrupt");
    fs::remove(file);
    BOOST_REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    BOOST_TEST(load(name) == "corrupt");
    fs::remove(file);
    fs::create_directory(file);
    BOOST_TEST(load(name) == "corrupt");
  }
}

BOOST_FIXTURE_TEST_CASE(removing_a_link_leaves_what_it_names, in_folder) {
  save("a", "one");
  fs::create_directory(folder.path() / "mine");
  write(folder.path() / "mine" / "file", "mine");
  fs::remove_all(place_of("a"));
  fs::create_directory_symlink(folder.path() / "mine", place_of("a"));
  BOOST_TEST(open()->remove(ann_1, "a").value());
  BOOST_TEST(content_of(folder.path() / "mine" / "file") == "mine");
  BOOST_TEST(save("a", "two") == 0);
}

BOOST_FIXTURE_TEST_CASE(what_is_not_ours_is_not_listed, in_folder) {
  save("a", "one");
  const auto session = place_of("a").parent_path();
  fs::create_directory(session / ".Trash");
  fs::create_directory(session / "%61");
  fs::create_directory(session / "lost+");
  write(place_of("a") / "README", "");
  fs::create_directory(place_of("a") / "01");
  const auto kept = open();
  BOOST_TEST(kept->list(ann_1).value() == std::vector<std::string>{"a"});
  BOOST_TEST(kept->versions(ann_1, "a").value()
             == std::vector<std::int64_t>{0});
}

const std::vector<std::string> damaged_metadata
  = {"",
     "{",
     "[]",
     "{}",
     R"({"format":2,"form":"text","bytes":3,"name":"a"})",
     R"({"format":1,"form":"text","bytes":4,"name":"a"})",
     R"({"format":1,"form":"text","name":"a"})",
     R"({"format":1,"form":"text","bytes":"3"})",
     R"({"format":1,"form":"other","bytes":3})",
     R"({"format":1,"bytes":3})",
     R"({"format":1,"form":"json","bytes":3})",
     R"({"format":1,"form":"bytes","bytes":3})",
     R"({"format":1,"form":"bytes","bytes":3,"fields":{}})",
     R"({"format":1,"form":"bytes","bytes":3,"fields":{"inlineData":1}})",
     R"({"format":1,"form":"bytes","bytes":3,"alphabet":"x",
         "fields":{"inlineData":{}}})",
     R"({"format":1,"form":"text","bytes":3,"thought":1})",
     R"({"format":1,"form":"text","bytes":3,"extra":[]})"};

BOOST_DATA_TEST_CASE_F(in_folder,
                       damaged_metadata_is_corrupt_and_named,
                       data::make(damaged_metadata),
                       text) {
  save("a", "one");
  const auto file = place_of("a") / "0" / "metadata.json";
  write(file, text);
  const auto loaded = open()->load(ann_1, "a");
  BOOST_TEST(code_of(loaded) == "corrupt");
  BOOST_TEST(reason_of(loaded).find(file.string()) != std::string::npos,
             reason_of(loaded));
  BOOST_TEST(save("a", "two") == 1, "others are not hurt");
  BOOST_TEST(load("a") == "two");
}

BOOST_FIXTURE_TEST_CASE(metadata_that_is_too_deep_is_corrupt, in_folder) {
  save("a", "one");
  std::string deep;
  for (int depth = 0; depth < 100'000; ++depth)
    deep += R"({"a":)";
  deep += "1" + std::string(100'000, '}');
  write(place_of("a") / "0" / "metadata.json",
        R"({"format":1,"form":"text","bytes":3,"extra":)" + deep + "}");
  BOOST_TEST(load("a") == "corrupt");
}

BOOST_FIXTURE_TEST_CASE(damaged_data_is_corrupt, in_folder) {
  save("a", "one");
  write(place_of("a") / "0" / "data", "on");
  BOOST_TEST(load("a") == "corrupt");
  write(place_of("a") / "0" / "data", "on\xff");
  BOOST_TEST(load("a") == "corrupt");
}

BOOST_FIXTURE_TEST_CASE(a_folder_without_permission_says_so, in_folder) {
  save("a", "one");
  const auto permit = [this](fs::perms granted) {
    fs::permissions(folder.path(), granted);
    fs::permissions(root, granted);
    for (const auto& entry : fs::recursive_directory_iterator(root))
      fs::permissions(entry, granted);
  };
  permit(fs::perms(0555));
  // Runs in a child process, which gives up the rights of root.
  const auto reader = start([this] {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
      throw error(errc::internal, "cannot become nobody");
    const auto expect = [](bool claim, const std::string& what) {
      if (!claim)
        throw error(errc::internal, what);
    };
    expect(load("a") == "one", "what is there can be read");
    const auto saved = open()->save(ann_1, "a", "two");
    const auto reason = reason_of(saved);
    expect(code_of(saved) == "store_failed", code_of(saved) + reason);
    expect(reason.find((root / "scratch").string()) != std::string::npos,
           reason);
    expect(reason.find("Permission denied") != std::string::npos, reason);
    const auto removed = open()->remove(ann_1, "a");
    expect(code_of(removed) == "store_failed", "remove " + code_of(removed));
    const auto inner = open_file_artifacts(root / "x" / "y");
    expect(code_of(inner) == "store_failed", "open " + code_of(inner));
  });
  BOOST_TEST(await(reader) == 0);
  permit(fs::perms(0755));
  BOOST_TEST(load("a") == "one");
}

// A limit on the file size looks like a full disk.
BOOST_FIXTURE_TEST_CASE(a_full_disk_leaves_nothing_behind, in_folder) {
  save("a", "one");
  const auto writer = start([this] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto saved = open()->save(ann_1, "a", std::string(20'000, 'x'));
    if (code_of(saved) != "store_failed"
        || reason_of(saved).find("File too large") == std::string::npos)
      throw std::runtime_error(reason_of(saved));
  });
  BOOST_TEST(await(writer) == 0);
  BOOST_TEST(open()->versions(ann_1, "a").value()
             == std::vector<std::int64_t>{0});
  BOOST_TEST(scratch_is_empty());
}

BOOST_AUTO_TEST_SUITE_END()

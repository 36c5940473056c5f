// The paths of artifacts: each name has a path of its own, which is valid on
// any disk.

#include "troupe/stores/artifacts/path.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(artifact_paths)

const std::vector<std::string> names = {"a",
                                        "A",
                                        "%41",
                                        "%61",
                                        "a+",
                                        ".",
                                        "..",
                                        "...",
                                        "a.b",
                                        ".a",
                                        "%2e%2e",
                                        "a/b",
                                        "../../etc/passwd",
                                        "0",
                                        "data",
                                        "own",
                                        "sessions",
                                        "é",
                                        "e\xcc\x81",
                                        std::string(127, 'l'),
                                        std::string(128, 'l'),
                                        std::string(129, 'l'),
                                        std::string(128, 'l') + ".",
                                        std::string(128, 'l') + "..",
                                        std::string(128, 'l') + "./x",
                                        std::string(128, 'l') + "+",
                                        std::string(256, 'l'),
                                        std::string(256, 'L'),
                                        std::string(512, '\xff')};

BOOST_DATA_TEST_CASE(a_component_is_plain_and_not_too_long,
                     data::make(names),
                     name) {
  for (const auto& component :
       path_of(artifact_key{{name, name, name}, name})) {
    BOOST_TEST(component.size() <= 129U);
    BOOST_TEST(component != "");
    BOOST_TEST(component.front() != '.');
    for (const char letter : component)
      BOOST_TEST(
        (std::islower(static_cast<unsigned char>(letter)) != 0
         || std::isdigit(static_cast<unsigned char>(letter)) != 0
         || std::string_view("-_.%+").find(letter) != std::string_view::npos));
  }
}

BOOST_DATA_TEST_CASE(a_name_can_be_read_from_its_path,
                     data::make(names),
                     name) {
  auto path = path_of(artifact_key{{"app", "user"}, name});
  path.erase(path.begin(), path.begin() + 3);
  std::string whole;
  for (const auto& component : path) {
    BOOST_TEST(is_continued(component) == (&component != &path.back()));
    whole += component;
    if (is_continued(component))
      whole.pop_back();
  }
  BOOST_TEST((decoded_name(whole) == name));
}

// No two names have the same path, and no path is inside another one.
BOOST_AUTO_TEST_CASE(no_two_names_meet) {
  std::set<std::pair<owner_name, std::string>> all;
  for (const auto& first : names)
    for (const auto& second : names) {
      all.emplace(owner_name{first, second, "s"}, "f");
      all.emplace(owner_name{first, second}, "s");
      all.emplace(owner_name{"a", first, second}, "f");
      all.emplace(owner_name{"a", "u", first}, second);
      all.emplace(owner_name{"a", first}, second);
    }
  std::set<folder_path> paths;
  for (const auto& [owner, name] : all)
    paths.insert(path_of(artifact_key{owner, name}));
  BOOST_TEST(paths.size() == all.size());
  // In this order, the content of a folder follows the folder directly.
  const auto lies_in = [](const folder_path& inner, const folder_path& outer) {
    return inner.size() > outer.size()
           && std::equal(outer.begin(), outer.end(), inner.begin());
  };
  BOOST_TEST((std::ranges::adjacent_find(
                paths,
                [&lies_in](const folder_path& path, const folder_path& next) {
                  return lies_in(next, path);
                })
              == paths.end()));
}

const std::vector<std::string> no_encodings = {
  "A", "%4", "%", "%g0", "%61", "%4A", "a b", "a+", ".a", "%2E", "% 1", "%-1"};

BOOST_DATA_TEST_CASE(what_is_no_encoding_has_no_name,
                     data::make(no_encodings),
                     text) {
  BOOST_TEST(!decoded_name(text).has_value());
}

BOOST_AUTO_TEST_CASE(a_version_is_a_plain_number) {
  BOOST_TEST(version_of("0").value() == 0);
  BOOST_TEST(version_of("10").value() == 10);
  for (const auto* text : {"",
                           "00",
                           "01",
                           "-1",
                           "+1",
                           "1a",
                           "data",
                           "9223372036854775807",
                           "99999999999999999999"})
    BOOST_TEST(!version_of(text).has_value(), text);
}

BOOST_AUTO_TEST_SUITE_END()

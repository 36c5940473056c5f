// Opening an artifact store by its address.

#include "troupe/stores/artifact_store.hpp"

#include "../outcome.hpp"
#include "temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(artifact_address)

namespace {

const session_key ann_1{"press", "ann", "s1"};

} // namespace

BOOST_AUTO_TEST_CASE(opens_what_it_names) {
  BOOST_TEST(code_of(open_artifact_store("memory:")) == "ok");
  const temporary_folder folder;
  const auto file = "file:" + (folder.path() / "a" / "b").string();
  const auto kept = open_artifact_store(file);
  BOOST_TEST_REQUIRE(code_of(kept) == "ok", reason_of(kept));
  (*kept)->save(ann_1, "a", "one").value();
  const auto loaded = open_artifact_store(file).value()->load(ann_1, "a");
  BOOST_TEST(*loaded.value()->text() == "one");
}

BOOST_AUTO_TEST_CASE(carries_the_limit) {
  const temporary_folder folder;
  for (const auto& address :
       {std::string("memory:"), "file:" + folder.path().string()}) {
    const auto kept = open_artifact_store(address, {.bytes_max = 2}).value();
    BOOST_TEST(code_of(kept->save(ann_1, "a", "abc")) == "too_large");
  }
}

const std::vector<std::string> bad_addresses = {"",
                                                "memory",
                                                "memory:x",
                                                "Memory:",
                                                "sqlite:x",
                                                "/tmp/x",
                                                "file:",
                                                "file:..",
                                                "file:a/../b",
                                                "file:a?b",
                                                "file:a#b",
                                                "file:%2e%2e/a",
                                                "file:a%00"};

BOOST_DATA_TEST_CASE(is_refused_if_it_leads_elsewhere,
                     data::make(bad_addresses),
                     address) {
  const auto kept = open_artifact_store(address);
  BOOST_TEST(code_of(kept) == "invalid_argument");
  BOOST_TEST(reason_of(kept).find("'" + address + "'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

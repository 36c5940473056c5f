// Base64: the examples of RFC 4648, both alphabets, and invalid text.

#include "troupe/core/support/base64.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(base64)

namespace {

const std::vector<std::string> plain
  = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
const std::vector<std::string> encoded
  = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};

// The bytes give the last two letters of each alphabet.
const std::string high_bytes = "\xfb\xff\xbf";

std::string random_bytes(random_source& random, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size)
    bytes += static_cast<char>(random.below(256));
  return bytes;
}

} // namespace

BOOST_DATA_TEST_CASE(is_that_of_rfc_4648,
                     data::make(plain) ^ data::make(encoded),
                     bytes,
                     text) {
  BOOST_TEST(to_base64(bytes) == text);
  BOOST_TEST(from_base64(text).value() == bytes);
}

BOOST_AUTO_TEST_CASE(either_alphabet_reads) {
  BOOST_TEST(to_base64(high_bytes) == "+/+/");
  BOOST_TEST(to_base64(high_bytes, base64_alphabet::url) == "-_-_");
  BOOST_TEST(from_base64("+/+/").value() == high_bytes);
  BOOST_TEST(from_base64("-_-_").value() == high_bytes);
}

BOOST_DATA_TEST_CASE(padding_may_be_left_out,
                     data::make(plain) ^ data::make(encoded),
                     bytes,
                     text) {
  BOOST_TEST(from_base64(text.substr(0, text.find('='))).value() == bytes);
}

const std::vector<std::string> malformed = {"Z",
                                            "Zm9vY",
                                            "Zg=",
                                            "Zg===",
                                            "=",
                                            "==",
                                            "====",
                                            "Z=g=",
                                            "Zg==Zg==",
                                            "Zm9v=",
                                            " Zm9v",
                                            "Zm9v\n",
                                            "Zm 9v",
                                            "Zm9*",
                                            "Zm\xc3\xa9"};

BOOST_DATA_TEST_CASE(what_is_malformed_is_refused,
                     data::make(malformed),
                     text) {
  BOOST_TEST(code_of(from_base64(text)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_nul_in_the_text_is_refused) {
  BOOST_TEST(code_of(from_base64(std::string_view("Zm9\0", 4)))
             == "invalid_argument");
}

BOOST_DATA_TEST_CASE(any_bytes_come_back, data::xrange(50), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto bytes = random_bytes(random, random.below(200));
  for (const auto alphabet : {base64_alphabet::standard, base64_alphabet::url})
    BOOST_TEST((from_base64(to_base64(bytes, alphabet)).value() == bytes));
}

BOOST_AUTO_TEST_CASE(large_data_comes_back) {
  for (const std::size_t more : {0U, 1U}) {
    std::string bytes(std::size_t{3} * (1U << 24U) + more, 'x');
    bytes.back() = '\xff';
    const auto text = to_base64(bytes);
    BOOST_TEST(text.size() == (bytes.size() + 2) / 3 * 4);
    BOOST_TEST((from_base64(text).value() == bytes));
  }
}

BOOST_AUTO_TEST_SUITE_END()

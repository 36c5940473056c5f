// The headers of W3C Trace Context.

#include "troupe/models/trace_context.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(trace_contexts)

namespace {

const std::string trace = "0af7651916cd43dd8448eb211c80319c";
const std::string above = "b7ad6b7169203331";
const std::string valid = "00-" + trace + "-" + above + "-01";

} // namespace

BOOST_AUTO_TEST_CASE(a_parent_is_written_as_it_was_read) {
  const auto read = read_traceparent(valid);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->is_sampled);
  BOOST_TEST(read->trace.front() == 0x0a);
  BOOST_TEST(read->span.back() == 0x31);
  BOOST_TEST(to_traceparent(*read) == valid);
}

BOOST_AUTO_TEST_CASE(only_the_lowest_flag_says_that_a_trace_is_sampled) {
  const auto with = [](const std::string& flags) {
    return read_traceparent("00-" + trace + "-" + above + "-" + flags).value();
  };
  BOOST_TEST(!with("00").is_sampled);
  BOOST_TEST(!with("fe").is_sampled);
  BOOST_TEST(with("03").is_sampled);
  BOOST_TEST(to_traceparent(with("fe")).ends_with("-00"));
}

BOOST_AUTO_TEST_CASE(a_later_version_may_have_more_fields) {
  const auto later = "cc-" + trace + "-" + above + "-01";
  BOOST_TEST(read_traceparent(later).has_value());
  BOOST_TEST(read_traceparent(later + "-more").has_value());
  BOOST_TEST(!read_traceparent(later + ".more").has_value());
  BOOST_TEST(!read_traceparent(later + "-a\nb").has_value());
  BOOST_TEST(!read_traceparent(later + "-\xff").has_value());
}

BOOST_DATA_TEST_CASE(
  an_invalid_parent_is_not_read,
  data::make({std::string(),
              "ff" + valid.substr(2),
              "0" + valid.substr(2),
              valid + "-more",
              valid.substr(0, 54),
              "00-0AF7651916CD43DD8448EB211C80319C-" + above + "-01",
              "00-" + std::string(32, '0') + "-" + above + "-01",
              "00-" + trace + "-" + std::string(16, '0') + "-01",
              "00-" + trace + "_" + above + "-01",
              "00-" + trace + "-" + above + "-0g"}),
  text) {
  BOOST_TEST(!read_traceparent(text).has_value());
}

BOOST_AUTO_TEST_CASE(a_state_is_a_list_of_keys_and_values) {
  for (const char* text :
       {"", "a=1", "a=1,b=2", "a=1 ,\tb=2", "a=1,,b=2", "1t@vendor=x y", ","})
    BOOST_TEST(is_tracestate(text), text);
  for (const char* text : {"a", "=1", "a=", "A=1", "a=b=c", "a b=1", "ä=1"})
    BOOST_TEST(!is_tracestate(text), text);
  std::string many = "k0=v";
  for (int number = 1; number < 32; ++number)
    many += ",k" + std::to_string(number) + "=v";
  BOOST_TEST(is_tracestate(many));
  BOOST_TEST(!is_tracestate(many + ",k32=v"));
  BOOST_TEST(is_tracestate(std::string(4'096, ',')));
  BOOST_TEST(!is_tracestate(std::string(4'097, ',')));
}

BOOST_AUTO_TEST_CASE(a_check_names_the_header) {
  const auto check = [](std::string parent, std::string state) {
    trace_context given;
    given.parent = std::move(parent);
    given.state = std::move(state);
    return check_trace_context(given);
  };
  BOOST_TEST(check("", "").has_value());
  BOOST_TEST(check(valid, "a=1").has_value());
  BOOST_TEST(code_of(check("x", "")) == "invalid_argument");
  BOOST_TEST(reason_of(check("x", "")).find("traceparent")
             != std::string::npos);
  BOOST_TEST(code_of(check(valid, "x")) == "invalid_argument");
  BOOST_TEST(code_of(check("", "a=1")) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()

// Times of steps in the metadata of an event, beside other metadata.

#include "troupe/agents/turns/step_times.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(step_times)

namespace {

step_time step(step_kind kind, std::string name, std::string call_id = {}) {
  step_time made;
  made.kind = kind;
  made.name = std::move(name);
  made.call_id = std::move(call_id);
  made.began = timestamp(1'700'000'000'123'456us);
  made.ended = made.began + 25ms;
  return made;
}

event with(const char* metadata) {
  event said;
  said.extra = json{{"customMetadata", parse_json(metadata).value()}};
  return said;
}

} // namespace

BOOST_AUTO_TEST_CASE(what_was_told_is_read_again_also_over_the_wire) {
  const std::vector<step_time> told{step(step_kind::model, "m"),
                                    step(step_kind::tool, "look", "call-1")};
  event said;
  tell_steps(said, told);
  BOOST_TEST((steps_of(said) == told));
  BOOST_TEST((steps_of(event_from_json(to_json(said)).value()) == told));
}

BOOST_AUTO_TEST_CASE(other_metadata_stays) {
  auto said = with(R"({"mine": 1, "troupe": {"other": 2}})");
  tell_steps(said, {{step(step_kind::model, "m")}});
  const auto& metadata = said.extra.data().at("customMetadata");
  BOOST_TEST(metadata.at("mine") == 1);
  BOOST_TEST(metadata.at("troupe").at("other") == 2);
  BOOST_TEST(steps_of(said).size() == 1U);
  auto text = with(R"("a text")");
  tell_steps(text, {{step(step_kind::model, "m")}});
  BOOST_TEST(text.extra.data().at("customMetadata") == "a text");
}

BOOST_AUTO_TEST_CASE(a_step_that_did_not_work_is_not_told) {
  event said;
  auto idle = step(step_kind::tool, "t");
  idle.began = {};
  tell_steps(said, {{idle}});
  BOOST_TEST(said.extra.is_null());
}

BOOST_AUTO_TEST_CASE(what_others_wrote_there_is_no_step) {
  for (
    const auto* metadata :
    {"1",
     "{}",
     R"({"troupe": 3})",
     R"({"troupe": {"steps": {}}})",
     R"({"troupe": {"steps": [1, {}, {"kind": "model"}]}})",
     R"({"troupe": {"steps": [{"kind": "dance", "began": 1, "ended": 2}]}})",
     R"({"troupe": {"steps": [{"kind": "tool", "began": 3, "ended": 2}]}})",
     R"({"troupe": {"steps": [{"kind": "tool", "began": "1", "ended": 2}]}})"})
    BOOST_TEST(steps_of(with(metadata)).empty(), metadata);
  BOOST_TEST(steps_of(event()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

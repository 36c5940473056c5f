// The first invocation in an event: written, read and removed.

#include "troupe/contexts/first_invocation.hpp"

#include "troupe/contexts/lanes/event_place.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(first_invocations)

namespace {

event made_by(std::string run) {
  event said(text("said"));
  said.invocation_id = std::move(run);
  return said;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_event_without_the_field_began_in_its_own_run) {
  const auto said = made_by("e-1");
  BOOST_TEST(first_invocation(said) == "e-1");
  BOOST_TEST(first_invocation(event()) == "");
}

BOOST_AUTO_TEST_CASE(the_field_is_stored_with_the_event) {
  auto said = made_by("e-2");
  set_first_invocation(said, "e-1");
  const auto read = event_from_json(to_json(said)).value();
  BOOST_TEST(first_invocation(read) == "e-1");
  BOOST_TEST(read.invocation_id == "e-2");
  BOOST_TEST(read.extra->at("customMetadata").at("troupe")
             == json::object({{"firstInvocation", "e-1"}}));
}

BOOST_AUTO_TEST_CASE(the_own_run_and_no_run_remove_the_field) {
  for (const auto* none : {"", "e-2"}) {
    auto said = made_by("e-2");
    set_first_invocation(said, none);
    BOOST_TEST(said.extra.is_null());
    set_first_invocation(said, "e-1");
    set_first_invocation(said, none);
    BOOST_TEST(said.extra.is_null());
    BOOST_TEST(first_invocation(said) == "e-2");
  }
}

BOOST_AUTO_TEST_CASE(other_fields_stay) {
  auto said = made_by("e-2");
  said.extra = json::object({{"errorCode", "x"}});
  set_place(said, "a@1", agent_step::state);
  const auto before = said.extra;
  set_first_invocation(said, "e-1");
  BOOST_TEST(path_in(said) == "a@1");
  set_first_invocation(said, {});
  BOOST_TEST((said.extra == before));
}

BOOST_AUTO_TEST_CASE(a_field_of_another_form_does_not_count) {
  for (const auto& other : {json(7), json(""), json(nullptr), json::array()}) {
    auto said = made_by("e-2");
    set_fact(said, "firstInvocation", other);
    BOOST_TEST(first_invocation(said) == "e-2");
  }
  auto said = made_by("e-2");
  said.extra = json::object({{"customMetadata", "text"}});
  BOOST_TEST(first_invocation(said) == "e-2");
}

BOOST_AUTO_TEST_SUITE_END()

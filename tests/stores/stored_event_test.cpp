// The text in which databases store events.

#include "troupe/stores/shared/stored_event.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(stored_events)

namespace {

// The body of an event, read strictly: a name that comes twice is refused.
json body_of(const event& said) {
  stored_event columns;
  encode(said, columns).value();
  return parse_json(columns.body).value();
}

event read_back(const event& said) {
  stored_event columns;
  encode(said, columns).value();
  return decode({columns.id, columns.microseconds, columns.body, columns.delta})
    .value();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_body_has_what_is_set) {
  event said;
  said.author = "writer";
  BOOST_TEST(body_of(said) == json({{"author", "writer"}}));
  said.invocation_id = "i";
  said.branch = "a.b";
  said.partial = true;
  said.content = user_text("a \"word\"");
  said.content.parts.front().thought = true;
  said.actions.escalate = true;
  said.actions.artifact_delta["f"] = 2;
  said.long_running_tool_ids = {"c1"};
  said.extra = json{{"output", {1, 2.5, nullptr}}};
  BOOST_TEST(
    body_of(said)
    == json({{"author", "writer"},
             {"invocationId", "i"},
             {"branch", "a.b"},
             {"partial", true},
             {"content",
              {{"role", "user"},
               {"parts", {{{"text", "a \"word\""}, {"thought", true}}}}}},
             {"actions", {{"escalate", true}, {"artifactDelta", {{"f", 2}}}}},
             {"longRunningToolIds", {"c1"}},
             {"output", {1, 2.5, nullptr}}}));
  said.id = "e";
  BOOST_TEST((read_back(said) == said));
}

// A program can put any name into the further fields.
BOOST_AUTO_TEST_CASE(further_fields_replace_no_members) {
  event said;
  said.id = "e";
  said.author = "writer";
  said.content = user_text("text");
  said.actions.transfer_to_agent = "clerk";
  said.actions.extra = json{{"transferToAgent", "thief"},
                            {"stateDelta", {{"stolen", 1}}},
                            {"artifactDelta", {{"stolen", 1}}},
                            {"artifact_delta", {{"stolen", 1}}},
                            {"route", "long"}};
  said.extra = json{{"id", "other"},
                    {"author", "thief"},
                    {"invocationId", "other"},
                    {"invocation_id", "other"},
                    {"timestamp", 1},
                    {"content", {{"parts", json::array()}}},
                    {"actions", {{"escalate", true}}},
                    {"a \"name\"", 1}};
  BOOST_TEST(
    body_of(said)
    == json({{"author", "writer"},
             {"content", {{"role", "user"}, {"parts", {{{"text", "text"}}}}}},
             {"actions", {{"transferToAgent", "clerk"}, {"route", "long"}}},
             {"a \"name\"", 1}}));
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_is_refused) {
  const std::string broken("\xff");
  const auto refused = [](const event& said) {
    stored_event columns;
    return code_of(encode(said, columns)) == "invalid_argument";
  };
  for (auto* const text :
       {+[](event& of) { return &of.author; },
        +[](event& of) { return &of.branch; },
        +[](event& of) { return &of.invocation_id; },
        +[](event& of) { return &of.content.role; },
        +[](event& of) { return &of.actions.transfer_to_agent; }}) {
    event said;
    *text(said) = broken;
    BOOST_TEST(refused(said));
  }
  event said;
  said.extra = json{{"output", broken}};
  BOOST_TEST(refused(said));
  said.extra = json{{broken, 1}};
  BOOST_TEST(refused(said));
}

BOOST_AUTO_TEST_SUITE_END()

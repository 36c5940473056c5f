// Instruction templates: which text is a placeholder, its replacement, and text
// that stays unchanged.

#include "troupe/contexts/instruction_template.hpp"

#include "troupe/contexts/lanes/host.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(instruction_templates)

namespace {

state_snapshot known_keys() {
  state_snapshot known;
  known.session.set("k", json("V"));
  known.session.set("_k1", json("under"));
  known.session.set("größe", json("huge"));
  known.session.set("雪", json("snow"));
  known.session.set("int", json(5));
  known.session.set("float", json(1.0));
  known.session.set("yes", json(true));
  known.session.set("list", json::array({1, "a"}));
  known.session.set("object", json{{"b", nullptr}, {"a", "é"}});
  known.session.set("empty", json(""));
  known.session.set("null", json());
  known.session.set("braces", json("{k} {{k}} {missing}"));
  known.session.set("file.txt", json("dotted"));
  known.session.set("a-b", json("no name"));
  known.session.set("other:x", json("no prefix"));
  known.session.set("k ", json("blank"));
  known.app.set("x", json("app x"));
  known.user.set("x", json("user x"));
  known.user.set("preferences.theme", json("dark"));
  known.temp.set("x", json("temp x"));
  return known;
}

result<std::string> filled(std::string_view instruction) {
  return inject_session_state(
    instruction, readonly_state(known_keys()), "writer");
}

result<std::string> filled_in_any(std::string_view instruction) {
  return inject_session_state(
    instruction, readonly_state(known_keys()), "writer", template_braces::any);
}

struct template_row {
  std::string instruction;
  std::string outcome;

  friend std::ostream& operator<<(std::ostream& out, const template_row& row) {
    return out << '\'' << row.instruction << '\'';
  }
};

const std::vector<template_row> replaced = {
  {"", ""},
  {"no placeholder", "no placeholder"},
  {"{k}", "V"},
  {"a{k}b{k}c", "aVbVc"},
  {"{k}{_k1}", "Vunder"},
  {"{größe} {雪}", "huge snow"},
  // White space inside the braces.
  {"{ k }", "V"},
  {"{\n\tk\r\n}", "V"},
  {"{ k? }", "V"},
  {"{ app:x }", "app x"},
  // Optional keys.
  {"{k?}", "V"},
  {"<{missing?}>", "<>"},
  {"<{app:missing?}>", "<>"},
  // Prefixes.
  {"{app:x}, {user:x}, {temp:x}", "app x, user x, temp x"},
  // Values of all types.
  {"{int}", "5"},
  {"{float}", "1.0"},
  {"{yes}", "true"},
  {"{list}", R"([1,"a"])"},
  {"{object}", R"({"a":"é","b":null})"},
  {"<{empty}>", "<>"},
  {"<{null}>", "<>"},
  {"{braces}", "{k} {{k}} {missing}"},
  // Dots.
  {"{file.txt}", "dotted"},
  {"{user:preferences.theme}", "dark"},
  {"{ user:preferences.theme? }", "dark"},
  // Placeholders beside other braces.
  {R"({"k": {k}})", R"({"k": V})"},
  {R"({"a":{"b":{k}}})", R"({"a":{"b":V}})"},
  {R"([{k},{int}])", "[V,5]"},
  {"{k}}", "V}"},
  {"{k} {", "V {"},
  {"} {k}", "} V"},
};

const std::vector<std::string> left_alone = {
  "{{k}}",
  "{{ k }}",
  "{{missing}}",
  "{{app:x}}",
  "{{}}",
  "a {{anything at all}} b",
  "{",
  "}",
  "{}",
  "{ }",
  "{?}",
  "{ ? }",
  "{k",
  "{missing",
  "k}",
  "{ k",
  "{k ?}",
  "{missing??}",
  "{a-b}",
  "{a b}",
  "{1k}",
  "{k!r}",
  "{k:>5}",
  "{k[0]}",
  "{app: x}",
  "{app :x}",
  "{app:}",
  "{app:x:y}",
  "{app:user:x}",
  "{other:x}",
  "{App:x}",
  "{k.x}",
  "{k.x?}",
  "{preferences.theme}",
  "{user:preferences.missing}",
  "{.k}",
  "{k.}",
  "{k..x}",
  R"({"key": "v"})",
  R"({"key": [1, {"deep": {}}]})",
  "{\n  \"indented\": true\n}",
  "if (x) { return y; }",
};

const std::vector<template_row> in_any_braces = {
  {"", ""},
  {"{k}", "V"},
  {"{{k}}", "V"},
  {"{{{k}}}", "V"},
  {"{{{{ k }}}}", "V"},
  {"a{{k}}b{k}c", "aVbVc"},
  {"{{k}}{{_k1}}", "Vunder"},
  {"{{\n\tk\r\n}}", "V"},
  {"{{ k? }}", "V"},
  {"<{{missing?}}>", "<>"},
  {"{{app:x}}, {{{user:x}}}, {{ temp:x }}", "app x, user x, temp x"},
  {"{{int}} {{list}}", R"(5 [1,"a"])"},
  {"<{{null}}>", "<>"},
  {"{{braces}}", "{k} {{k}} {missing}"},
  {"{{größe}}", "huge"},
  // The numbers of braces need not be equal.
  {"{k}}", "V"},
  {"{{k}", "V"},
  {"{{{k}", "V"},
  {R"({"k": {k}})", R"({"k": V)"},
  {R"({"a":{"b":{{k}}}})", R"({"a":{"b":V)"},
  {R"([{k},{{int}}])", "[V,5]"},
  {"} {{k}} {", "} V {"},
  // Only the brace in front decides.
  {"$ {{k}} {k}", "$ V V"},
  {"${k}{k}", "${k}V"},
  {"{k}${{k}}{{k}}", "V${{k}}V"},
  {"$k{k}$", "$kV$"},
};

const std::vector<std::string> left_alone_in_any_braces = {
  "{{}}",
  "{{ }}",
  "{}",
  "{?}",
  "{{?}}",
  "{{",
  "}}",
  "{{k",
  "k}}",
  "${k}",
  "${{k}}",
  "\\{k}",
  "\\{{{k}}}",
  "${missing}",
  "{{k ?}}",
  "{{missing??}}",
  "{{a-b}}",
  "a {{anything at all}} b",
  "{{1k}}",
  "{{k!r}}",
  "{{app: x}}",
  "{{app:}}",
  "{{app:x:y}}",
  "{{other:x}}",
  // Names with dots are no names in ADK, even if there is such a key.
  "{file.txt}",
  "{{k.x}}",
  "{user:preferences.theme}",
  R"({"key": "v"})",
  R"({"key": [1, {"deep": {}}]})",
  "if (x) { return y; }",
};

const std::vector<std::pair<std::string, std::string>> failing = {
  {"{missing}", "missing"},
  {"Say {k} and {app:missing} now", "app:missing"},
  {"{ user:missing }", "user:missing"},
  {"{temp:k}", "temp:k"},
  {"{\"json\": {missing}}", "missing"},
  {"{artifact.report}", "artifact.report"},
  {"{artifact.report?}", "artifact.report"},
};

} // namespace

BOOST_DATA_TEST_CASE(placeholders_become_values, data::make(replaced), row) {
  const auto outcome = filled(row.instruction);
  BOOST_REQUIRE_EQUAL(code_of(outcome), "ok");
  BOOST_TEST(*outcome == row.outcome);
}

BOOST_DATA_TEST_CASE(everything_else_stands_as_it_is,
                     data::make(left_alone),
                     text) {
  const auto outcome = filled(text);
  BOOST_REQUIRE_EQUAL(code_of(outcome), "ok");
  BOOST_TEST(*outcome == text);
}

BOOST_AUTO_TEST_CASE(a_missing_key_fails_naming_key_and_agent) {
  for (const auto& [instruction, key] : failing)
    BOOST_TEST_CONTEXT(instruction) {
      const auto outcome = filled(instruction);
      BOOST_TEST(code_of(outcome) == "template_error");
      BOOST_TEST(reason_of(outcome).find("'writer'") != std::string::npos);
      BOOST_TEST(reason_of(outcome).find(key) != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_doubled_brace_does_not_hide_later_placeholders) {
  BOOST_TEST(filled("{{k}} {k} {{k}}").value() == "{{k}} V {{k}}");
  BOOST_TEST(filled(R"(Open with {{. Topic {k}. {"a": {"b": 1}})").value()
             == R"(Open with {{. Topic V. {"a": {"b": 1}})");
}

// The rows were compared with the regular expression of ADK 2.13.
BOOST_DATA_TEST_CASE(all_braces_around_a_name_may_be_replaced,
                     data::make(in_any_braces),
                     row) {
  const auto outcome = filled_in_any(row.instruction);
  BOOST_REQUIRE_EQUAL(code_of(outcome), "ok");
  BOOST_TEST(*outcome == row.outcome);
}

BOOST_DATA_TEST_CASE(braces_around_other_text_stay,
                     data::make(left_alone_in_any_braces),
                     text) {
  const auto outcome = filled_in_any(text);
  BOOST_REQUIRE_EQUAL(code_of(outcome), "ok");
  BOOST_TEST(*outcome == text);
}

BOOST_AUTO_TEST_CASE(a_missing_key_in_any_braces_fails) {
  for (const std::string instruction :
       {"{missing}", "{{missing}}", "{{{ app:missing }", "{artifact.a?}"})
    BOOST_TEST(code_of(filled_in_any(instruction)) == "template_error");
}

BOOST_AUTO_TEST_CASE(what_was_recorded_is_seen) {
  state view(known_keys());
  view.set("k", "new");
  view.set("user:fresh", "also");
  BOOST_TEST(inject_session_state("{k} {user:fresh}", view, "writer").value()
             == "new also");
  view.erase("k");
  BOOST_TEST(code_of(inject_session_state("{k}", view, "writer"))
             == "template_error");
}

BOOST_AUTO_TEST_CASE(a_context_gives_state_and_name) {
  const run_facts facts;
  const readonly_context context(facts, "editor", state(known_keys()));
  BOOST_TEST(inject_session_state("{k}", context).value() == "V");
  BOOST_TEST(inject_session_state("{{k}}", context).value() == "{{k}}");
  BOOST_TEST(
    inject_session_state("{{k}}", context, template_braces::any).value()
    == "V");
  BOOST_TEST(
    reason_of(inject_session_state("{missing}", context).get()).find("'editor'")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(long_texts_take_time_in_proportion) {
  const std::string opened(300'000, '{');
  BOOST_TEST(filled(opened).value() == opened);
  BOOST_TEST(filled_in_any(opened).value() == opened);
  std::string guarded;
  for (int count = 0; count < 100'000; ++count)
    guarded += "${{k} {";
  BOOST_TEST(filled_in_any(guarded).value() == guarded);
  std::string many;
  std::string expected;
  for (int count = 0; count < 20'000; ++count) {
    many += "{k} ";
    expected += "V ";
  }
  BOOST_TEST(filled(many).value() == expected);
  BOOST_TEST(filled_in_any(many).value() == expected);
}

BOOST_AUTO_TEST_SUITE_END()

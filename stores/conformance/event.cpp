// Checks that events and values read back exactly as they were written.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

#include <limits>

namespace troupe::conformance {

namespace {

using namespace names;

// Events in wire form that together have every field.
std::vector<json> wire_events() {
  const auto said = [](const json& part) {
    return json{{"content", {{"role", "model"}, {"parts", {part}}}}};
  };
  std::vector<json> events = {
    json::object(),
    said({{"text", ""}}),
    said({{"text", "two\nlines, \"quotes\", \\ and \u0001\u007f"}}),
    said({{"text", std::string("a NUL \0 inside", 14)}}),
    said({{"text", "é e\u0301 雪 🦉 \u202e\u2028"}}),
    said({{"text", "hm"}, {"thought", true}}),
    said({{"text", "hm"}, {"thoughtSignature", "c2ln"}}),
    said(
      {{"inlineData",
        {{"mimeType", "application/octet-stream"}, {"data", "AAECAwT/+v8="}}}}),
    said({{"fileData", {{"fileUri", "gs://a/b"}}}}),
    said({{"executableCode", {{"code", "1 / 0"}, {"language", "PYTHON"}}}}),
    said({{"codeExecutionResult", {{"outcome", "OUTCOME_OK"}}}}),
    said({{"functionCall",
           {{"id", "c1"},
            {"name", "look"},
            {"args", {{"q", {1, nullptr, {{"d", nullptr}}}}}}}}}),
    said({{"functionCall",
           {{"name", "look"},
            {"args", json::object()},
            {"partialArgs", {{{"jsonPath", "$.q"}, {"stringValue", "x"}}}},
            {"willContinue", true}}}}),
    said({{"functionResponse",
           {{"id", "c1"}, {"name", "look"}, {"response", {{"result", 1}}}}}}),
    said({{"functionResponse",
           {{"name", "look"},
            {"response", json::object()},
            {"parts",
             {{{"inlineData", {{"mimeType", "image/png"}, {"data", "AAEC"}}}}}},
            {"willContinue", false},
            {"scheduling", "WHEN_IDLE"},
            {"unknownField", {1, nullptr}}}}}),
    {{"content", {{"role", "user"}, {"parts", json::array()}}}},
    {{"content", {{"parts", {{{"text", "no role"}}}}}}},
    {{"branch", "a.b.c"},
     {"longRunningToolIds", {"b", "a", ""}},
     {"errorCode", "E"},
     {"errorMessage", "no"},
     {"turnComplete", false},
     {"interrupted", true},
     {"avgLogprobs", -0.25},
     {"usageMetadata", {{"totalTokenCount", 17}}},
     {"unknownField", {{"deep", {1, {2, {3, json::object()}}}}}},
     {"anotherField", "plain"},
     {"", "an empty name"}},
    {{"actions",
      {{"appliedOps",
        {{{"op", "add"}, {"key", "app:\"n\""}, {"value", -0.5}},
         {{"op", "append"}, {"key", "app:l"}, {"value", {nullptr, "é"}}},
         {{"op", "union"}, {"key", "user:s"}, {"former", {1, {{"a", 2}}}}},
         {{"op", "min"}, {"key", "user:m"}, {"former", 18446744073709551615U}},
         {{"op", "max"}, {"key", "user:m"}},
         {{"op", "merge"},
          {"key", "app:o"},
          {"value", {"new"}},
          {"former", {{"a", nullptr}}}},
         {{"op", "cas"}, {"key", "app:c"}, {"former", "x"}}}}}}},
    {{"escalated", true},
     {"actions",
      {{"escalate", true},
       {"appliedOps", {{{"op", "add"}, {"key", "app:n"}, {"value", 1}}}}}}},
    {{"actions",
      {{"artifactDelta",
        {{"b.txt", 3}, {"a.txt", std::numeric_limits<std::int64_t>::max()}}},
       {"transferToAgent", "editor"},
       {"escalate", true},
       {"skipSummarization", true},
       {"endOfAgent", true},
       {"agentState", {{"step", 3}}},
       {"rewindBeforeInvocationId", "i"},
       {"compaction", {{"start", 1.5}}},
       {"unknownAction", {nullptr, false}}}}},
    {{"actions",
      {{"stateDelta",
        {{"gone", nullptr},
         {"user:gone", nullptr},
         {"a", {{"b", nullptr}}}}}}}},
  };
  return events;
}

std::vector<json> values() {
  return {true,
          false,
          0,
          -1,
          std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::uint64_t>::max(),
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
            + 1,
          9'007'199'254'740'993, // A double cannot hold it exactly.
          0.0,
          -0.0,
          1.0,
          0.1,
          -1e300,
          1e16,
          std::numeric_limits<double>::max(),
          std::numeric_limits<double>::min(),
          std::numeric_limits<double>::denorm_min(),
          0.30000000000000004,
          "",
          "null",
          "1",
          std::string("\0", 1),
          "\\u0000",
          json::array(),
          json::object(),
          {nullptr},
          {{"a", nullptr}},
          {{"", 0}},
          {{"a.b", {{"c\"d", {1, 2.0, "3"}}}}, {"雪", "🦉"}},
          {1, 1.0, "1", true, nullptr}};
}

void events_read_back_exactly(run& on) {
  change_maker make;
  std::vector<store_change> changes = {make.create(key)};
  std::vector<event_ptr> said;
  for (const auto& wire : wire_events()) {
    auto made = event_from_json(wire).value();
    made.id = fmt::format("e-{}", said.size());
    made.author = "writer \"é\"";
    made.invocation_id = "i 雪";
    made.timestamp
      = microseconds(1'763'712'345'000'001 + 333'333 * std::ssize(said));
    said.push_back(std::make_shared<const event>(std::move(made)));
    changes.push_back(make.append(key, said.back()));
  }
  on.commit(changes);
  const auto one_by_one = [&on](std::uint64_t number) {
    return on.kept().load_events(key, number, number).value();
  };
  for (std::size_t index = 0; index < said.size(); ++index)
    on.expect_same(fmt::format("event {}", index + 1),
                   shown(one_by_one(index + 1)),
                   shown(std::vector{said[index]}));
  on.expect_same("events loaded with the session",
                 shown(on.kept()
                         .load_session(key, {.events_max = all, .ids_max = 0})
                         .value()
                         .value()
                         .events),
                 shown(said));
}

void ids_and_authors_read_back_exactly(run& on) {
  change_maker make;
  on.commit(make.create(key));
  std::vector<event_ptr> said;
  for (const auto& id : {std::string("plain"),
                         std::string("' OR 1=1 --"),
                         std::string("\"\\\n%"),
                         std::string("🦉"),
                         std::string("a\0b", 3),
                         std::string(5'000, 'i')}) {
    event made;
    made.id = id;
    made.author = id;
    made.invocation_id = id;
    made.branch = id;
    said.push_back(std::make_shared<const event>(std::move(made)));
    on.commit(make.append(key, said.back()));
  }
  const auto loaded = on.kept().load_session(key, {}).value().value();
  on.expect_same("events", shown(loaded.events), shown(said));
  auto hashes = json::array();
  for (const auto& each : said)
    hashes.push_back(id_hash(each->id));
  on.expect_same("id hashes", loaded.id_hashes, hashes);
}

void times_read_back_to_the_microsecond(run& on) {
  change_maker make;
  on.commit(make.create(key));
  std::vector<event_ptr> said;
  for (const std::int64_t time : {std::int64_t{0},
                                  std::int64_t{1},
                                  std::int64_t{-1},
                                  std::int64_t{-62'135'596'800'000'000},
                                  std::int64_t{999'999},
                                  std::int64_t{1'763'712'345'678'901},
                                  std::int64_t{99'999'999'999'999'999},
                                  std::int64_t{253'402'300'798'765'433}}) {
    said.push_back(
      make_event(fmt::format("at {}", time), json::object(), time));
    on.commit(make.append(key, said.back()));
  }
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, all).value()), shown(said));
}

void values_read_back_exactly_in_every_scope(run& on) {
  change_maker make;
  auto keys = json::object();
  for (const auto& data : values())
    keys[fmt::format("k{}", keys.size())] = data;
  auto everywhere = json::object();
  for (const auto& [name, data] : keys.items())
    for (const auto* prefix : {"", "user:", "app:"})
      everywhere[prefix + name] = data;
  const auto check = [&](const std::string& what) {
    on.expect_same(
      what + ", session",
      shown(on.kept().load_session(key, {}).value().value().scope.keys),
      keys);
    for (const auto& owner : {owner_name{"press", "ann"}, owner_name{"press"}})
      on.expect_same(what + ", " + to_string(owner),
                     shown(on.kept().load_scope(owner).value().value().keys),
                     keys);
  };
  on.commit(make.create(key, everywhere));
  check("created");
  on.commit(make.append(key, everywhere));
  check("appended");
  for (const auto& owner :
       {owner_of(key), owner_name{"press", "ann"}, owner_name{"press"}})
    on.commit(make.write(owner, keys));
  check("written");
  on.expect_same("the event",
                 shown(on.kept().load_events(key, 1, 1).value())
                   .at(0)
                   .at("actions")
                   .at("stateDelta"),
                 everywhere);
}

void large_values_read_back_exactly(run& on) {
  constexpr std::size_t bytes = std::size_t{256} * 1024 - 2;
  std::string hostile;
  while (hostile.size() + 4 <= bytes / 4)
    hostile += "\"\\\n\x01";
  change_maker make;
  on.commit(make.create(key));
  const json state = {{"plain", std::string(bytes, 'x')},
                      {"hostile", hostile},
                      {"app:list", std::vector<int>(100'000, 7)}};
  auto change = make.append(key, state);
  auto said = *change.event;
  said.content = content("model", {part(std::string(bytes, 'y'))});
  change.event = std::make_shared<const event>(std::move(said));
  on.commit(change);
  on.expect_same("event",
                 shown(on.kept().load_events(key, 1, 1).value()),
                 shown(std::vector{change.event}));
  on.expect_same(
    "session",
    shown(on.kept().load_session(key, {}).value().value().scope.keys),
    {{"hostile", hostile}, {"plain", state["plain"]}});
  on.expect_same("app",
                 shown(on.kept().load_scope({"press"}).value().value().keys),
                 {{"list", state["app:list"]}});
}

// A store does not interpret ids; the session compares them.
void event_ids_may_come_twice(run& on) {
  change_maker make;
  const auto said = make_event("same", {{"n", 1}});
  on.commit({make.create(key), make.append(key, said), make.append(key, said)});
  on.expect_same(
    "ids", ids_of(on.kept().load_events(key, 1, 9).value()), {"same", "same"});
}

} // namespace

std::vector<conformance_check> event_checks() {
#define TROUPE_CHECK(name) make_check(#name, name)
  return {
    TROUPE_CHECK(events_read_back_exactly),
    TROUPE_CHECK(ids_and_authors_read_back_exactly),
    TROUPE_CHECK(times_read_back_to_the_microsecond),
    TROUPE_CHECK(values_read_back_exactly_in_every_scope),
    TROUPE_CHECK(large_values_read_back_exactly),
    TROUPE_CHECK(event_ids_may_come_twice),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance

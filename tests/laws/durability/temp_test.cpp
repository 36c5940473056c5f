// Temporary keys, written in every possible way; no byte of them reaches a
// file.

#include "troupe/models/scripted_model.hpp"

#include "../../outcome.hpp"
#include "durable_place.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(temp)

namespace {

const session_key key{"press", "ann", "s"};

// Returns the names of the files that contain `text`.
std::string files_with(const std::string& text, const std::string& folder) {
  std::string names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file())
      continue;
    std::ifstream bytes(entry.path(), std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(bytes)), {});
    if (all.find(text) != std::string::npos)
      names += entry.path().filename().string() + " ";
  }
  return names;
}

event event_of_wire(const json& actions) {
  return event_from_json({{"author", "user"}, {"actions", actions}}).value();
}

// One operation of each kind, on keys that are used nowhere else.
json operations() {
  auto all = json::array();
  const auto add = [&all](const char* name, json operand) {
    all.push_back({{"op", name},
                   {"key", std::string("temp:bird-op-") + name},
                   {"value", std::move(operand)}});
  };
  add("add", 1);
  add("append", "canary");
  add("union", {"canary"});
  add("min", 1);
  add("max", 1);
  add("merge", {{"canary", "canary"}});
  add("cas", "canary");
  all.back()["expected"] = nullptr;
  all.push_back({{"op", "erase"}, {"key", "temp:bird-op-erase"}});
  return all;
}

void append_canaries(session_service& sessions) {
  sessions
    .append_event(key,
                  event_of_wire({{"stateDelta",
                                  {{"temp:bird-camel", "canary"},
                                   {"temp:bird-null", nullptr},
                                   {"kept", "durable mark"}}}}))
    .value();
  sessions
    .append_event(
      key, event_of_wire({{"state_delta", {{"temp:bird-snake", "canary"}}}}))
    .value();
  sessions.append_event(key, event_of_wire({{"stateOps", operations()}}))
    .value();
  auto whole = event_of_wire({{"stateDelta", {{"temp:canary", "canary"}}}});
  whole.id = "whole";
  whole.invocation_id = "whole";
  whole.timestamp = timestamp(std::chrono::seconds(1));
  sessions.append_event(key, std::make_shared<const event>(whole)).value();
  // The live handle may refuse a key that could not be read back.
  (void)sessions.state(key).set("temp:bird-handle", "canary").get();
}

tool writing_tool() {
  return tool(
    {.name = "scratch", .run = [](const json&, tool_context& context) {
       context.state().set("temp:bird-tool", "canary");
       context.state().append("temp:bird-list", "canary");
       return json("noted");
     }});
}

// An agent that writes `temp:` keys in its body, in events, at its end, in a
// tool, and as an output.
agent writing_agent() {
  scripted_reply call;
  call.function_calls = {{"", "scratch", json::object()}};
  const auto model = std::make_shared<scripted_model>(
    script{{"writer", {call, {.text = "words"}}}});
  return sequential(
    "all",
    {custom("body",
            [](invocation_context& context) -> agent_run {
              context.state().set("temp:bird-body", "canary");
              co_await context.emit(text("said"));
              event own(text("more"));
              own.actions.state_delta
                .record("temp:bird-own", operation_kind::set, json("canary"))
                .value();
              co_await context.emit(std::move(own));
              context.state().set("temp:bird-left", "canary");
              context.state().set("left", 1);
            }),
     parallel("lanes",
              {custom("lane",
                      [](invocation_context& context) -> agent_run {
                        context.state().add("temp:bird-sum", 1);
                        co_await context.emit(text("summed"));
                      })}),
     llm({.name = "writer",
          .model = model,
          .tools = {writing_tool()},
          .output_key = "temp:bird-output"})});
}

void write_canaries(runtime& on) {
  on.sessions()
    .create(key, {{"temp:bird-created", "canary"}, {"topic", "owls"}})
    .value();
  append_canaries(on.sessions());
  const json delta = {{"temp:bird-run", "canary"}, {"ran", true}};
  on.run(writing_agent(), key, {"go", delta}).wait().value();
}

} // namespace

BOOST_AUTO_TEST_CASE(temporary_keys_reach_no_file) {
  durable_place place({.seed = 701});
  runtime_options options;
  options.store = place.store();
  options.threads = 2;
  {
    auto on = runtime::open(options).value();
    write_canaries(on);
    const auto kept = on.sessions().get(key).value().state().all();
    BOOST_TEST(kept.value("kept", "") == "durable mark");
    BOOST_TEST(kept.value("ran", false));
    BOOST_TEST(kept.value("left", 0) == 1);
    // The store is open, so the write-ahead log is searched as well.
    BOOST_TEST(files_with("canary", place.store_folder()) == "");
    BOOST_TEST(files_with("durable mark", place.store_folder()) != "");
    BOOST_TEST(code_of(on.shut_down()) == "ok");
  }
  BOOST_TEST(files_with("canary", place.store_folder()) == "");
  BOOST_TEST(files_with("durable mark", place.store_folder())
             == "sessions.db ");
}

BOOST_AUTO_TEST_CASE(a_killed_process_leaves_none_either) {
  durable_place place({.seed = 702});
  program writer(place.words({.threads = 2}));
  await_ready(writer);
  // Every event has a temporary key.
  while (place.acknowledged() < 100)
    std::this_thread::yield();
  writer.send(SIGKILL);
  BOOST_TEST(writer.wait().errors == "");
  BOOST_TEST(files_with("canary", place.store_folder()) == "");
  BOOST_TEST(place.findings() == "");
  BOOST_TEST(files_with("canary", place.store_folder()) == "");
}

BOOST_AUTO_TEST_SUITE_END()

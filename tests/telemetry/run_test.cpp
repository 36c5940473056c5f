// The spans, histograms and log records of runs.

#include "troupe/agents/agent_tool.hpp"
#include "troupe/agents/workflow.hpp"
#include "troupe/stores/shared/memory_store.hpp"
#include "troupe/telemetry/exporter.hpp"

#include "../models/http_server.hpp"
#include "../runtime/agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <memory>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(telemetry_of_runs)

namespace {

/// The value of an attribute in JSON; null if there is none.
json attribute_in(const json& record, const std::string& key) {
  for (const auto& each : record.at("attributes"))
    if (each.at("key") == key)
      return each.at("value").begin().value();
  return nullptr;
}

/// A receiver, and an exporter that sends to it.
struct received {
  explicit received(telemetry::options chosen = {})
    : made(start(receiver, std::move(chosen))) {}

  static telemetry::exporter start(const http_server& receiver,
                                   telemetry::options chosen) {
    for (const auto& [to, path] : {std::pair(&chosen.traces, "/v1/traces"),
                                   std::pair(&chosen.metrics, "/v1/metrics"),
                                   std::pair(&chosen.logs, "/v1/logs")}) {
      to->url = receiver.url(path);
      to->form = telemetry::wire_form::json;
    }
    return telemetry::exporter::start(std::move(chosen)).value();
  }

  /// Runs an agent, shuts the runtime down, and returns the output of the run.
  std::string perform(const agent& root, run_options options = {}) {
    made.describe(root);
    runtime_options with;
    with.plugins = {made.watcher()};
    agent_fixture on(std::move(with));
    auto shown = on.perform(root, options);
    on.runtime.shut_down().value();
    return shown;
  }

  /// The same for a run with this message.
  std::string perform(const agent& root, user_message said) {
    made.describe(root);
    runtime_options with;
    with.plugins = {made.watcher()};
    agent_fixture on(std::move(with));
    auto shown = on.say(root, std::move(said));
    on.runtime.shut_down().value();
    return shown;
  }

  /// All records of one kind: `/v1/traces`, `Spans`, `spans`.
  std::vector<json> records(const std::string& path,
                            const std::string& kind,
                            const std::string& name) const {
    std::vector<json> all;
    for (const auto& each : receiver.requests()) {
      if (each.line.find(path) == std::string::npos)
        continue;
      const auto whole = parse_json(each.body).value();
      for (const auto& record :
           whole.at("resource" + kind).at(0).at("scope" + kind).at(0).at(name))
        all.push_back(record);
    }
    return all;
  }

  std::vector<json> spans() const {
    return records("/v1/traces", "Spans", "spans");
  }

  std::vector<json> logs() const {
    return records("/v1/logs", "Logs", "logRecords");
  }

  std::vector<json> metrics() const {
    return records("/v1/metrics", "Metrics", "metrics");
  }

  json span(const std::string& name) const {
    for (const auto& each : spans())
      if (each.at("name") == name)
        return each;
    throw std::runtime_error("no span " + name);
  }

  /// Lines of `name < parent`, sorted, without the appends.
  std::vector<std::string> relations() const {
    std::map<std::string, std::string> names;
    for (const auto& each : spans())
      names[each.at("spanId")] = each.at("name");
    std::vector<std::string> lines;
    for (const auto& each : spans()) {
      if (each.at("name") == "append_event")
        continue;
      const auto parent = each.value("parentSpanId", std::string());
      lines.push_back(each.at("name").get<std::string>() + " < "
                      + (parent.empty() ? std::string("-") : names.at(parent)));
    }
    std::ranges::sort(lines);
    return lines;
  }

  http_server receiver{server_script{say(whole("{}"))}};
  telemetry::exporter made;
};

scripted_reply answering(const std::string& words) {
  scripted_reply reply;
  reply.content = content("model", {part(words)});
  reply.extra = json::object(
    {{"finishReason", "STOP"},
     {"modelVersion", "gpt-x"},
     {"usageMetadata",
      json::object({{"promptTokenCount", 7}, {"candidatesTokenCount", 3}})}});
  return reply;
}

const std::string cause_trace = "0af7651916cd43dd8448eb211c80319c";
const std::string cause_span = "b7ad6b7169203331";

std::string parent_text(const std::string& above, const std::string& flags) {
  return "00-" + cause_trace + "-" + above + "-" + flags;
}

/// The headers of a request that starts a run.
trace_context caused(const std::string& flags) {
  trace_context made;
  made.parent = parent_text(cause_span, flags);
  made.state = "vendor=x";
  return made;
}

/// A message of that request.
user_message traced(const std::string& flags) {
  user_message said("go");
  said.trace = caused(flags);
  return said;
}

tool works() {
  return tool_of("works",
                 [](const json&, tool_context&) -> json { return "fine"; });
}

tool breaks() {
  return tool_of("breaks", [](const json&, tool_context&) -> json {
    throw std::runtime_error("broken");
  });
}

} // namespace

BOOST_AUTO_TEST_CASE(a_run_is_one_trace_of_agents_models_and_tools) {
  received on;
  const auto shown = on.perform(asks(
    "a", scripted({{"a", {calling("works"), {.text = "done"}}}}), {works()}));
  BOOST_TEST(shown.ends_with("| ok"));
  const std::vector<std::string> expected{
    "execute_tool works < invoke_agent a",
    "generate_content scripted < invoke_agent a",
    "generate_content scripted < invoke_agent a",
    "invoke_agent a < invoke_workflow a",
    "invoke_workflow a < -"};
  BOOST_TEST(on.relations() == expected, boost::test_tools::per_element());
  for (const auto& each : on.spans())
    BOOST_TEST(each.at("traceId") == on.spans().at(0).at("traceId"));
}

BOOST_AUTO_TEST_CASE(each_event_of_a_run_has_a_span_of_its_append) {
  received on;
  std::vector<std::string> ids;
  std::vector<std::string> names;
  {
    runtime_options with;
    with.plugins = {on.made.watcher()};
    with.on_commit = on.made.commits();
    agent_fixture made(std::move(with));
    made.perform(asks(
      "a", scripted({{"a", {calling("works"), {.text = "done"}}}}), {works()}));
    for (const auto& each :
         made.runtime.sessions().get(made.key).value().events())
      if (each->author != "user")
        ids.push_back(each->id);
    made.runtime.shut_down().value();
  }
  std::vector<std::string> told;
  const std::string above = on.span("invoke_agent a").at("spanId");
  for (const auto& each : on.spans()) {
    if (each.at("name") != "append_event")
      continue;
    BOOST_TEST(each.at("parentSpanId") == above);
    told.push_back(attribute_in(each, "gcp.vertex.agent.event_id"));
  }
  std::ranges::sort(told);
  std::ranges::sort(ids);
  BOOST_TEST(ids.size() == 3U);
  BOOST_TEST(told == ids, boost::test_tools::per_element());
  std::map<std::string, std::string> counts;
  for (const auto& each : on.metrics())
    counts[each.at("name")]
      = each.at("histogram").at("dataPoints").at(0).at("count");
  BOOST_TEST(counts["troupe.append.duration"] == "3");
  // The session, the message of the run, and the events.
  BOOST_TEST(counts["troupe.commit.changes"] == "5");
}

BOOST_AUTO_TEST_CASE(each_lane_has_its_own_calls) {
  received on;
  const auto model = scripted({{"one", {calling("works"), {.text = "1"}}},
                               {"two", {calling("works"), {.text = "2"}}}});
  const auto shown = on.perform(parallel(
    "both", {asks("one", model, {works()}), asks("two", model, {works()})}));
  BOOST_TEST(shown.ends_with("| ok"));
  const std::vector<std::string> expected{
    "execute_tool works < invoke_agent one",
    "execute_tool works < invoke_agent two",
    "generate_content scripted < invoke_agent one",
    "generate_content scripted < invoke_agent one",
    "generate_content scripted < invoke_agent two",
    "generate_content scripted < invoke_agent two",
    "invoke_agent both < invoke_workflow both",
    "invoke_agent one < invoke_agent both",
    "invoke_agent two < invoke_agent both",
    "invoke_workflow both < -"};
  BOOST_TEST(on.relations() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_a_tool_is_below_its_call) {
  received on;
  const auto helper = asks("helper", scripted({{"helper", {{.text = "h"}}}}));
  const auto shown = on.perform(asks(
    "a",
    scripted(
      {{"a", {calling("helper", {{"request", "now"}}), {.text = "done"}}}}),
    {agent_tool(helper)}));
  BOOST_TEST(shown.ends_with("| ok"));
  const std::vector<std::string> expected{
    "execute_tool helper < invoke_agent a",
    "generate_content scripted < invoke_agent a",
    "generate_content scripted < invoke_agent a",
    "generate_content scripted < invoke_agent helper",
    "invoke_agent a < invoke_workflow a",
    "invoke_agent helper < execute_tool helper",
    "invoke_workflow a < -"};
  BOOST_TEST(on.relations() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_agent_that_takes_over_has_the_same_parent) {
  received on;
  const auto billing = asks("billing", scripted({{"*", {{.text = "b"}}}}));
  llm_options chat{
    .name = "chat",
    .model = scripted(
      {{"*", {calling("transfer_to_agent", {{"agent_name", "billing"}})}}})};
  const auto shown = on.perform(llm(std::move(chat), {billing}));
  BOOST_TEST(shown.ends_with("| ok"));
  const auto lines = on.relations();
  for (const char* each : {"invoke_agent billing < invoke_workflow chat",
                           "invoke_agent chat < invoke_workflow chat"})
    BOOST_TEST(std::ranges::count(lines, each) == 1, each);
}

BOOST_AUTO_TEST_CASE(a_failed_tool_has_the_status_of_an_error) {
  received on;
  on.perform(asks(
    "a", scripted({{"a", {calling("breaks"), {.text = "done"}}}}), {breaks()}));
  const auto failed = on.span("execute_tool breaks");
  BOOST_TEST(failed.at("status").at("code") == 2);
  BOOST_TEST(attribute_in(failed, "error.type") == "tool_failed");
  BOOST_TEST(failed.at("events").at(0).at("name") == "exception");
  BOOST_TEST(!on.span("invoke_agent a").contains("status"));
}

BOOST_AUTO_TEST_CASE(a_failed_model_fails_its_agent_and_the_run) {
  received on;
  scripted_reply reply;
  reply.failure = "overloaded";
  const auto shown = on.perform(asks("a", scripted({{"a", {reply}}})));
  BOOST_TEST(shown.ends_with("| model_failed"));
  for (const char* name :
       {"generate_content scripted", "invoke_agent a", "invoke_workflow a"}) {
    const auto failed = on.span(name);
    BOOST_TEST(failed.at("status").at("code") == 2, name);
    BOOST_TEST(attribute_in(failed, "error.type") == "model_failed", name);
  }
}

BOOST_AUTO_TEST_CASE(a_run_over_its_deadline_tells_the_deadline) {
  received on;
  const auto shown
    = on.perform(asks("a", std::make_shared<held_model>()),
                 {.model_timeout = std::chrono::milliseconds(1)});
  BOOST_TEST(shown.ends_with("| deadline_exceeded"));
  BOOST_TEST(attribute_in(on.span("invoke_agent a"), "error.type")
             == "deadline_exceeded");
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_is_told_when_the_program_ends) {
  received on;
  const auto model = std::make_shared<held_model>();
  runtime_options with;
  with.plugins = {on.made.watcher()};
  agent_fixture fixture(std::move(with));
  auto started = fixture.runtime.run(asks("a", model), fixture.key, {"go"});
  model->asked.await(1);
  started.cancel();
  BOOST_TEST(agent_fixture::follow(started).ends_with("| cancelled"));
  fixture.runtime.shut_down().value();
  BOOST_TEST(attribute_in(on.span("invoke_workflow a"), "error.type")
             == "cancelled");
  BOOST_TEST(attribute_in(on.span("invoke_agent a"), "error.type")
             == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_model_call_has_tokens_and_reason) {
  received on;
  on.perform(asks("a", scripted({{"a", {answering("hello")}}})));
  const auto call = on.span("generate_content scripted");
  BOOST_TEST(attribute_in(call, "gen_ai.usage.input_tokens") == "7");
  BOOST_TEST(attribute_in(call, "gen_ai.usage.output_tokens") == "3");
  BOOST_TEST(attribute_in(call, "gen_ai.response.model") == "gpt-x");
  BOOST_TEST(attribute_in(call, "gen_ai.response.finish_reasons")
               .at("values")
               .at(0)
               .at("stringValue")
             == "stop");
}

BOOST_AUTO_TEST_CASE(contents_are_sent_only_if_they_are_asked_for) {
  const auto root = [] {
    return asks("a", scripted({{"a", {{.text = "secret answer"}}}}), "secret");
  };
  received on;
  on.perform(root());
  BOOST_TEST(on.logs().size() == 1);
  for (const auto& each : on.receiver.requests())
    BOOST_TEST(each.body.find("secret") == std::string::npos);

  telemetry::options chosen;
  chosen.logs_have_contents = true;
  received with(std::move(chosen));
  with.perform(root());
  const auto record = with.logs().at(0);
  BOOST_TEST(record.at("eventName")
             == "gen_ai.client.inference.operation.details");
  BOOST_TEST(record.at("spanId")
             == with.span("generate_content scripted").at("spanId"));
  const auto said
    = parse_json(
        attribute_in(record, "gen_ai.output.messages").get<std::string>())
        .value();
  BOOST_TEST(said.at(0).at("role") == "assistant");
  BOOST_TEST(said.at(0).at("parts").at(0).at("content") == "secret answer");
  for (const auto& each : with.spans())
    BOOST_TEST(each.dump().find("secret") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(histograms_count_calls_and_tokens) {
  received on;
  on.perform(asks(
    "a", scripted({{"a", {calling("works"), answering("done")}}}), {works()}));
  std::map<std::string, json> points;
  for (const auto& each : on.metrics())
    points[each.at("name")] = each.at("histogram").at("dataPoints");
  BOOST_TEST(points.at("gen_ai.client.operation.duration").at(0).at("count")
             == "2");
  BOOST_TEST(points.at("gen_ai.invoke_agent.inference_calls").at(0).at("sum")
             == 2);
  BOOST_TEST(points.at("gen_ai.invoke_agent.tool_calls").at(0).at("sum") == 1);
  BOOST_TEST(points.at("gen_ai.client.token.usage").size() == 2);
  BOOST_TEST(points.at("gen_ai.execute_tool.duration").at(0).at("count")
             == "1");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_not_sampled_sends_no_spans) {
  telemetry::options chosen;
  chosen.sampled = 0;
  received on(std::move(chosen));
  on.perform(asks("a", echo(), "x"));
  BOOST_TEST(on.spans().empty());
  BOOST_TEST(!on.metrics().empty());
}

BOOST_AUTO_TEST_CASE(a_run_joins_the_trace_of_its_request) {
  received on;
  trace_context of_tool;
  const auto asking
    = tool_of("asking", [&of_tool](const json&, tool_context& context) -> json {
        of_tool = context.trace();
        return "fine";
      });
  trace_context of_model;
  const auto inner = scripted({{"a", {calling("asking"), {.text = "done"}}}});
  const auto model = std::make_shared<made_model>(
    [&of_model, inner](model_request request, model_reply reply) {
      of_model = request.trace;
      inner->generate(std::move(request), std::move(reply));
    });
  const auto shown = on.perform(asks("a", model, {asking}), traced("01"));
  BOOST_TEST(shown.ends_with("| ok"));
  BOOST_TEST(on.span("invoke_workflow a").at("parentSpanId") == cause_span);
  std::vector<std::string> ids_of_calls;
  for (const auto& each : on.spans()) {
    BOOST_TEST(each.at("traceId") == cause_trace);
    BOOST_TEST(each.at("traceState") == "vendor=x");
    if (each.at("name") == "generate_content made")
      ids_of_calls.push_back(each.at("spanId"));
  }
  // The last one that the model got.
  BOOST_REQUIRE(ids_of_calls.size() == 2);
  BOOST_TEST(of_model.parent == parent_text(ids_of_calls.back(), "01"));
  BOOST_TEST(of_model.state == "vendor=x");
  const std::string of_call = on.span("execute_tool asking").at("spanId");
  BOOST_TEST(of_tool.parent == parent_text(of_call, "01"));
}

BOOST_AUTO_TEST_CASE(a_custom_agent_asks_below_its_own_span) {
  received on;
  trace_context of_model;
  const auto model = std::make_shared<made_model>(
    [&of_model](const model_request& request, const model_reply& reply) {
      of_model = request.trace;
      reply(model_response(text("{}", "words")));
    });
  const auto root
    = custom("c", [model](invocation_context& context) -> agent_run {
        model_request request;
        const auto answer = co_await context.ask(model, std::move(request));
        co_await context.emit(text("{}", "done"));
      });
  BOOST_TEST(on.perform(root).ends_with("| ok"));
  const auto agent = on.span("invoke_agent c");
  BOOST_TEST(of_model.parent
             == "00-" + agent.at("traceId").get<std::string>() + "-"
                  + agent.at("spanId").get<std::string>() + "-01");
}

BOOST_AUTO_TEST_CASE(the_trace_of_a_request_decides_if_it_is_sampled) {
  for (const bool follows : {true, false}) {
    for (const std::string flags : {"00", "01"}) {
      telemetry::options chosen;
      chosen.follows_parent = follows;
      chosen.sampled = flags == "00" ? 1 : 0;
      received on(std::move(chosen));
      on.perform(asks("a", echo(), "x"), traced(flags));
      // Alone, the share decides; it says the opposite here.
      BOOST_TEST(on.spans().empty() == (follows == (flags == "00")));
    }
  }
}

BOOST_AUTO_TEST_CASE(without_spans_the_trace_of_the_request_is_passed_on) {
  trace_context of_model;
  const auto model = std::make_shared<made_model>(
    [&of_model](const model_request& request, const model_reply& reply) {
      of_model = request.trace;
      reply(model_response(text("{}", "words")));
    });
  agent_fixture on;
  BOOST_TEST(on.perform(asks("a", model)).ends_with("| ok"));
  BOOST_TEST(of_model.parent.empty());
  BOOST_TEST(on.say(asks("a", model), traced("00")).ends_with("| ok"));
  BOOST_TEST((of_model == caused("00")));
}

// The second process knows of the request only by the stored message.
BOOST_AUTO_TEST_CASE(a_recovered_run_stays_in_the_trace_of_its_request) {
  const auto place = make_memory_data();
  const auto on_place = [&place](std::vector<plugin> plugins) {
    runtime_options chosen;
    chosen.store = std::shared_ptr<store>(make_memory_store(place));
    chosen.plugins = std::move(plugins);
    return runtime::open(std::move(chosen)).value();
  };
  const session_key key{"press", "ann", "s"};
  std::string id;
  {
    auto ended = on_place({});
    ended.sessions().create(key).value();
    const auto model = std::make_shared<held_model>();
    auto started = ended.run(asks("a", model), key, traced("01"));
    id = started.invocation_id();
    model->asked.await(1);
    started.detach();
  }
  received on;
  auto next = on_place({on.made.watcher()});
  const auto root = asks("a", scripted({{"a", {{.text = "done"}}}}));
  const auto outcome = next.recover(root, key, id).wait().get();
  BOOST_TEST(code_of(outcome) == "ok");
  next.shut_down().value();
  BOOST_TEST(on.span("invoke_workflow a").at("parentSpanId") == cause_span);
  for (const auto& each : on.spans())
    BOOST_TEST(each.at("traceId") == cause_trace);
}

// The hooks before the run were called in the process before.
BOOST_AUTO_TEST_CASE(a_cancelled_run_that_was_recovered_is_told_soon) {
  const auto place = make_memory_data();
  const auto on_place = [&place](std::vector<plugin> plugins) {
    runtime_options chosen;
    chosen.store = std::shared_ptr<store>(make_memory_store(place));
    chosen.plugins = std::move(plugins);
    return runtime::open(std::move(chosen)).value();
  };
  const session_key key{"press", "ann", "s"};
  std::string id;
  {
    auto ended = on_place({});
    ended.sessions().create(key).value();
    const auto inner = scripted({{"a", {calling("works")}}});
    const auto held = std::make_shared<held_model>();
    const auto has_asked = std::make_shared<std::atomic<bool>>(false);
    const auto model = std::make_shared<made_model>(
      [inner, held, has_asked](model_request request, model_reply reply) {
        if (has_asked->exchange(true))
          held->generate(std::move(request), std::move(reply));
        else
          inner->generate(std::move(request), std::move(reply));
      });
    auto started = ended.run(asks("a", model, {works()}), key, user_text("go"));
    id = started.invocation_id();
    held->asked.await(1);
    started.detach();
  }
  const auto environment = std::make_shared<watched_environment>(1);
  telemetry::options chosen;
  chosen.environment = environment;
  received on(std::move(chosen));
  auto next = on_place({on.made.watcher()});
  const auto model = std::make_shared<held_model>();
  auto started = next.recover(asks("a", model, {works()}), key, id);
  model->asked.await(1);
  started.cancel();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  environment->advance(std::chrono::seconds(10));
  BOOST_TEST(on.made.flush(patience));
  BOOST_TEST(attribute_in(on.span("invoke_workflow a"), "error.type")
             == "cancelled");
  next.shut_down().value();
}

BOOST_AUTO_TEST_CASE(a_runtime_that_ends_leaves_the_runs_of_another_one) {
  received on;
  const auto fixture = [&on] {
    runtime_options with;
    with.plugins = {on.made.watcher()};
    return std::make_unique<agent_fixture>(std::move(with));
  };
  const auto first = fixture();
  const auto second = fixture();
  const auto model = std::make_shared<held_model>();
  auto started = second->runtime.run(asks("a", model), second->key, {"go"});
  model->asked.await(1);
  first->runtime.shut_down().value();
  BOOST_TEST(on.spans().empty());
  model->answer("done");
  BOOST_TEST(agent_fixture::follow(started).ends_with("| ok"));
  second->runtime.shut_down().value();
  BOOST_TEST(!on.span("invoke_workflow a").contains("status"));
}

BOOST_AUTO_TEST_CASE(a_run_with_a_malformed_trace_fails) {
  agent_fixture on;
  user_message said("go");
  said.trace.parent = "00-1-2-01";
  BOOST_TEST(on.say(asks("a", echo(), "x"), std::move(said))
               .ends_with("| invalid_argument"));
}

BOOST_AUTO_TEST_CASE(a_receiver_that_is_away_changes_no_run) {
  telemetry::options chosen;
  chosen.traces.url = refusing_url();
  tally warnings;
  chosen.on_warning = [&warnings](const std::string&) { warnings.add(); };
  auto made = telemetry::exporter::start(std::move(chosen)).value();
  runtime_options with;
  with.plugins = {made.watcher()};
  agent_fixture on(std::move(with));
  BOOST_TEST(on.perform(asks("a", echo(), "x")) == "a=x | ok");
  on.runtime.shut_down().value();
  BOOST_TEST(made.counts().dropped == 4);
  BOOST_TEST(made.counts().sent == 0);
  warnings.await(1);
}

BOOST_AUTO_TEST_CASE(limits_of_zero_are_refused) {
  telemetry::options chosen;
  chosen.queue_max = 0;
  BOOST_TEST(code_of(telemetry::exporter::start(chosen)) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()

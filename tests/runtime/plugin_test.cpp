// Plugins: the callbacks around every run of a runtime, their order, and the
// effect of their answers and failures.

#include "troupe/agents/agent_tool.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(plugins)

namespace {

/// The calls in order: `"before_agent(a) before_model(a) "`.
class calls_seen {
public:
  void add(const std::string& what) {
    const std::lock_guard guard(mutex_);
    all_ += what + " ";
  }

  std::string take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(all_, {});
  }

private:
  std::mutex mutex_;
  std::string all_;
};

/// A plugin that records every call and answers nothing.
plugin telling(const std::string& name,
               const std::shared_ptr<calls_seen>& seen) {
  const auto tell
    = [seen, name](const std::string& what) { seen->add(name + "." + what); };
  return {
    .name = name,
    .on_user_message
    = [tell](const session_key&,
             const content& message) -> std::optional<content> {
      tell("on_user_message(" + message.text() + ")");
      return std::nullopt;
    },
    .before_run = [tell](callback_context&) { tell("before_run"); },
    .after_run = [tell](callback_context&) { tell("after_run"); },
    .on_run_error
    = [tell](const readonly_context&, const error&) { tell("on_run_error"); },
    .on_event
    = [tell](const session_key&, const event& said) -> std::optional<event> {
      tell("on_event(" + said.text() + ")");
      return std::nullopt;
    },
    .before_agent =
      [tell](callback_context& context) {
        tell("before_agent(" + context.agent_name() + ")");
      },
    .after_agent =
      [tell](callback_context& context) {
        tell("after_agent(" + context.agent_name() + ")");
      },
    .on_agent_error =
      [tell](const readonly_context& context, const error&) {
        tell("on_agent_error(" + context.agent_name() + ")");
      },
    .before_model
    = [tell](callback_context&, model_request&) { tell("before_model"); },
    .after_model
    = [tell](callback_context&, model_response&) { tell("after_model"); },
    .on_model_error = [tell](callback_context&,
                             const model_request&,
                             const error&) { tell("on_model_error"); },
    .before_tool
    = [tell](const tool& which, json&, tool_context&) -> std::optional<json> {
      tell("before_tool(" + which.name() + ")");
      return std::nullopt;
    },
    .after_tool = [tell](const tool& which,
                         const json&,
                         tool_context&,
                         const json&) -> std::optional<json> {
      tell("after_tool(" + which.name() + ")");
      return std::nullopt;
    },
    .on_tool_error = [tell](const tool& which,
                            const json&,
                            tool_context&,
                            const error&) -> std::optional<json> {
      tell("on_tool_error(" + which.name() + ")");
      return std::nullopt;
    },
    .close = [tell] { tell("close"); }};
}

runtime_options with(std::vector<plugin> plugins) {
  runtime_options options;
  options.plugins = std::move(plugins);
  return options;
}

tool works() {
  return tool_of("works",
                 [](const json&, tool_context&) -> json { return "fine"; });
}

agent breaks() {
  return custom("bad", [](invocation_context&) -> agent_run {
    throw std::runtime_error("broken");
    co_return;
  });
}

} // namespace

// -- order ----

BOOST_AUTO_TEST_CASE(each_place_of_a_run_is_told_in_order) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(with({telling("p", seen)}));
  on.perform(asks(
    "a", scripted({{"a", {calling("works"), {.text = "done"}}}}), {works()}));
  on.runtime.shut_down().value();
  BOOST_TEST(seen->take()
             == "p.on_user_message(go) p.before_run p.before_agent(a) "
                "p.before_model p.after_model p.on_event() "
                "p.before_tool(works) p.after_tool(works) p.on_event() "
                "p.before_model p.after_model p.on_event(done) "
                "p.after_agent(a) p.after_run p.close ");
}

BOOST_AUTO_TEST_CASE(plugins_come_in_their_order_and_before_the_agents_own) {
  const auto seen = std::make_shared<calls_seen>();
  plugin first{.name = "first", .before_agent = [seen](callback_context&) {
                 seen->add("first");
               }};
  plugin second{.name = "second", .before_agent = [seen](callback_context&) {
                  seen->add("second");
                }};
  agent_fixture on(with({first, second}));
  const auto root = custom(
    {.name = "a",
     .run = [](invocation_context&) -> agent_run { co_return; },
     .before_agent = {[seen](callback_context&) { seen->add("own"); }}});
  on.perform(root);
  BOOST_TEST(seen->take() == "first second own ");
}

BOOST_AUTO_TEST_CASE(the_first_answer_stops_later_plugins_and_the_agents_own) {
  const auto seen = std::make_shared<calls_seen>();
  plugin answers{.name = "answers",
                 .before_model
                 = [](callback_context& context,
                      model_request&) -> std::optional<model_response> {
                   context.state().set("seen", true);
                   return model_response(text("cached"));
                 }};
  agent_fixture on(with({answers, telling("late", seen)}));
  const auto root
    = llm({.name = "a",
           .model = echo(),
           .before_model = {
             [seen](callback_context&, model_request&) { seen->add("own"); }}});
  BOOST_TEST(on.perform(root) == "a=cached | ok");
  BOOST_TEST(seen->take().find("before_model") == std::string::npos);
  // The plugin's change is in the event of the answer.
  BOOST_TEST(on.state_now() == json({{"seen", true}}));
  BOOST_TEST(on.events(on.key).size() == 2U);
}

BOOST_AUTO_TEST_CASE(tools_are_answered_for_and_their_failures_replaced) {
  plugin guard{
    .name = "guard",
    .before_tool
    = [](const tool& which, json&, tool_context&) -> std::optional<json> {
      if (which.name() == "works")
        return json{{"from", "plugin"}};
      return std::nullopt;
    },
    .on_tool_error = [](const tool&, const json&, tool_context&, const error&)
      -> std::optional<json> {
      return json{{"saved", true}};
    }};
  agent_fixture on(with({guard}));
  const auto broken = tool_of("broken", [](const json&, tool_context&) -> json {
    throw std::runtime_error("broken");
  });
  scripted_reply both;
  both.function_calls
    = {{"", "works", json::object()}, {"", "broken", json::object()}};
  on.perform(
    asks("a", scripted({{"a", {both, {.text = "done"}}}}), {works(), broken}));
  BOOST_TEST(responses(on, on.key)
             == json({{{"from", "plugin"}}, {{"saved", true}}}));
}

BOOST_AUTO_TEST_CASE(agents_that_are_tools_have_the_same_plugins) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(with({telling("p", seen)}));
  const auto inner = says("inner", "inside");
  on.perform(asks(
    "a",
    scripted({{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(inner)}));
  const auto all = seen->take();
  BOOST_TEST(all.find("p.before_agent(inner) p.on_event(inside) "
                      "p.after_agent(inner)")
               != std::string::npos,
             all);
}

// -- messages and events ----

BOOST_AUTO_TEST_CASE(a_message_is_replaced_before_it_is_stored) {
  plugin polite{
    .name = "polite",
    .on_user_message
    = [](const session_key&, const content& said) -> std::optional<content> {
      return user_text(said.text() + ", please");
    }};
  agent_fixture on(with({polite}));
  on.perform(asks("a", scripted({{"a", {{.text = "${input}"}}}})));
  BOOST_TEST(on.texts(on.key)
             == (std::vector<std::string>{"go, please", "go, please"}));
}

BOOST_AUTO_TEST_CASE(a_message_that_a_plugin_fails_on_is_not_stored) {
  plugin bad{.name = "bad",
             .on_user_message = [](const session_key&, const content&)
               -> std::optional<content> { throw std::runtime_error("no"); }};
  agent_fixture on(with({bad}));
  BOOST_TEST(on.perform(says("a", "x")) == "| callback_failed");
  BOOST_TEST(agent_fixture::last_reason().find("plugin 'bad'")
             != std::string::npos);
  BOOST_TEST(on.events(on.key).empty());
}

BOOST_AUTO_TEST_CASE(an_event_is_replaced_before_it_is_stored) {
  plugin stamp{.name = "stamp",
               .on_event = [](const session_key& where,
                              const event& said) -> std::optional<event> {
                 auto changed = said;
                 changed.author = "nobody";
                 changed.invocation_id = "other";
                 changed.content = text("{} in {}", said.text(), where.id);
                 changed.extra = json{{"customMetadata", {{"by", "stamp"}}}};
                 return changed;
               }};
  agent_fixture on(with({stamp}));
  BOOST_TEST(on.perform(adds("a", "n")) == "a=1 in s | ok");
  const auto stored = on.events(on.key).back();
  BOOST_TEST(stored->text() == "1 in s");
  BOOST_TEST(stored->invocation_id == on.events(on.key).front()->invocation_id);
  BOOST_TEST(stored->extra->at("customMetadata").at("by") == "stamp");
  BOOST_TEST(on.state_now() == json({{"n", 1}}));
}

BOOST_AUTO_TEST_CASE(an_event_that_a_plugin_fails_on_fails_its_agent) {
  plugin bad{.name = "bad",
             .on_event
             = [](const session_key&, const event&) -> std::optional<event> {
               throw std::runtime_error("no");
             }};
  agent_fixture on(with({bad}));
  BOOST_TEST(on.perform(adds("a", "n")) == "| callback_failed");
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(a_committed_event_is_told_before_its_caller_gets_it) {
  std::vector<std::string> told;
  std::atomic<std::size_t> count{0};
  std::atomic<bool> has_ids{true};
  plugin hears{.name = "hears",
               .after_event = [&](const session_key&, const event& said) {
                 has_ids = has_ids && !said.id.empty();
                 ++count;
                 told.push_back(said.text());
               }};
  agent_fixture on(with({hears}));
  const auto inner = says("inner", "inside");
  auto running = on.runtime.run(
    asks("a",
         scripted(
           {{"a", {calling("inner", {{"request", "x"}}), {.text = "done"}}}}),
         {agent_tool(inner)}),
    on.key,
    {"go"});
  std::size_t taken = 0;
  while (const auto next = running.next().get().value())
    // The next event may be committed already.
    BOOST_TEST(count >= ++taken);
  // Neither the message of the run nor the event of the inner agent is told.
  BOOST_TEST(told == (std::vector<std::string>{"", "", "done"}));
  BOOST_TEST(taken == told.size());
  BOOST_TEST(has_ids.load());
}

BOOST_AUTO_TEST_CASE(what_throws_after_an_event_is_a_warning) {
  std::vector<std::string> warnings;
  std::size_t told = 0;
  plugin bad{.name = "bad",
             .after_event = [](const session_key&, const event&) {
               throw std::runtime_error("no");
             }};
  plugin next{.name = "next",
              .after_event
              = [&told](const session_key&, const event&) { ++told; }};
  auto options = with({bad, next});
  options.on_warning
    = [&warnings](const std::string& warning) { warnings.push_back(warning); };
  agent_fixture on(std::move(options));
  BOOST_TEST(on.perform(says("a", "x")) == "a=x | ok");
  BOOST_REQUIRE(warnings.size() == 1);
  BOOST_TEST(warnings.front().find("the after_event callback of plugin 'bad'")
               != std::string::npos,
             warnings.front());
  BOOST_TEST(told == 1U);
}

BOOST_AUTO_TEST_CASE(events_that_wait_for_temp_are_shown_once) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(
    with({{.name = "p",
           .on_event = [seen](const session_key&,
                              const event& said) -> std::optional<event> {
             seen->add(said.author);
             return std::nullopt;
           }}}));
  std::vector<agent> lanes;
  for (int count = 0; count < 8; ++count)
    lanes.push_back(adds("a" + std::to_string(count), "temp:n"));
  on.perform(parallel("p", std::move(lanes)));
  const auto all = seen->take();
  BOOST_TEST(std::ranges::count(all, ' ') == 8, all);
}

// -- the run ----

BOOST_AUTO_TEST_CASE(content_before_the_run_takes_the_place_of_the_agents) {
  const auto seen = std::make_shared<calls_seen>();
  plugin closed{.name = "closed",
                .before_run
                = [](callback_context& context) -> std::optional<content> {
                  context.state().set("refused", true);
                  return text("we are closed");
                },
                .after_run = [seen](callback_context&) { seen->add("after"); }};
  agent_fixture on(with({closed}));
  BOOST_TEST(on.perform(says("a", "x")) == "model=we are closed | ok");
  BOOST_TEST(on.state_now() == json({{"refused", true}}));
  BOOST_TEST(seen->take() == "after ");
}

BOOST_AUTO_TEST_CASE(what_is_written_around_a_run_gets_an_event_of_its_own) {
  plugin counts{
    .name = "counts",
    .before_run
    = [](callback_context& context) { context.state().add("begun", 1); },
    .after_run
    = [](callback_context& context) { context.state().add("user:runs", 1); }};
  agent_fixture on(with({counts}));
  BOOST_TEST(on.perform(says("a", "x")) == "model= a=x model= | ok");
  BOOST_TEST(on.state_now() == json({{"begun", 1}, {"user:runs", 1}}));
}

BOOST_AUTO_TEST_CASE(a_coroutine_before_the_run_is_awaited) {
  plugin slow{.name = "slow",
              .before_run
              = [](callback_context& context) -> task<std::optional<content>> {
                context.state().set("slow", 1);
                co_return std::nullopt;
              }};
  agent_fixture on(with({slow}));
  BOOST_TEST(on.perform(says("a", "x")) == "model= a=x | ok");
}

BOOST_AUTO_TEST_CASE(every_plugin_hears_the_end_of_a_run) {
  const auto seen = std::make_shared<calls_seen>();
  plugin bad{.name = "bad", .after_run = [seen](callback_context&) {
               seen->add("bad");
               throw std::runtime_error("no");
             }};
  plugin good{.name = "good",
              .after_run = [seen](callback_context&) { seen->add("good"); }};
  agent_fixture on(with({bad, good}));
  BOOST_TEST(on.perform(says("a", "x")) == "a=x | callback_failed");
  BOOST_TEST(
    agent_fixture::last_reason().find("after_run callback of plugin 'bad'")
    != std::string::npos);
  BOOST_TEST(seen->take() == "bad good ");
}

// -- failures ----

BOOST_AUTO_TEST_CASE(failures_are_told_from_the_agent_up_to_the_run) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(with({telling("p", seen)}));
  BOOST_TEST(on.perform(sequential("s", {breaks()})) == "| callback_failed");
  const auto all = seen->take();
  BOOST_TEST(all.ends_with("p.on_agent_error(bad) p.on_agent_error(s) "
                           "p.on_run_error "),
             all);
  BOOST_TEST(all.find("after_run") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_throws_while_it_is_told_is_added_to_the_reason) {
  const auto seen = std::make_shared<calls_seen>();
  plugin bad{.name = "worse",
             .on_run_error = [](const readonly_context&, const error&) {
               throw std::runtime_error("worse");
             }};
  agent_fixture on(with({bad, telling("p", seen)}));
  BOOST_TEST(on.perform(breaks()) == "| callback_failed");
  const auto reason = agent_fixture::last_reason();
  BOOST_TEST(reason.find("broken") != std::string::npos, reason);
  BOOST_TEST(reason.find("plugin 'worse'") != std::string::npos, reason);
  BOOST_TEST(seen->take().ends_with("p.on_run_error "));
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_has_not_failed) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(with({telling("p", seen)}));
  const auto model = std::make_shared<held_model>();
  auto started = on.runtime.run(asks("a", model), on.key, "go");
  model->asked.await(1);
  started.cancel();
  BOOST_TEST(agent_fixture::follow(started) == "| cancelled");
  const auto all = seen->take();
  BOOST_TEST(all.find("error") == std::string::npos, all);
  BOOST_TEST(all.find("after_run") == std::string::npos, all);
}

BOOST_AUTO_TEST_CASE(
  a_model_that_fails_is_told_before_the_agents_own_callback) {
  const auto seen = std::make_shared<calls_seen>();
  agent_fixture on(with({telling("p", seen)}));
  const auto root = llm(
    {.name = "a",
     .model = scripted({{"a", {{.failure = "down"}}}}),
     .on_model_error = {[seen](callback_context&,
                               const model_request&,
                               const error&) -> std::optional<model_response> {
       seen->add("own");
       return model_response(text("saved"));
     }}});
  BOOST_TEST(on.perform(root) == "a=saved | ok");
  BOOST_TEST(seen->take().find("p.on_model_error own ") != std::string::npos);
}

// -- the runtime ----

BOOST_AUTO_TEST_CASE(names_of_plugins_are_unique_and_not_empty) {
  BOOST_TEST(code_of(runtime::open(with({{.name = "p"}, {.name = "p"}})))
             == "invalid_argument");
  BOOST_TEST(code_of(runtime::open(with({plugin()}))) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(plugins_are_closed_once_and_their_failure_is_told) {
  const auto seen = std::make_shared<calls_seen>();
  plugin bad{.name = "bad", .close = [] { throw std::runtime_error("no"); }};
  auto on = runtime::open(with({bad, telling("p", seen)})).value();
  const auto ended = on.shut_down();
  BOOST_TEST(code_of(ended) == "callback_failed");
  BOOST_TEST(code_of(on.shut_down()) == "callback_failed");
  BOOST_TEST(seen->take() == "p.close ");
}

BOOST_AUTO_TEST_SUITE_END()

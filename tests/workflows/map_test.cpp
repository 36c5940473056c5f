// Nodes that run once for each item of a list.

#include "troupe/agents/workflow_progress.hpp"

#include "workflow_nodes.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(workflow_maps)

namespace {

workflow_node gives(std::string name, json value) {
  return function(std::move(name),
                  [value = std::move(value)](node_context&) { return value; });
}

/// A workflow that gives `value` to the map `each`.
agent mapping(json value, workflow_node each) {
  return workflow({.name = "w",
                   .nodes = {gives("list", std::move(value)), std::move(each)},
                   .edges = {{"START", "list"}, {"list", "each"}},
                   .output_key = "out"});
}

workflow_node each_of(map_over all) {
  return {.name = "each", .work = std::move(all)};
}

/// The items for which the work was called, in order.
class called_items {
public:
  void add(const json& item) {
    const std::lock_guard guard(mutex_);
    items_.push_back(item);
  }

  json taken() const {
    const std::lock_guard guard(mutex_);
    return items_;
  }

private:
  mutable std::mutex mutex_;
  json items_ = json::array();
};

using calls = std::shared_ptr<called_items>;

/// A function that gives ten times its item.
node_function times_ten(const calls& called) {
  return [called](node_context& context) -> json {
    called->add(context.input());
    context.state().add("sum", context.input());
    return context.input().get<int>() * 10;
  };
}

calls no_calls() {
  return std::make_shared<called_items>();
}

json numbers(int count) {
  auto all = json::array();
  for (int each = 0; each < count; ++each)
    all.push_back(each);
  return all;
}

workflow_view
shown(runtime_fixture& on, const session_key& key, const agent& root) {
  workflow_progress seen(root);
  for (const auto& each : on.events(key))
    BOOST_TEST(seen.add(each).has_value());
  return seen.workflows().front();
}

} // namespace

// -- items and outputs ----

BOOST_AUTO_TEST_CASE(the_outputs_have_the_order_of_the_items) {
  agent_fixture on;
  const auto called = no_calls();
  const auto root
    = mapping({3, 1, 2}, each_of({.work = times_ten(called), .lanes_max = 1}));
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(ends(on, on.key)
             == "w@1/list@1=[3,1,2] w@1/each@1/each@1=30 "
                "w@1/each@1/each@2=10 w@1/each@1/each@3=20 "
                "w@1/each@1=[30,10,20] w@1=[30,10,20]. ");
  BOOST_TEST(on.state_now().at("sum") == 6);
  BOOST_TEST(on.state_now().at("out") == json({30, 10, 20}));
}

BOOST_AUTO_TEST_CASE(an_item_ends_with_one_event_of_its_own) {
  agent_fixture on;
  const auto root = mapping({1, 2}, each_of({.work = times_ten(no_calls())}));
  on.perform(root);
  const auto all = on.events(on.key);
  const auto found = std::ranges::find_if(all, [](const event_ptr& each) {
    return path_in(*each) == "w@1/each@1/each@2";
  });
  BOOST_TEST_REQUIRE((found != all.end()));
  const auto& said = **found;
  BOOST_TEST(said.id == said.invocation_id + "/w@1/each@1/each@2");
  BOOST_TEST(said.branch == "each-1@2");
  BOOST_TEST(output_of(said) == 20);
  BOOST_TEST(!said.actions.state_delta.empty());
}

BOOST_AUTO_TEST_CASE(a_single_value_is_a_list_of_one) {
  for (const auto& value :
       {json("x"), json(7), json(json::object({{"a", 1}})), json(false)}) {
    agent_fixture on;
    const auto called = no_calls();
    const auto root = mapping(
      value, each_of({.work = node_function([called](node_context& context) {
                        called->add(context.input());
                        return json("done");
                      })}));
    on.perform(root);
    BOOST_TEST(called->taken() == json::array({value}));
    BOOST_TEST(on.state_now().at("out") == json::array({"done"}));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_list_and_null_give_an_empty_list) {
  for (const auto& value : {json::array(), json()}) {
    agent_fixture on;
    const auto called = no_calls();
    const auto root = mapping(value, each_of({.work = times_ten(called)}));
    BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
    BOOST_TEST(called->taken().empty());
    BOOST_TEST(on.state_now().at("out") == json::array());
  }
}

BOOST_AUTO_TEST_CASE(lanes_max_limits_the_items_that_run) {
  agent_fixture on;
  const auto running = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<std::atomic<int>>(0);
  const node_function work
    = [=](node_context& context) -> task<std::optional<node_output>> {
    *most = std::max(most->load(), ++*running);
    co_await context.sleep(1us);
    --*running;
    co_return node_output(context.input());
  };
  const auto root
    = mapping(numbers(300), each_of({.work = work, .lanes_max = 4}));
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(most->load() <= 4);
  BOOST_TEST(most->load() > 1);
  BOOST_TEST(on.state_now().at("out") == numbers(300));
}

BOOST_AUTO_TEST_CASE(an_agent_runs_for_each_item_and_sees_no_other) {
  agent_fixture on;
  const auto seen = no_calls();
  const auto model = std::make_shared<made_model>(
    [seen](const model_request& request, const model_reply& reply) {
      std::string words;
      for (const auto& each : request.contents)
        words += each->text() + "|";
      seen->add(words);
      reply(model_response(text("said {}", request.contents.back()->text())));
    });
  const auto root
    = mapping({"a", "b"}, each_of({.work = asks("writer", model)}));
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json({"said a", "said b"}));
  auto words = seen->taken().get<std::vector<std::string>>();
  std::ranges::sort(words);
  BOOST_TEST(json(words) == json({"go|a|", "go|b|"}));
}

BOOST_AUTO_TEST_CASE(a_tool_runs_for_each_item) {
  agent_fixture on;
  tool_options options;
  options.name = "squares";
  options.parameters = json::object(
    {{"type", "object"},
     {"properties", json::object({{"n", json::object({{"type", "integer"}})}})},
     {"required", json::array({"n"})}});
  options.run = [](const json& args, tool_context&) -> json {
    const auto n = args.at("n").get<int>();
    return n * n;
  };
  const auto root = mapping({2, json::object({{"n", 3}})},
                            each_of({.work = tool(std::move(options))}));
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json({4, 9}));
}

BOOST_AUTO_TEST_CASE(a_workflow_runs_for_each_item) {
  agent_fixture on;
  const auto inner = workflow(
    {.name = "inner", .nodes = {passes("a")}, .edges = {{"START", "a"}}});
  const auto root = mapping({1, 2}, each_of({.work = inner, .lanes_max = 1}));
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  const auto line = ends(on, on.key);
  BOOST_TEST(line.find("w@1/each@1/each@2/inner@1/a@1=\"a(2)\"")
             != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json({"a(1)", "a(2)"}));
}

BOOST_AUTO_TEST_CASE(an_item_cannot_choose_an_edge) {
  agent_fixture on;
  const node_function work
    = [](node_context&) { return node_output(1, {"on"}); };
  const auto root = mapping({1}, each_of({.work = work}));
  BOOST_TEST(on.perform(root).find("| invalid_argument") != std::string::npos);
  BOOST_TEST(on.last_reason().find("item 1 of node 'each'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_item_that_escalates_ends_the_loop_around) {
  agent_fixture on;
  const auto root = loop({.name = "l", .max_iterations = 3},
                         {mapping({1, 2}, each_of({.work = escalates("up")}))});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(ends(on, on.key).find("w@2") == std::string::npos);
}

// -- failures ----

BOOST_AUTO_TEST_CASE(the_first_item_that_fails_cancels_the_others) {
  agent_fixture on;
  const auto ended = std::make_shared<tally>();
  const auto begun = std::make_shared<tally>();
  const node_function work
    = [=](node_context& context) -> task<std::optional<node_output>> {
    if (context.input() == 2) {
      while (begun->count() < 2)
        co_await context.sleep(1ms);
      throw error(errc::tool_failed, "broken");
    }
    begun->add();
    try {
      co_await context.sleep(24h);
    } catch (const error&) {
      ended->add();
      throw;
    }
    co_return std::nullopt;
  };
  const auto root = mapping({1, 2, 3}, each_of({.work = work}));
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason()
             == "node 'each' of workflow 'w' failed: item 2: broken");
  BOOST_TEST(ended->count() == 2U);
  BOOST_TEST(failed(on, on.key) == "each@1#1 tool_failed ");
}

// As many items as lanes run beyond the one that fails, at most.
BOOST_AUTO_TEST_CASE(no_item_starts_after_a_failure) {
  agent_fixture on;
  const auto most = std::make_shared<std::atomic<int>>(0);
  const node_function work = [most](node_context& context) -> json {
    const auto item = context.input().get<int>();
    *most = std::max(most->load(), item);
    if (item == 1'000)
      throw error(errc::tool_failed, "broken");
    return item;
  };
  const auto root
    = mapping(numbers(3'000), each_of({.work = work, .lanes_max = 8}));
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason().find("item 1001: broken") != std::string::npos);
  BOOST_TEST(most->load() < 2'000);
}

// The items behind the one that fails keep their lanes, so that no more than
// seven of them can start before the failure is known.
BOOST_AUTO_TEST_CASE(ten_thousand_items_stop_at_a_failure_and_go_on) {
  agent_fixture on;
  constexpr int count = 10'000;
  constexpr int bad = 4'999;
  constexpr int lanes = 8;
  const auto called = no_calls();
  const node_function work
    = [called](node_context& context) -> task<std::optional<node_output>> {
    const auto item = context.input().get<int>();
    const bool is_first = context.attempt() == 1;
    called->add(json::array({item, context.attempt()}));
    // The list in the state is not that of the map.
    if (item == 0)
      context.state().set("items", json::array());
    if (is_first && item == bad)
      throw error(errc::tool_failed, "broken");
    if (is_first && item > bad)
      co_await context.sleep(24h);
    co_return node_output(2 * item);
  };
  auto node = each_of({.work = work, .lanes_max = lanes});
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root = workflow({.name = "w",
                              .nodes = {function("list",
                                                 [](node_context& context) {
                                                   context.state().set(
                                                     "items", numbers(count));
                                                   return numbers(count);
                                                 }),
                                        node},
                              .edges = {{"START", "list"}, {"list", "each"}},
                              .output_key = "out"});
  BOOST_TEST(on.perform(root).ends_with("| ok"));
  BOOST_TEST(failed(on, on.key) == "each@1#1 tool_failed ");
  int last = 0; // Of the first attempt.
  std::vector<int> times(count);
  const auto all = called->taken();
  for (const auto& each : all) {
    const auto item = each[0].get<int>();
    ++times[static_cast<std::size_t>(item)];
    if (each[1] == 1)
      last = std::max(last, item);
  }
  BOOST_TEST(last < bad + lanes);
  BOOST_TEST(std::ranges::count(times, 0) == 0);
  // Only items that had a lane when the failure came run a second time.
  BOOST_TEST(times[bad] == 2);
  BOOST_TEST(all.size() <= static_cast<std::size_t>(count + lanes));
  auto doubled = json::array();
  for (int each = 0; each < count; ++each)
    doubled.push_back(2 * each);
  const auto state = on.state_now();
  BOOST_TEST((state.at("out") == doubled));
  BOOST_TEST(state.at("items") == json::array());
}

BOOST_AUTO_TEST_CASE(items_that_have_ended_do_not_run_in_the_next_attempt) {
  agent_fixture on;
  const auto called = no_calls();
  auto node
    = each_of({.work = node_function([called](node_context& context) -> json {
                 called->add(json::array({context.input(), context.attempt()}));
                 context.state().add("n", 1);
                 if (context.input() == 2 && context.attempt() == 1)
                   throw error(errc::tool_failed, "not yet");
                 return context.input();
               }),
               .lanes_max = 1});
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root = mapping({1, 2, 3}, node);
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(called->taken()
             == parse_json("[[1,1],[2,1],[2,2],[3,2]]").value());
  BOOST_TEST(on.state_now().at("n") == 3);
  BOOST_TEST(on.state_now().at("out") == json({1, 2, 3}));
  BOOST_TEST(failed(on, on.key) == "each@1#1 tool_failed ");
}

BOOST_AUTO_TEST_CASE(a_time_limit_is_that_of_all_items) {
  agent_fixture on;
  auto node
    = each_of({.work = node_function(
                 [](node_context& context) -> task<std::optional<node_output>> {
                   if (context.input() == 2)
                     co_await context.sleep(24h);
                   co_return std::nullopt;
                 })});
  node.timeout = 20ms;
  BOOST_TEST(on.perform(mapping({1, 2}, node)).find("| deadline_exceeded")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_ends_its_items) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  const auto ended = std::make_shared<tally>();
  const node_function work
    = [=](node_context& context) -> task<std::optional<node_output>> {
    begun->add();
    try {
      co_await context.sleep(24h);
    } catch (const error&) {
      ended->add();
      throw;
    }
    co_return std::nullopt;
  };
  auto started = on.runtime.run(
    mapping(numbers(100), each_of({.work = work, .lanes_max = 4})),
    on.key,
    {"go"});
  begun->await(4);
  started.cancel();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  BOOST_TEST(begun->count() == 4U);
  BOOST_TEST(ended->count() == 4U);
}

// -- questions ----

namespace {

/// Items above 1 ask the user.
node_function asks_above_one(const calls& called) {
  return [called](node_context& context) -> json {
    called->add(context.input());
    if (context.input().get<int>() > 1)
      return context.ask("item " + to_text(context.input()) + "?");
    return "none";
  };
}

} // namespace

BOOST_AUTO_TEST_CASE(items_ask_and_the_others_go_on) {
  pause_fixture on;
  const auto called = no_calls();
  const auto root = mapping(
    {1, 2, 3}, each_of({.work = asks_above_one(called), .lanes_max = 1}));
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 2U);
  BOOST_TEST(ends(on, on.key)
             == "w@1/list@1=[1,2,3] w@1/each@1/each@1=\"none\" ");
  BOOST_TEST((shown(on, on.key, root).state == node_state::paused));
  on.answer(root, {{"result", "third"}}, 1);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  BOOST_TEST((shown(on, on.key, root).state == node_state::paused));
  BOOST_TEST(on.answer(root, {{"result", "second"}}).find("| ok")
             != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json({"none", "second", "third"}));
  // An item without a question runs once, one with a question twice.
  BOOST_TEST(called->taken() == json({1, 2, 3, 3, 2}));
}

BOOST_AUTO_TEST_CASE(an_agent_of_an_item_waits_for_its_answer) {
  pause_fixture on;
  const auto root
    = mapping({"x"}, each_of({.work = one_call("asker", order())}));
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  BOOST_TEST((shown(on, on.key, root).state == node_state::paused));
  BOOST_TEST(on.answer(root, {{"ticket", 7}}).find("| ok")
             != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json::array({"done"}));
  BOOST_TEST(on.state_now().at("ordered") == 1);
}

// -- progress ----

BOOST_AUTO_TEST_CASE(progress_counts_the_items) {
  agent_fixture on;
  const auto root = mapping(
    {1, 2, 3}, each_of({.work = times_ten(no_calls()), .lanes_max = 1}));
  on.perform(root);
  workflow_progress seen(root);
  std::string counts;
  for (const auto& each : on.events(on.key)) {
    BOOST_TEST(seen.add(each).has_value());
    if (const auto all = seen.workflows(); !all.empty())
      for (const auto& visit : all.front().visits)
        if (visit.node == "each")
          counts += std::to_string(visit.items_ended) + "/"
                    + std::to_string(visit.items) + " ";
  }
  BOOST_TEST(counts == "0/0 1/3 2/3 3/3 3/3 3/3 ");
  const auto last = shown(on, on.key, root);
  BOOST_TEST(last.nodes.back().kind == "map");
  BOOST_TEST((last.nodes.back().state == node_state::done));
  BOOST_TEST(to_json(last).at("visits").at(1).at("itemsEnded") == 3);
}

// -- failed inputs of joins ----

namespace {

/// Nodes at the same time before a join that skips failed ones.
agent quorum(std::vector<workflow_node> nodes, join rule) {
  rule.on_failed = failed_inputs::skip;
  std::vector<workflow_edge> edges;
  for (const auto& each : nodes) {
    edges.push_back({"START", each.name});
    edges.push_back({each.name, "j"});
  }
  nodes.push_back({.name = "j", .work = rule});
  return workflow({.name = "w",
                   .nodes = std::move(nodes),
                   .edges = std::move(edges),
                   .output_key = "out"});
}

workflow_node breaks(std::string name, std::uint64_t attempts_max = 1) {
  auto made = function(std::move(name), [](node_context& context) -> json {
    context.state().add("tries", 1);
    throw error(errc::tool_failed, "broken");
  });
  made.retry = {.attempts_max = attempts_max, .first_delay = 0ms};
  return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_workflow_goes_on_without_a_failed_node) {
  agent_fixture on;
  const auto root = quorum({breaks("a", 2), gives("b", 1), gives("c", 2)}, {});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json::object({{"b", 1}, {"c", 2}}));
  BOOST_TEST(!on.state_now().contains("tries"));
  BOOST_TEST(failed(on, on.key) == "a@1#1 tool_failed a@1#2 tool_failed ");
  const auto seen = shown(on, on.key, root);
  BOOST_TEST((seen.state == node_state::done));
  BOOST_TEST((seen.nodes.front().state == node_state::failed));
  BOOST_TEST(seen.visits.front().is_skipped);
  BOOST_TEST(json(seen.visits.back().missing) == json::array({"a"}));
  // The first failure is tried again, and ends nothing.
  auto skipped = json::array();
  for (const auto& each : on.events(on.key))
    if (const auto told = record_in(*each);
        told && told->is == workflow_record::kind::failure)
      skipped.push_back(told->is_skipped);
  BOOST_TEST(skipped == json({false, true}));
}

BOOST_AUTO_TEST_CASE(a_workflow_fails_if_too_many_nodes_have) {
  agent_fixture on;
  const auto root
    = quorum({breaks("a"), gives("b", 1), breaks("c")}, {.count = 2});
  BOOST_TEST(on.perform(root).find("| stuck_join") != std::string::npos);
  BOOST_TEST(on.last_reason()
             == "workflow 'w': join 'j' needs 2 of its 3 inputs and has 1: "
                "node 'a' failed: broken; node 'c' failed: broken");
  BOOST_TEST(shown(on, on.key, root).failure->message() == on.last_reason());
}

BOOST_AUTO_TEST_CASE(a_node_with_another_edge_ends_the_workflow) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {breaks("a"),
               gives("b", 1),
               passes("c"),
               {.name = "j", .work = join{.on_failed = failed_inputs::skip}}},
     .edges
     = {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"a", "c"}, {"b", "j"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(on.last_reason() == "node 'a' of workflow 'w' failed: broken");
}

BOOST_AUTO_TEST_CASE(a_failed_map_is_skipped_like_another_node) {
  agent_fixture on;
  auto each = each_of({.work = node_function([](node_context&) -> json {
                         throw error(errc::tool_failed, "broken");
                       })});
  const auto root = quorum({each, gives("b", 1)}, {});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(on.state_now().at("out") == json::object({{"b", 1}}));
}

BOOST_AUTO_TEST_SUITE_END()

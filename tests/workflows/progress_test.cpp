// The progress of workflows, computed from events: compared with runs that go
// on, and for each kind of event.

#include "troupe/agents/drawing.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/workflow_progress.hpp"

#include "../runtime/pause_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(workflow_progresses)

namespace {

workflow_node does(std::string name, node_function work) {
  return {.name = std::move(name), .work = std::move(work)};
}

workflow_node gives(std::string name, std::vector<route> routes = {}) {
  return does(std::move(name),
              [routes](node_context&) { return node_output(1, routes); });
}

std::vector<workflow_view> fold(workflow_progress seen,
                                const event_slice& events) {
  for (const auto& each : events)
    static_cast<void>(seen.add(each));
  return seen.workflows();
}

std::vector<workflow_view>
seen_in(runtime_fixture& on, const agent& root, const session_key& key) {
  return fold(workflow_progress(root), on.events(key));
}

/// `path state: node=state …; visit state#attempt …` for each workflow.
std::string line_of(const std::vector<workflow_view>& all) {
  std::string line;
  for (const auto& each : all) {
    line += each.path + " " + std::string(to_string(each.state)) + ":";
    for (const auto& node : each.nodes) {
      line += " " + node.name + "=" + std::string(to_string(node.state));
      if (!node.visit)
        continue;
      const auto& visit = each.visits[*node.visit];
      if (visit.number > 1)
        line += "@" + std::to_string(visit.number);
      if (visit.attempt > 1)
        line += "#" + std::to_string(visit.attempt);
    }
    line += "\n";
  }
  return line;
}

/// The progress after each event, without repetitions.
std::vector<std::string> lines_of(const agent& root,
                                  const event_slice& events) {
  std::vector<std::string> lines;
  workflow_progress seen(root);
  for (const auto& each : events) {
    BOOST_TEST(seen.add(each).has_value());
    auto line = line_of(seen.workflows());
    if (!line.empty() && (lines.empty() || lines.back() != line))
      lines.push_back(std::move(line));
  }
  return lines;
}

// -- runs that go on ----

/// The visits that run, as their functions tell, and how they end.
class stage {
public:
  struct ending {
    bool fails = false;
    std::vector<route> routes = {};
  };

  void enter(const std::string& name) {
    const std::lock_guard guard(mutex_);
    running_.insert(name);
  }

  void leave(const std::string& name) {
    const std::lock_guard guard(mutex_);
    running_.erase(name);
  }

  std::set<std::string> running() const {
    const std::lock_guard guard(mutex_);
    return running_;
  }

  void release(const std::string& name, ending how) {
    const std::lock_guard guard(mutex_);
    endings_[name] = std::move(how);
  }

  std::optional<ending> ending_of(const std::string& name) const {
    const std::lock_guard guard(mutex_);
    const auto found = endings_.find(name);
    return found == endings_.end() ? std::nullopt
                                   : std::optional(found->second);
  }

private:
  mutable std::mutex mutex_;
  std::set<std::string> running_;
  std::map<std::string, ending> endings_;
};

/// A name on the stage, while a visit runs: `path#attempt`.
struct appearance {
  appearance(std::shared_ptr<stage> where, std::string name_)
    : on(std::move(where)),
      name(std::move(name_)) {
    on->enter(name);
  }

  ~appearance() { on->leave(name); }

  appearance(const appearance&) = delete;
  appearance& operator=(const appearance&) = delete;

  const std::shared_ptr<stage> on;
  const std::string name;
};

workflow_node acts(const std::string& name, const std::shared_ptr<stage>& on) {
  auto made = does(
    name, [on](node_context& context) -> task<std::optional<node_output>> {
      const auto key = context.key();
      const appearance shown(on,
                             key.substr(key.find('/') + 1) + "#"
                               + std::to_string(context.attempt()));
      std::optional<stage::ending> how;
      while (!(how = on->ending_of(shown.name)))
        co_await context.sleep(100us);
      if (how->fails)
        throw error(errc::tool_failed, "not yet");
      co_return node_output(1, how->routes);
    });
  made.retry = {.attempts_max = 3, .first_delay = 0ms};
  return made;
}

std::set<std::string> running_in(const std::vector<workflow_view>& all) {
  std::set<std::string> names;
  for (const auto& each : all)
    for (const auto& visit : each.visits) {
      const auto node
        = std::ranges::find(each.nodes, visit.node, &node_progress::name);
      if (visit.state == node_state::running && node->kind == "function")
        names.insert(each.path + "/" + visit.node + "@"
                     + std::to_string(visit.number) + "#"
                     + std::to_string(visit.attempt));
    }
  return names;
}

template <class Condition>
void await_that(const char* what, Condition holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!holds()) {
    BOOST_TEST_REQUIRE((std::chrono::steady_clock::now() < end), what);
    std::this_thread::yield();
  }
}

struct random_workflow {
  explicit random_workflow(unsigned seed, const std::shared_ptr<stage>& on)
    : random(seed) {
    const auto count = 3 + below(5);
    std::vector<std::string> names;
    for (std::size_t index = 0; index < count; ++index)
      names.push_back(std::string(1, static_cast<char>('a' + index)));
    options.name = "w";
    if (below(2) == 0)
      options.lanes_max = 1 + below(3);
    options.edges.push_back({"START", "a"});
    options.nodes.push_back(acts("a", on));
    for (std::size_t index = 1; index < count; ++index) {
      const auto before = 1 + below(std::min<std::size_t>(index, 3));
      std::set<std::size_t> froms;
      while (froms.size() < before)
        froms.insert(below(index));
      for (const auto from : froms) {
        workflow_edge edge{names[from], names[index]};
        if (below(3) == 0)
          edge.routes = {"on"};
        options.edges.push_back(std::move(edge));
      }
      if (froms.size() > 1 && below(2) == 0)
        options.nodes.push_back(
          {.name = names[index],
           .work = join{.on_missing = static_cast<missing_inputs>(below(3))}});
      else
        options.nodes.push_back(acts(names[index], on));
      options.nodes.back().visits_max = 6;
    }
    options.edges.push_back({names[1 + below(count - 1)], "a", {"again"}});
  }

  std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  }

  std::mt19937 random;
  workflow_options options;
};

} // namespace

// The functions of the nodes tell which visits run. After each event, those are
// the visits that the events tell to run.
BOOST_AUTO_TEST_CASE(a_run_and_its_events_tell_the_same) {
  for (unsigned seed = 0; seed < 200; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      agent_fixture on;
      const auto where = std::make_shared<stage>();
      random_workflow made(seed, where);
      const auto root = workflow(made.options);
      auto started = on.runtime.run(root, on.key, {"go"});
      bool has_failed = false;
      std::vector<workflow_view> views;
      for (;;) {
        await_that("the visits that run differ", [&] {
          views = seen_in(on, root, on.key);
          return !views.empty() && running_in(views) == where->running();
        });
        if (views.front().state != node_state::running)
          break;
        const auto names = running_in(views);
        if (names.empty())
          continue; // A join ends by itself.
        const auto name = *std::next(
          names.begin(), static_cast<std::ptrdiff_t>(made.below(names.size())));
        stage::ending how;
        how.fails = made.below(5) == 0;
        has_failed = has_failed || how.fails;
        if (made.below(2) == 0)
          how.routes.emplace_back("on");
        if (made.below(6) == 0)
          how.routes.emplace_back("again");
        where->release(name, std::move(how));
        await_that("the visit does not end", [&] {
          return !running_in(seen_in(on, root, on.key)).contains(name);
        });
      }
      const auto line = on.show(std::move(started));
      const auto& last = views.front();
      const auto all = on.events(on.key);
      if (last.state == node_state::done) {
        BOOST_TEST(line.find("| ok") != std::string::npos, line);
        if (has_failed || made.options.lanes_max)
          continue;
        // The graph in the first event is enough.
        workflow_progress known(root);
        workflow_progress told;
        for (const auto& each : all) {
          BOOST_TEST(known.add(each).has_value());
          BOOST_TEST(told.add(each).has_value());
          const auto left = known.workflows();
          const auto right = told.workflows();
          BOOST_TEST_REQUIRE(left.size() == right.size());
          for (std::size_t index = 0; index < left.size(); ++index) {
            BOOST_TEST(to_json(left[index])["nodes"]
                       == to_json(right[index])["nodes"]);
            BOOST_TEST(to_json(left[index])["visits"]
                       == to_json(right[index])["visits"]);
          }
        }
      } else {
        BOOST_TEST_REQUIRE((last.state == node_state::failed), line_of(views));
        BOOST_TEST_REQUIRE(last.failure.has_value());
        BOOST_TEST(
          line.find("| " + std::string(to_string(last.failure->code())))
            != std::string::npos,
          line);
        BOOST_TEST(on.last_reason() == last.failure->message());
      }
    }
}

// -- single events ----

BOOST_AUTO_TEST_CASE(a_route_that_is_not_taken_is_skipped_before_the_end) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {gives("a", {"x"}), gives("b"), gives("c"), gives("d")},
     .edges
     = {{"START", "a"}, {"a", "b", {"x"}}, {"a", "c", {"y"}}, {"b", "d"}}});
  on.perform(root);
  BOOST_TEST(lines_of(root, on.events(on.key))
               == std::vector<std::string>({
                 "w@1 running: a=running b=unreached c=unreached d=unreached\n",
                 "w@1 running: a=done b=running c=skipped d=unreached\n",
                 "w@1 running: a=done b=done c=skipped d=running\n",
                 "w@1 running: a=done b=done c=skipped d=done\n",
                 "w@1 done: a=done b=done c=skipped d=done\n",
               }),
             boost::test_tools::per_element());
  const auto seen = seen_in(on, root, on.key).front();
  BOOST_TEST(seen.visits.size() == 3U);
  BOOST_TEST((seen.visits[0].routes == std::vector<route>{"x"}));
  BOOST_TEST(seen.invocations.size() == 1U);
  BOOST_TEST(seen.run == seen.invocations.front());
  BOOST_TEST((seen.visits[1].began == seen.visits[0].ended));
  BOOST_TEST((seen.ended.has_value() && *seen.ended >= seen.began));
  BOOST_TEST(seen.edges.size() == 4U);
}

BOOST_AUTO_TEST_CASE(attempts_are_counted_and_wait) {
  agent_fixture on;
  auto node = does("a", [](node_context& context) -> json {
    if (context.attempt() == 1)
      throw error(errc::tool_failed, "not yet");
    return 1;
  });
  node.retry = {.attempts_max = 2, .first_delay = 10ms, .jitter = 0.5};
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  const auto all = on.events(on.key);
  BOOST_TEST(lines_of(root, all)
               == std::vector<std::string>({
                 "w@1 running: a=running\n",
                 "w@1 running: a=waiting#2\n",
                 "w@1 running: a=done#2\n",
                 "w@1 done: a=done#2\n",
               }),
             boost::test_tools::per_element());
  workflow_progress seen(root);
  for (std::size_t index = 0; index < 3; ++index)
    BOOST_TEST(seen.add(all[index]).has_value());
  const auto visit = seen.workflows().front().visits.front();
  BOOST_TEST_REQUIRE(visit.failures.size() == 1U);
  BOOST_TEST(visit.failures[0].attempt == 1U);
  BOOST_TEST(visit.failures[0].why.message() == "not yet");
  BOOST_TEST((visit.failures[0].why.code() == errc::tool_failed));
  BOOST_TEST((visit.due == all[2]->timestamp + 15ms));
  // Without the rules of the node, the attempt has failed until it ends.
  workflow_progress told;
  std::vector<std::string> lines;
  for (const auto& each : all) {
    BOOST_TEST(told.add(each).has_value());
    lines.push_back(line_of(told.workflows()));
  }
  BOOST_TEST(lines[2] == "w@1 failed: a=failed\n");
  BOOST_TEST(lines.back() == "w@1 done: a=done\n");
}

BOOST_AUTO_TEST_CASE(a_function_that_waits_for_a_time_is_waiting) {
  agent_fixture on;
  // This time has passed, so the wait ends at once.
  const timestamp due(1s);
  const auto node = does(
    "a", [due](node_context& context) -> task<std::optional<node_output>> {
      co_await context.sleep_until(due);
      co_await context.emit(text("{}", "awake"));
      co_return node_output(1);
    });
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  const auto all = on.events(on.key);
  BOOST_TEST(lines_of(root, all)
               == std::vector<std::string>({
                 "w@1 running: a=running\n",
                 "w@1 running: a=waiting\n",
                 "w@1 running: a=running\n",
                 "w@1 running: a=done\n",
                 "w@1 done: a=done\n",
               }),
             boost::test_tools::per_element());
  for (auto seen : {0, 1}) {
    workflow_progress shown
      = seen == 0 ? workflow_progress(root) : workflow_progress();
    for (std::size_t index = 0; index < 3; ++index)
      BOOST_TEST(shown.add(all[index]).has_value());
    // Another process goes on with the run, and so with the wait.
    auto claim = make_claim_event("w", all[2]->invocation_id, "another");
    number_claim(claim, 1);
    BOOST_TEST(
      shown.add(std::make_shared<const event>(std::move(claim))).has_value());
    const auto views = shown.workflows();
    const auto& visit = views.front().visits.front();
    BOOST_TEST((visit.state == node_state::waiting));
    BOOST_TEST((visit.due == due));
    BOOST_TEST(to_json(views.front())["visits"][0]["due"] == 1);
    const auto drawn = to_text(root, views);
    BOOST_TEST(drawn.find("a (function, waiting until 1970-01-01 00:00:01 UTC)")
                 != std::string::npos,
               drawn);
  }
}

// The branch of the sleeping node is above that of the other one.
BOOST_AUTO_TEST_CASE(a_node_beside_a_waiting_one_does_not_wake_it) {
  agent_fixture on;
  const auto turns = std::make_shared<tally>();
  const auto root = workflow(
    {.name = "w",
     .nodes
     = {gives("b"),
        gives("c"),
        {.name = "j", .work = join()},
        does(
          "e",
          [turns](node_context& context) -> task<std::optional<node_output>> {
            co_await context.sleep_until(timestamp(1s));
            turns->add();
            while (turns->count() < 2)
              co_await context.sleep(1ms);
            co_await context.emit(text("{}", "awake"));
            co_return std::nullopt;
          }),
        does(
          "d",
          [turns](node_context& context) -> task<std::optional<node_output>> {
            while (turns->count() < 1)
              co_await context.sleep(1ms);
            co_await context.emit(text("{}", "beside"));
            turns->add();
            co_return std::nullopt;
          })},
     .edges = {{"START", "b"},
               {"START", "c"},
               {"START", "d"},
               {"b", "j"},
               {"c", "j"},
               {"j", "e"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  workflow_progress seen(root);
  std::map<std::string, std::string> states; // By the words that come then.
  for (const auto& each : on.events(on.key)) {
    BOOST_TEST(seen.add(each).has_value());
    states[each->content.text()] = line_of(seen.workflows());
  }
  BOOST_TEST(states["beside"].find("e=waiting") != std::string::npos,
             states["beside"]);
  BOOST_TEST(states["awake"].find("e=running") != std::string::npos,
             states["awake"]);
}

// The other items may run meanwhile.
BOOST_AUTO_TEST_CASE(a_map_runs_while_its_items_wait) {
  agent_fixture on;
  const node_function work
    = [](node_context& context) -> task<std::optional<node_output>> {
    co_await context.sleep_until(timestamp(1s));
    co_return node_output(context.input());
  };
  const auto root
    = workflow({.name = "w",
                .nodes = {{.name = "a", .work = map_over{.work = work}}},
                .edges = {{"START", "a"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(lines_of(root, on.events(on.key))
               == std::vector<std::string>({
                 "w@1 running: a=running\n",
                 "w@1 running: a=done\n",
                 "w@1 done: a=done\n",
               }),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_failure_cancels_the_others) {
  agent_fixture on;
  const auto begun = std::make_shared<tally>();
  const auto root = workflow(
    {.name = "w",
     .nodes
     = {does(
          "a",
          [begun](node_context& context) -> task<std::optional<node_output>> {
            while (begun->count() < 1)
              co_await context.sleep(1ms);
            throw error(errc::tool_failed, "no");
            co_return std::nullopt;
          }),
        does(
          "b",
          [begun](node_context& context) -> task<std::optional<node_output>> {
            begun->add();
            co_await context.sleep(24h);
            co_return std::nullopt;
          }),
        gives("c")},
     .edges = {{"START", "a"}, {"START", "b"}, {"b", "c"}}});
  BOOST_TEST(on.perform(root).find("| tool_failed") != std::string::npos);
  BOOST_TEST(lines_of(root, on.events(on.key)).back()
             == "w@1 failed: a=failed b=cancelled c=skipped\n");
  BOOST_TEST(on.last_reason()
             == seen_in(on, root, on.key).front().failure->message());
}

BOOST_AUTO_TEST_CASE(a_stuck_join_and_a_limit_are_failures) {
  agent_fixture on;
  const auto stuck = workflow({.name = "w",
                               .nodes = {gives("a", {"x"}),
                                         gives("b"),
                                         gives("c"),
                                         {.name = "j", .work = join()}},
                               .edges = {{"START", "a"},
                                         {"a", "b", {"x"}},
                                         {"a", "c", {"y"}},
                                         {"b", "j"},
                                         {"c", "j"}}});
  BOOST_TEST(on.perform(stuck).find("| stuck_join") != std::string::npos);
  BOOST_TEST(lines_of(stuck, on.events(on.key)).back()
             == "w@1 failed: a=done b=done c=skipped j=failed\n");
  auto again = gives("a", {"x"});
  again.visits_max = 2;
  const auto cycle = workflow({.name = "w",
                               .nodes = {again},
                               .edges = {{"START", "a"}, {"a", "a", {"x"}}}});
  agent_fixture other;
  other.perform(cycle);
  const auto seen = seen_in(other, cycle, other.key).front();
  BOOST_TEST(line_of({seen}) == "w@1 failed: a=done@2\n");
  BOOST_TEST((seen.failure->code() == errc::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(a_join_waits_for_its_other_inputs) {
  agent_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {gives("a"), gives("b"), {.name = "j", .work = join()}},
     .edges = {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"b", "j"}},
     .lanes_max = 1});
  on.perform(root);
  BOOST_TEST(lines_of(root, on.events(on.key))
               == std::vector<std::string>({
                 "w@1 running: a=running b=waiting j=unreached\n",
                 "w@1 running: a=done b=running j=waiting\n",
                 "w@1 running: a=done b=done j=running\n",
                 "w@1 running: a=done b=done j=done\n",
                 "w@1 done: a=done b=done j=done\n",
               }),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_workflow_below_others_has_its_visit) {
  agent_fixture on;
  const auto inner = workflow(
    {.name = "inner", .nodes = {gives("x")}, .edges = {{"START", "x"}}});
  const auto root = loop(
    {.name = "l", .max_iterations = 2},
    {workflow({.name = "outer",
               .nodes = {{.work = map(
                            {.name = "m", .items_key = "items", .lanes_max = 1},
                            inner)},
                         gives("c")},
               .edges = {{"START", "m"}, {"m", "c"}}}),
     says("s", "x")});
  on.perform(root, {}, {{"items", {1, 2}}});
  const auto seen = seen_in(on, root, on.key);
  BOOST_TEST(line_of(seen)
             == "l@1/outer@1 done: m=done c=done\n"
                "l@1/outer@1/m@1/m@1/inner@1 done: x=done\n"
                "l@1/outer@1/m@1/m@1/inner@2 done: x=done\n"
                "l@1/outer@2 done: m=done c=done\n"
                "l@1/outer@2/m@1/m@1/inner@1 done: x=done\n"
                "l@1/outer@2/m@1/m@1/inner@2 done: x=done\n");
  BOOST_TEST(seen[0].parent == "");
  BOOST_TEST(seen[4].parent == "l@1/outer@2/m@1");
  const auto told = fold(workflow_progress(), on.events(on.key));
  BOOST_TEST(line_of(told) == line_of(seen));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_cancels_the_workflows_below) {
  agent_fixture on;
  auto inner
    = workflow({.name = "inner",
                .nodes = {does("x",
                               [](node_context& context) -> json {
                                 if (context.key().find("inner@1/inner@1/x")
                                     != std::string::npos)
                                   throw error(errc::tool_failed, "no");
                                 return 1;
                               })},
                .edges = {{"START", "x"}}});
  workflow_node node{.work = inner};
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "inner"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 done: inner=done#2\n"
                "w@1/inner@1/inner@1 failed: x=failed\n"
                "w@1/inner@1~2/inner@1 done: x=done\n");
}

BOOST_AUTO_TEST_CASE(an_attempt_that_is_too_late_cancels_the_workflows_below) {
  agent_fixture on;
  const auto tries = std::make_shared<std::atomic<int>>(0);
  workflow_node node{
    .work = workflow({.name = "inner",
                      .nodes = {does("x",
                                     [tries](node_context& context)
                                       -> task<std::optional<node_output>> {
                                       if (++*tries == 1)
                                         co_await context.sleep(24h);
                                       co_return std::nullopt;
                                     })},
                      .edges = {{"START", "x"}}})};
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  node.timeout = 1s;
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "inner"}}});
  BOOST_TEST(on.perform(root).find("| ok") != std::string::npos);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 done: inner=done#2\n"
                "w@1/inner@1/inner@1 cancelled: x=cancelled\n"
                "w@1/inner@1~2/inner@1 done: x=done\n");
}

// -- pauses ----

namespace {

agent asking_workflow() {
  return workflow(
    {.name = "w",
     .nodes = {{.work = one_call("asker", order())},
               gives("b"),
               {.name = "j", .work = join()}},
     .edges
     = {{"START", "asker"}, {"START", "b"}, {"asker", "j"}, {"b", "j"}}});
}

} // namespace

BOOST_AUTO_TEST_CASE(a_question_pauses_its_node_until_it_is_answered) {
  pause_fixture on;
  const auto root = asking_workflow();
  on.go(root);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 paused: asker=paused b=done j=waiting\n");
  BOOST_TEST(line_of(fold(workflow_progress(), on.events(on.key)))
             == "w@1 paused: asker=paused b=done j=waiting\n");
  BOOST_TEST(on.answer(root, {{"ticket", 7}}).find("| ok")
             != std::string::npos);
  const auto lines = lines_of(root, on.events(on.key));
  const auto paused
    = std::ranges::find(lines, "w@1 paused: asker=paused b=done j=waiting\n");
  BOOST_TEST_REQUIRE((paused != lines.end()));
  BOOST_TEST(*std::next(paused)
             == "w@1 running: asker=running b=done j=waiting\n");
  BOOST_TEST(lines.back() == "w@1 done: asker=done b=done j=done\n");
  BOOST_TEST(seen_in(on, root, on.key).front().invocations.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_function_that_asks_is_paused_until_it_is_answered) {
  pause_fixture on;
  const auto root = workflow(
    {.name = "w",
     .nodes = {does("asker",
                    [](node_context& context) {
                      const auto first = context.ask("which?");
                      return json({first, context.ask("and?")});
                    }),
               gives("b"),
               {.name = "j", .work = join()}},
     .edges
     = {{"START", "asker"}, {"START", "b"}, {"asker", "j"}, {"b", "j"}}});
  on.go(root);
  const auto paused = "w@1 paused: asker=paused b=done j=waiting\n";
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == paused);
  on.answer(root, {{"result", 7}});
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == paused);
  on.answer(root, {{"result", 8}});
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 done: asker=done b=done j=done\n");
  const auto lines = lines_of(root, on.events(on.key));
  BOOST_TEST(std::ranges::count(lines, paused) == 2);
}

BOOST_AUTO_TEST_CASE(a_failed_answer_pauses_the_nodes_around_again) {
  pause_fixture on;
  auto fails = std::make_shared<bool>(true);
  const auto inner
    = workflow({.name = "inner",
                .nodes = {does("q",
                               [fails](node_context& context) {
                                 auto given = context.ask("?");
                                 if (*fails)
                                   throw error(errc::tool_failed, "broken");
                                 return given;
                               })},
                .edges = {{"START", "q"}}});
  const auto root = workflow(
    {.name = "w", .nodes = {{.work = inner}}, .edges = {{"START", "inner"}}});
  on.go(root);
  const auto waits = on.waits;
  BOOST_TEST(on.answer(root, {{"result", 1}}).find("| tool_failed")
             != std::string::npos);
  const auto paused = "w@1 paused: inner=paused\n"
                      "w@1/inner@1/inner@1 paused: q=paused\n";
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == paused);
  *fails = false;
  on.waits = waits;
  BOOST_TEST(on.answer(root, {{"result", 1}}).find("| ok")
             != std::string::npos);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 done: inner=done\n"
                "w@1/inner@1/inner@1 done: q=done\n");
}

BOOST_AUTO_TEST_CASE(the_nodes_around_a_paused_workflow_are_paused) {
  pause_fixture on;
  const auto inner = workflow({.name = "inner",
                               .nodes = {{.work = one_call("asker", order())}},
                               .edges = {{"START", "asker"}}});
  const auto root = workflow(
    {.name = "w", .nodes = {{.work = inner}}, .edges = {{"START", "inner"}}});
  on.go(root);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 paused: inner=paused\n"
                "w@1/inner@1/inner@1 paused: asker=paused\n");
}

BOOST_AUTO_TEST_CASE(an_answer_of_a_run_that_failed_does_not_count) {
  pause_fixture on;
  const auto root = asking_workflow();
  on.go(root);
  const auto changed
    = workflow({.name = "w",
                .nodes = {{.work = one_call("asker", order())}},
                .edges = {{"START", "asker"}}});
  BOOST_TEST(on.answer(changed, {{"ticket", 7}}).find("| conflict")
             != std::string::npos);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 paused: asker=paused b=done j=waiting\n");
}

BOOST_AUTO_TEST_CASE(a_fork_cancels_the_questions_before_it) {
  pause_fixture on;
  const auto root = asking_workflow();
  on.go(root);
  const auto fork = on.sessions().fork(on.key, {}, "fork").value();
  BOOST_TEST(line_of(seen_in(on, root, fork.key()))
             == "w@1 cancelled: asker=cancelled b=done j=skipped\n");
}

BOOST_AUTO_TEST_CASE(a_workflow_that_failed_goes_on_in_a_later_run) {
  pause_fixture on;
  const auto tries = std::make_shared<std::atomic<int>>(0);
  const auto root
    = workflow({.name = "w",
                .nodes = {{.work = one_call("one", order())},
                          {.work = one_call("two", order())},
                          does("b",
                               [tries](node_context&) -> json {
                                 if (++*tries == 1)
                                   throw error(errc::tool_failed, "no");
                                 return 1;
                               })},
                .edges = {{"START", "one"}, {"START", "two"}, {"one", "b"}}});
  on.go(root);
  const auto asked = on.waits;
  BOOST_TEST(on.answer(root, {{"ticket", 7}}).find("| tool_failed")
             != std::string::npos);
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 failed: one=done two=cancelled b=failed\n");
  // The second question is still open.
  on.waits = asked;
  on.answer(root, {{"ticket", 8}}, 1);
  const auto seen = seen_in(on, root, on.key).front();
  BOOST_TEST(seen.visits.back().failures.size() == 1U);
  BOOST_TEST(
    (seen.state == node_state::done || seen.state == node_state::paused),
    line_of({seen}));
}

// -- rewinds ----

BOOST_AUTO_TEST_CASE(a_rewind_takes_progress_back) {
  agent_fixture on;
  const auto root = workflow({.name = "w",
                              .nodes = {gives("a"), gives("b")},
                              .edges = {{"START", "a"}, {"a", "b"}}});
  on.perform(root);
  const auto whole = line_of(seen_in(on, root, on.key));
  // After the end of `a`.
  on.sessions().rewind(on.key, rewind_target::to(3)).value();
  BOOST_TEST(line_of(seen_in(on, root, on.key))
             == "w@1 running: a=done b=running\n");
  on.sessions().rewind(on.key, rewind_target::to(0)).value();
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == "");
  on.perform(root);
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == whole);
  // A rewind that is taken back has no effect.
  on.sessions().rewind(on.key, rewind_target::to(5)).value();
  BOOST_TEST(line_of(seen_in(on, root, on.key)) == whole);
  // Event by event, the result is that of the live events.
  const auto all = on.events(on.key);
  workflow_progress seen(root);
  for (std::size_t count = 0; count < all.size(); ++count) {
    BOOST_TEST(seen.add(all[count]).has_value());
    BOOST_TEST(
      line_of(seen.workflows())
      == line_of(fold(
        workflow_progress(root),
        on.sessions().get(on.key, {.at = count + 1}).value().events().live())));
  }
}

// -- other graphs ----

BOOST_AUTO_TEST_CASE(a_changed_graph_is_a_conflict_and_still_shown) {
  agent_fixture on;
  const auto before = workflow({.name = "w",
                                .nodes = {gives("a"), gives("b")},
                                .edges = {{"START", "a"}, {"a", "b"}}});
  const auto after = workflow({.name = "w",
                               .nodes = {gives("a"), gives("c")},
                               .edges = {{"START", "a"}, {"a", "c"}}});
  on.perform(before);
  on.perform(after);
  workflow_progress seen(after);
  std::string told;
  for (const auto& each : on.events(on.key))
    if (const auto added = seen.add(each); !added)
      told += to_string(added.error()) + "\n";
  BOOST_TEST(told.starts_with("conflict: workflow 'w' is not the one"));
  BOOST_TEST(told.find("'a' was") != std::string::npos, told);
  BOOST_TEST(std::ranges::count(told, '\n') == 1);
  const auto views = seen.workflows();
  BOOST_TEST(line_of(views)
             == "w@1 done: a=done b=done\nw@1 done: a=done c=done\n");
  BOOST_TEST(views[0].conflict.has_value());
  BOOST_TEST(!views[1].conflict.has_value());
  // Other agents than those of the session.
  workflow_progress other(says("s", "x"));
  BOOST_TEST(!other.add(on.events(on.key)[1]).has_value());
  BOOST_TEST(line_of(other.workflows())
             == "w@1 running: a=running b=unreached\n");
}

BOOST_AUTO_TEST_CASE(an_end_that_the_graph_does_not_lead_to_is_a_conflict) {
  agent_fixture on;
  const auto root = workflow({.name = "w",
                              .nodes = {gives("a"), gives("b")},
                              .edges = {{"START", "a"}, {"a", "b"}}});
  on.perform(root);
  const auto all = on.events(on.key);
  workflow_progress seen(root);
  BOOST_TEST(seen.add(all[1]).has_value());
  const auto added = seen.add(all[3]); // The end of `b`, without that of `a`.
  BOOST_TEST_REQUIRE(!added.has_value());
  BOOST_TEST((added.error().code() == errc::conflict));
  BOOST_TEST(added.error().message().find("visit 1 of node 'b'")
             != std::string::npos);
  BOOST_TEST(seen.add(all[2]).has_value());
  BOOST_TEST(line_of(seen.workflows()) == "w@1 running: a=done b=done\n");
}

BOOST_AUTO_TEST_CASE(a_graph_with_a_hash_alone_is_known_from_its_ends) {
  agent_fixture on;
  workflow_options options{.name = "w"};
  for (int index = 0; index < 1'200; ++index) {
    const auto name = "node_with_a_long_name_" + std::to_string(index);
    options.nodes.push_back(gives(name));
    options.edges.push_back(
      {index == 0 ? "START" : options.nodes[options.nodes.size() - 2].name,
       name});
  }
  const auto root = workflow(options);
  on.perform(root);
  const auto told = fold(workflow_progress(), on.events(on.key)).front();
  BOOST_TEST((told.state == node_state::done));
  BOOST_TEST(told.nodes.size() == 1'200U);
  BOOST_TEST(told.edges.empty());
  const auto known = seen_in(on, root, on.key).front();
  BOOST_TEST(known.edges.size() == 1'200U);
  BOOST_TEST(to_json(known)["nodes"][7]["state"] == "done");
}

BOOST_AUTO_TEST_CASE(events_in_the_middle_and_of_others_are_ignored) {
  agent_fixture on;
  const auto root
    = workflow({.name = "w", .nodes = {gives("a")}, .edges = {{"START", "a"}}});
  on.perform(root);
  workflow_progress seen(root);
  const auto all = on.events(on.key);
  for (std::size_t index = 2; index < all.size(); ++index)
    BOOST_TEST(seen.add(all[index]).has_value());
  BOOST_TEST(seen.workflows().empty());
  // A structure that is none.
  auto broken = *all[1];
  auto fields = broken.extra.data();
  for (const auto& bad :
       {json(1),
        json::object(),
        json{{"nodes", {{{"name", "a"}}}}},
        json{
          {"nodes",
           {{{"name", "START"}, {"kind", "start"}, {"edges", {"a ["}}},
            {{"name", "a"}, {"kind", "join"}, {"edges", json::array()}}}}}}) {
    fields["customMetadata"]["troupe"]["workflow"]["begins"] = bad;
    broken.extra = fields;
    workflow_progress told;
    BOOST_TEST(told.add(std::make_shared<const event>(broken)).has_value());
    BOOST_TEST(line_of(told.workflows()) == "w@1 running:\n");
    workflow_progress known(root);
    BOOST_TEST(!known.add(std::make_shared<const event>(broken)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(routes_of_all_types_are_read_from_the_first_event) {
  agent_fixture on;
  const auto root
    = workflow({.name = "w",
                .nodes = {gives("a", {std::int64_t(12)}),
                          gives("b", {true}),
                          gives("c", {"two words"}),
                          gives("d"),
                          gives("e")},
                .edges = {{"START", "a"},
                          {"a", "b", {std::int64_t(12), "x"}},
                          {"b", "c", {true}},
                          {"c", "d", {"y", "two words"}},
                          {.from = "d", .to = "e", .otherwise = true}}});
  on.perform(root);
  const auto told = fold(workflow_progress(), on.events(on.key)).front();
  const auto known = seen_in(on, root, on.key).front();
  BOOST_TEST(to_json(told)["edges"] == to_json(known)["edges"]);
  BOOST_TEST(line_of({told})
             == "w@1 done: a=done b=done c=done d=done e=done\n");
}

// -- drawings ----

BOOST_AUTO_TEST_CASE(a_drawing_shows_the_states) {
  agent_fixture on;
  const auto inner = workflow(
    {.name = "inner", .nodes = {gives("x")}, .edges = {{"START", "x"}}});
  const auto root = workflow(
    {.name = "w",
     .nodes = {gives("a", {"on"}), {.work = inner}, gives("c")},
     .edges = {{"START", "a"}, {"a", "inner", {"on"}}, {"a", "c", {"off"}}}});
  on.perform(root);
  const auto seen = seen_in(on, root, on.key);
  const auto shown = to_text(root, seen);
  BOOST_TEST(shown.find("w (workflow, done)") != std::string::npos, shown);
  BOOST_TEST(shown.find("a (function, done)") != std::string::npos, shown);
  BOOST_TEST(shown.find("c (function, skipped)") != std::string::npos, shown);
  BOOST_TEST(shown.find("x (function, done)") != std::string::npos, shown);
  BOOST_TEST(to_text(root, {}) == to_text(root));
  const auto graph = to_dot(root, {.workflows = seen});
  BOOST_TEST(graph.find(R"("c" [shape=box, label="c\nfunction\nskipped", )"
                        R"(tooltip="c", fillcolor="#e6e9ec"])")
               != std::string::npos,
             graph);
}

BOOST_AUTO_TEST_SUITE_END()

// Experiments: valid files, equal starts of all variants, and the report.

#include "troupe/load/experiment_report.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(experiments)

namespace {

struct place {
  place() {
    write("replies.json",
          R"({"a": ["one ${input}", "two"], "b": [{"text": "done"}]})");
    write(
      "agents.yaml",
      "agent_class: SequentialAgent\n"
      "name: both\n"
      "sub_agents:\n"
      "- {name: a, model: 'scripted:replies.json', output_key: 'app:said'}\n"
      "- {name: b, model: 'scripted:replies.json'}\n");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  }

  result<experiment> read(const std::string& text) const {
    write("x.yaml", text);
    return read_experiment(folder.path() / "x.yaml");
  }

  std::string refusal(const std::string& text) const {
    const auto failed = read(text);
    BOOST_TEST(code_of(failed) == "invalid_argument");
    auto reason = reason_of(failed);
    const auto shown = folder.path().string() + "/";
    for (auto at = reason.find(shown); at != std::string::npos;
         at = reason.find(shown))
      reason.erase(at, shown.size());
    return reason;
  }

  experiment_outcome run(const std::string& text,
                         const std::string& store = "memory:") const {
    return run_experiment(read(text).value(), {.store = store}, {}, {}, {})
      .value();
  }

  temporary_folder folder;
};

struct refusal_case {
  std::string text;
  std::string reason; // The beginning of the reason.
};

std::ostream& operator<<(std::ostream& out, const refusal_case& shown) {
  return out << shown.text;
}

const std::vector<refusal_case> refusals{
  {"", "x.yaml:1: expected an experiment"},
  {"- a\n", "x.yaml:1: expected an experiment"},
  {"agent: [\n", "x.yaml:"},
  {"inputs: [a]\n", "x.yaml:1: expected a field 'agent'"},
  {"agent: a.yaml\n", "x.yaml:1: expected a field 'inputs'"},
  {"agent: a.yaml\ninputs: []\n", "x.yaml:2: expected a field 'inputs'"},
  {"agent: a.yaml\ninputs: [[a]]\n", "x.yaml:2: 'inputs' must be a list"},
  {"agent: a.yaml\ninputs: [a]\nrepeat: 3\n",
   "x.yaml:3: an experiment has no field 'repeat'"},
  {"agent: a.yaml\ninputs: [a]\nrepeats: 0\n", "x.yaml:3: 'repeats' must be"},
  {"agent: a.yaml\ninputs: [a]\nrepeats: 9999999\n",
   "x.yaml:1: variants x inputs x repeats must be"},
  {"agent: a.yaml\ninputs: [a]\nname: 'a b'\n", "x.yaml:3: the name 'a b'"},
  {"agent: a.yaml\ninputs: [a]\nstate: [1]\n", "x.yaml:3: 'state' must be"},
  {"agent: a.yaml\ninputs: [a]\nstate: {'app:': 1}\n", "x.yaml:3: "},
  {"agent: a.yaml\ninputs: [a]\nstate: {'temp:x': 1}\n",
   "x.yaml:3: 'temp:x': a session has no temp: state"},
  {"agent: a.yaml\ninputs: [a]\nseed: -1\n", "x.yaml:3: 'seed' must be"},
  {"agent: a.yaml\ninputs: [a]\nvariants: [a]\n", "x.yaml:3: 'variants' must"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x/y: {}\n",
   "x.yaml:4: variant 'x/y': a name"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x: 3\n",
   "x.yaml:4: variant 'x' must be a mapping"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x: {agent: {}}\n",
   "x.yaml:4: a variant has no field 'agent'; it has agents, latency, model, "
   "tool_results"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x: {agents: {a: 3}}\n",
   "x.yaml:4: agent 'a' must be a mapping"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x: {latency: {normal: 3}}\n",
   "x.yaml:4: a latency must be constant"},
  {"agent: a.yaml\ninputs: [a]\nvariants:\n  x: {latency: 3}\n",
   "x.yaml:4: 'latency' must be a mapping"},
};

const std::string small = "agent: agents.yaml\n"
                          "inputs: [owls, bats]\n"
                          "repeats: 3\n"
                          "keys: ['app:said']\n"
                          "variants:\n"
                          "  plain:\n"
                          "  loud: {agents: {a: {instruction: shout}}}\n";

} // namespace

BOOST_DATA_TEST_CASE_F(place,
                       what_is_no_experiment_is_refused,
                       data::make(refusals),
                       shown) {
  const auto reason = refusal(shown.text);
  BOOST_TEST(reason.starts_with(shown.reason), reason);
}

BOOST_FIXTURE_TEST_CASE(a_plan_without_runs_is_refused, place) {
  experiment empty;
  BOOST_TEST(code_of(run_experiment(empty, {}, {}, {}, {}))
             == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(aliases_of_aliases_are_refused, place) {
  std::string text = "agent: a.yaml\nstate:\n  a0: &a0 [1, 2]\n";
  for (int step = 1; step < 60; ++step)
    text += fmt::format(
      "  a{}: &a{} [*a{}, *a{}]\n", step, step, step - 1, step - 1);
  const auto reason = refusal(text);
  BOOST_TEST(reason
             == "x.yaml:20: more than 1048576 values, with those that aliases "
                "repeat");
}

BOOST_FIXTURE_TEST_CASE(a_missing_file_is_not_found, place) {
  BOOST_TEST(code_of(read_experiment(folder.path() / "none.yaml"))
             == "not_found");
  BOOST_TEST(code_of(read_experiment(folder.path())) == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(a_variant_that_cannot_be_made_stops_all, place) {
  const auto planned = read("agent: agents.yaml\n"
                            "inputs: [go]\n"
                            "variants:\n"
                            "  plain:\n"
                            "  wrong: {agents: {c: {instruction: x}}}\n")
                         .value();
  const auto failed = run_experiment(planned, {}, {}, {}, {});
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed).starts_with(
               "variant 'wrong': an override names agent 'c', "
               "which does not exist"),
             reason_of(failed));
}

BOOST_FIXTURE_TEST_CASE(a_latency_has_to_find_its_agent, place) {
  const auto planned
    = read("agent: agents.yaml\n"
           "inputs: [go]\n"
           "variants: {x: {latency: {nobody: {constant: 5}}}}\n")
        .value();
  const auto failed = run_experiment(planned, {}, {}, {}, {});
  BOOST_TEST(
    reason_of(failed).find("a delay names agent 'nobody', which does not exist")
      != std::string::npos,
    reason_of(failed));
}

BOOST_FIXTURE_TEST_CASE(all_bits_of_a_seed_count, place) {
  auto planned = read(small).value();
  planned.variants[0].delays = {{"*",
                                 {latency::form::uniform,
                                  std::chrono::milliseconds(1),
                                  std::chrono::milliseconds(20)}}};
  planned.inputs = {"go"};
  planned.repeats = 1;
  const auto work = [&planned](std::uint64_t seed) {
    planned.seed = seed;
    return run_experiment(planned, {}, {}, {}, {}).value().runs.at(0).line.work;
  };
  const auto first = work(1);
  const auto other = work(1 + (std::uint64_t{1} << 32U));
  // The difference is larger than the lateness of timers.
  BOOST_TEST((first - other > std::chrono::milliseconds(1)
              || other - first > std::chrono::milliseconds(1)));
}

BOOST_FIXTURE_TEST_CASE(every_combination_runs_once, place) {
  const auto planned = read(small).value();
  auto runs = plan_runs(planned);
  BOOST_TEST((runs == plan_runs(planned)));
  auto other = planned;
  other.seed = 2;
  BOOST_TEST((runs != plan_runs(other)));
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> seen;
  for (const auto& each : runs)
    seen.emplace(each.variant, each.input, each.repeat);
  BOOST_TEST(seen.size() == 12U);
  BOOST_TEST(runs.size() == 12U);
}

// The script of `a` first says "one". A run that shared the script with another
// run would say "two"; a run that shared the app's state would find a leftover
// in it.
BOOST_FIXTURE_TEST_CASE(each_run_starts_from_the_same_state, place) {
  const auto made = run(small);
  BOOST_TEST_REQUIRE(made.runs.size() == 12U);
  for (const auto& each : made.runs) {
    BOOST_TEST(each.error == "");
    BOOST_TEST(each.output == "done");
    BOOST_TEST(each.state.at("app:said")
               == "one " + made.made.inputs[each.which.input]);
    BOOST_TEST(each.line.model_calls == 2U);
    BOOST_TEST((each.wall >= each.line.longest_lane));
  }
  const auto summaries = summarize(made);
  BOOST_TEST(summaries[0].name == "plain");
  BOOST_TEST(summaries[0].runs == 6U);
  BOOST_TEST(summaries[0].model_calls->mean == 2);
  BOOST_TEST(*summaries[0].agreement == 1);
  BOOST_TEST(summaries[0].keys.at("app:said").size() == 2U);
  BOOST_TEST(summaries[0].keys.at("app:said")[0].second == 3U);
}

BOOST_FIXTURE_TEST_CASE(sessions_stay_in_the_store, place) {
  const auto store = "sqlite:" + (folder.path() / "x.db").string();
  const auto made = run(small, store);
  auto again = runtime::open({.store = store}).value();
  for (const auto& each : made.runs) {
    const auto held = again.sessions().get(each.session).value();
    BOOST_TEST(timelines_of(held.events()).at(0).model_calls == 2U);
  }
}

BOOST_FIXTURE_TEST_CASE(runs_that_fail_are_counted_by_code, place) {
  const auto made = run("agent: agents.yaml\n"
                        "inputs: [go]\n"
                        "repeats: 2\n"
                        "keys: ['app:said']\n"
                        "variants:\n"
                        "  plain:\n"
                        "  broken: {agents: {b: {instruction: '{none}'}}}\n");
  const auto summaries = summarize(made);
  BOOST_TEST(summaries[0].failed.empty());
  BOOST_TEST(summaries[1].failed.at("template_error") == 2U);
  BOOST_TEST(!summaries[1].wall.has_value());
  BOOST_TEST(summaries[1].keys.at("app:said").empty());
  const auto text = to_text(made);
  BOOST_TEST(text.find("  2 failed with template_error\n")
             != std::string::npos);
  BOOST_TEST(text.find("  with b.instruction: {none}\n") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_run_that_waits_for_an_answer_has_not_ended_well,
                        place) {
  agent_file_options more;
  tool_options slow;
  slow.name = "slow";
  slow.long_running = true;
  slow.run = [](const json&, tool_context&) { return json(); };
  more.tools = make_registry({tool(std::move(slow))});
  write("replies.json", R"({"a": [{"function_calls": [{"name": "slow"}]}]})");
  write("one.yaml",
        "{name: a, model: 'scripted:replies.json', tools: [slow]}\n");
  const auto made
    = run_experiment(
        read("{agent: one.yaml, inputs: [go], repeats: 1}").value(),
        {},
        more,
        {},
        {})
        .value();
  BOOST_TEST(made.runs.at(0).error == "waiting");
}

BOOST_FIXTURE_TEST_CASE(latencies_are_the_same_in_every_variant, place) {
  const auto planned
    = read("agent: agents.yaml\n"
           "inputs: [go]\n"
           "repeats: 1\n"
           "variants:\n"
           "  x: {latency: {uniform: {from_ms: 1, to_ms: 30}}}\n"
           "  y: {latency: {'*': {uniform: {from_ms: 1, to_ms: "
           "30}}}}\n")
        .value();
  BOOST_TEST((planned.variants[0].delays == planned.variants[1].delays));
  const auto made = run_experiment(planned, {}, {}, {}, {}).value();
  // Both models together draw the same delays. Timers may be late, so there is
  // no upper bound.
  const auto work = [&made](std::size_t index) {
    return std::chrono::duration<double, std::milli>(made.runs[index].line.work)
      .count();
  };
  BOOST_TEST(work(0) >= 2.0);
  BOOST_TEST(work(1) >= 2.0);
}

BOOST_FIXTURE_TEST_CASE(one_that_is_stopped_reports_what_has_ended, place) {
  auto planned = read("agent: agents.yaml\n"
                      "inputs: [go]\n"
                      "repeats: 1000\n"
                      "at_once: 2\n"
                      "variants: {x: {latency: {constant: 1}}}\n")
                   .value();
  std::stop_source stop;
  const auto made = run_experiment(
                      planned,
                      {},
                      {},
                      [&stop](const experiment_progress& now) {
                        BOOST_TEST_REQUIRE(now.planned == 1'000U);
                        if (now.done >= 5)
                          stop.request_stop();
                      },
                      stop.get_token())
                      .value();
  BOOST_TEST(made.interrupted);
  BOOST_TEST(made.runs.size() >= 5U);
  BOOST_TEST(made.runs.size() < 1'000U);
  for (const auto& each : made.runs)
    BOOST_TEST(each.error == "");
}

BOOST_FIXTURE_TEST_CASE(json_holds_everything, place) {
  const auto made = run(small);
  const auto written = to_json(made, 5);
  BOOST_TEST(written.at("kind") == "experiment");
  BOOST_TEST(written.at("variants").size() == 2U);
  BOOST_TEST(written.at("variants")[1].at("changes")
             == json({"a.instruction: shout"}));
  BOOST_TEST(written.at("runs").size() == 12U);
  BOOST_TEST(std::ranges::count_if(
               written.at("runs"),
               [](const auto& each) { return !each.at("timeline").is_null(); })
             == 5);
  BOOST_TEST(written.at("runs")[0].at("timeline").at("lanes").size() == 2U);
}

BOOST_AUTO_TEST_CASE(figures_have_ranks_and_intervals) {
  const auto made = figure_of({5, 1, 4, 2, 3});
  BOOST_TEST(made.mean == 3);
  BOOST_TEST(made.min == 1);
  BOOST_TEST(made.p50 == 3);
  BOOST_TEST(made.p90 == 5);
  BOOST_TEST(made.max == 5);
  BOOST_TEST((*made.low < 3 && *made.high > 3));
  BOOST_TEST(!figure_of({7}).low.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

// Experiments that begin at a stored session.

#include "troupe/load/experiment_report.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(experiments_on_forks)

namespace {

const session_key parent("press", "ann", "s1");

// A model call of five tokens. The answer is kept in `said`.
const std::string reply = R"({"content": {"role": "model", "parts":
  [{"text": "past"}]}, "extra": {"usageMetadata": {"totalTokenCount": 5}}})";

// A store with the session `s1`: an answer about owls, and then another topic.
struct conversation {
  conversation() {
    write("past.json", R"({"a": [)" + reply + "]}");
    write("replies.json", R"({"a": ["${instruction}: ${input}"]})");
    write("past.yaml",
          "{name: a, model: 'scripted:past.json', output_key: said}\n");
    write("agents.yaml",
          "name: a\n"
          "model: 'scripted:replies.json'\n"
          "instruction: 'About {topic}'\n"
          "output_key: said\n");
    auto on = open();
    create_request wanted(parent);
    wanted.state = {{"topic", "owls"}, {"draft", 1}, {"user:mood", "good"}};
    on.sessions().create(wanted).value();
    auto before = on.run(load_agent_file(folder.path() / "past.yaml").value(),
                         parent,
                         "hello",
                         {.step_times = true});
    before.wait().value();
    answered = on.sessions().get(parent).value().revision();
    on.sessions().state(parent).set("topic", "bats").value();
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  }

  std::string store() const {
    return "sqlite:" + (folder.path() / "x.db").string();
  }

  runtime open() const { return runtime::open({.store = store()}).value(); }

  session fetch(const session_key& key) const {
    auto on = open();
    return on.sessions().get(key).value();
  }

  result<experiment> read(const std::string& more) const {
    write("x.yaml", "agent: agents.yaml\ninputs: [go]\n" + more);
    return read_experiment(folder.path() / "x.yaml");
  }

  experiment plan(const std::string& more,
                  std::optional<std::uint64_t> revision = {}) const {
    auto planned = read(more).value();
    planned.from = fork_point{parent, revision};
    return planned;
  }

  result<experiment_outcome> try_run(const experiment& planned) const {
    return run_experiment(planned, {.store = store()}, {}, {}, {});
  }

  experiment_outcome run(const experiment& planned) const {
    return try_run(planned).value();
  }

  temporary_folder folder;
  std::uint64_t answered = 0; // Revision of the answer about owls.
};

const std::string two_variants
  = "repeats: 2\n"
    "variants:\n"
    "  plain:\n"
    "  loud: {agents: {a: {instruction: 'Loudly about {topic}'}}}\n";

// A store without forks.
class store_without_forks : public forwarding_store {
public:
  store_without_forks() : forwarding_store(make_memory_store()) {}

  bool can_fork() const noexcept override { return false; }
};

struct refusal_case {
  std::string text;
  std::string reason;
};

std::ostream& operator<<(std::ostream& out, const refusal_case& shown) {
  return out << shown.text;
}

const std::vector<refusal_case> refusals{
  {"from: s1\n", "x.yaml:3: 'from' must be a mapping"},
  {"from: {session: s1}\n", "x.yaml:3: 'from' needs 'app' and 'session'"},
  {"from: {app: press}\n", "x.yaml:3: 'from' needs 'app' and 'session'"},
  {"from: {app: press, session: s1, at: 3}\n",
   "x.yaml:3: 'from' has no field 'at'; it has app, revision, session, user"},
  {"from: {app: press, session: s1, revision: -1}\n",
   "x.yaml:3: 'revision' must be a whole number of at least 0"},
  {"from: {app: press, session: s1}\nstate: {'user:mood': bad}\n",
   "x.yaml:4: 'user:mood' in 'state': forks share the state of the app and of "
   "the user"},
  {"from: {app: press, session: s1}\nkeys: ['app:mood']\n",
   "'app:mood' in 'keys': forks share the state of the app and of the user"},
};

} // namespace

BOOST_DATA_TEST_CASE_F(conversation,
                       a_wrong_beginning_is_refused_with_its_line,
                       data::make(refusals),
                       shown) {
  const auto failed = read(shown.text);
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed).find(shown.reason) != std::string::npos,
             reason_of(failed));
}

BOOST_AUTO_TEST_CASE(a_revision_stands_behind_the_last_at_sign) {
  const auto read = [](const char* text) {
    const auto point = read_fork_point(text);
    return point.session.id + " "
           + (point.revision ? std::to_string(*point.revision) : "newest");
  };
  BOOST_TEST(read("s1") == "s1 newest");
  BOOST_TEST(read("s1@7") == "s1 7");
  BOOST_TEST(read("s1@0") == "s1 0");
  BOOST_TEST(read("ann@home@7") == "ann@home 7");
  BOOST_TEST(read("ann@home") == "ann@home newest");
  BOOST_TEST(read("s1@") == "s1@ newest");
  BOOST_TEST(read("s1@7x") == "s1@7x newest");
  BOOST_TEST(read("s1@99999999999999999999")
             == "s1@99999999999999999999 "
                "newest");
}

BOOST_FIXTURE_TEST_CASE(every_run_has_the_same_past, conversation) {
  const auto before = fetch(parent);
  const auto made = run(plan(two_variants));
  BOOST_TEST_REQUIRE(made.runs.size() == 4U);
  BOOST_TEST(*made.made.from->revision == before.revision());
  std::set<std::string> ids;
  for (const auto& each : made.runs) {
    BOOST_TEST(each.error == "", each.reason);
    BOOST_TEST(each.session.app == "press");
    BOOST_TEST(each.session.user == "ann");
    BOOST_TEST(each.session.id
               == fmt::format("x-{}-{}-1-{}",
                              made.run,
                              each.which.variant == 0 ? "plain" : "loud",
                              each.which.repeat + 1));
    ids.insert(each.session.id);
    const auto held = fetch(each.session);
    for (std::size_t index = 0; index < before.revision(); ++index)
      BOOST_TEST(held.events()[index]->id == before.events()[index]->id);
    BOOST_TEST(each.output
               == (each.which.variant == 0 ? "About bats: go"
                                           : "Loudly about bats: go"));
  }
  BOOST_TEST(ids.size() == 4U);
  const auto after = fetch(parent);
  BOOST_TEST(after.revision() == before.revision());
  BOOST_TEST(after.state().all() == before.state().all());
}

BOOST_FIXTURE_TEST_CASE(the_past_counts_for_no_figure, conversation) {
  const auto past = timelines_of(fetch(parent).events()).at(0);
  BOOST_TEST(past.model_calls == 1U);
  BOOST_TEST(past.tokens == 5U);
  const auto made = run(plan("repeats: 1\n"));
  const auto& only = made.runs.at(0);
  BOOST_TEST(only.line.model_calls == 1U);
  BOOST_TEST(only.line.tokens == 0U);
  BOOST_TEST(only.line.invocation != past.invocation);
  BOOST_TEST(only.line.lanes.size() == 1U);
  BOOST_TEST(only.output == "About bats: go");
}

BOOST_FIXTURE_TEST_CASE(a_failed_run_has_no_answer_of_its_past, conversation) {
  const auto made = run(plan(
    "repeats: 1\nvariants: {broken: {agents: {a: {instruction: '{no}'}}}}\n"));
  BOOST_TEST(made.runs.at(0).error == "template_error");
  BOOST_TEST(made.runs.at(0).output == "");
  BOOST_TEST(made.runs.at(0).changes.empty());
  BOOST_TEST(made.runs.at(0).line.tokens == 0U);
}

BOOST_FIXTURE_TEST_CASE(runs_begin_at_an_earlier_revision, conversation) {
  const auto made = run(plan("repeats: 1\n", answered));
  BOOST_TEST(made.runs.at(0).output == "About owls: go");
  const auto first = run(plan("repeats: 1\n", 0));
  BOOST_TEST(first.runs.at(0).output == "About owls: go");
  BOOST_TEST(first.past.empty());
  BOOST_TEST(to_json(first).at("runs").at(0).at("changes")
             == json({{"said", {{"after", "About owls: go"}}}}));
}

BOOST_FIXTURE_TEST_CASE(the_changes_of_a_run_are_those_of_its_session,
                        conversation) {
  write("agents.yaml",
        "agent_class: SequentialAgent\n"
        "name: both\n"
        "sub_agents:\n"
        "- {name: a, model: 'scripted:replies.json', output_key: said}\n"
        "- {name: b, model: 'scripted:replies.json', output_key: 'user:mood'}\n"
        "- {name: c, model: 'scripted:replies.json', output_key: new}\n");
  write("replies.json", R"({"*": ["text"]})");
  const auto made = run(plan("repeats: 1\n"));
  const auto written = to_json(made).at("runs").at(0).at("changes");
  BOOST_TEST(written
             == json({{"new", {{"after", "text"}}},
                      {"said", {{"before", "past"}, {"after", "text"}}}}));
}

BOOST_FIXTURE_TEST_CASE(a_new_session_has_changes_too, conversation) {
  auto planned = read("repeats: 1\nstate: {topic: cats}\n").value();
  const auto made = run(planned);
  BOOST_TEST(made.runs.at(0).session.app.starts_with("x-"));
  BOOST_TEST(to_json(made).at("runs").at(0).at("changes")
             == json({{"said", {{"after", "About cats: go"}}}}));
  BOOST_TEST(to_json(made).at("from") == json());
}

BOOST_FIXTURE_TEST_CASE(state_is_set_on_each_fork_and_is_no_change_of_a_run,
                        conversation) {
  const auto made
    = run(plan("repeats: 2\nstate: {topic: cats, draft: null}\n"));
  for (const auto& each : made.runs) {
    BOOST_TEST(each.output == "About cats: go");
    BOOST_TEST_REQUIRE(each.changes.size() == 1U);
    BOOST_TEST(each.changes[0].key == "said");
    BOOST_TEST(each.line.model_calls == 1U);
    const auto held = fetch(each.session);
    BOOST_TEST(!held.state().contains("draft"));
  }
  BOOST_TEST(fetch(parent).state().contains("draft"));
  auto shared = plan("repeats: 1\n");
  shared.state = {{"app:theme", "dark"}};
  const auto failed = try_run(shared);
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed).starts_with("'app:theme' in 'state': forks"),
             reason_of(failed));
}

BOOST_FIXTURE_TEST_CASE(an_unknown_beginning_ends_it_before_any_run,
                        conversation) {
  const auto failure = [this](const session_key& key,
                              std::optional<std::uint64_t> revision = {}) {
    auto planned = plan("repeats: 1\n");
    planned.from = fork_point{key, revision};
    bool has_begun = false;
    const auto failed = run_experiment(
      planned,
      {.store = store()},
      {},
      [&has_begun](const experiment_progress&) { has_begun = true; },
      {});
    BOOST_TEST(!has_begun);
    return code_of(failed);
  };
  BOOST_TEST(failure({"press", "ann", "s2"}) == "not_found");
  BOOST_TEST(failure({"press", "bob", "s1"}) == "not_found");
  BOOST_TEST(failure(parent, 1'000) == "not_found");
  BOOST_TEST(failure({"", "ann", "s1"}) == "invalid_argument");
  const auto refused
    = run_experiment(plan("repeats: 1\n"),
                     {.store = std::make_shared<store_without_forks>()},
                     {},
                     {},
                     {});
  BOOST_TEST(code_of(refused) == "invalid_argument");
  BOOST_TEST(reason_of(refused).starts_with("this store cannot fork sessions"),
             reason_of(refused));
}

BOOST_FIXTURE_TEST_CASE(all_started_sessions_are_named, conversation) {
  auto planned = plan("repeats: 1000\nat_once: 2\n"
                      "variants: {x: {latency: {constant: 1}}}\n");
  std::stop_source stop;
  const auto made = run_experiment(
                      planned,
                      {.store = store()},
                      {},
                      [&stop](const experiment_progress& now) {
                        if (now.done >= 3)
                          stop.request_stop();
                      },
                      stop.get_token())
                      .value();
  BOOST_TEST(made.interrupted);
  std::set<std::string> named;
  for (const auto& key : made.sessions)
    named.insert(key.id);
  auto on = open();
  const auto page
    = on.sessions().list({"press", "ann", std::size_t{2'000}}).value();
  for (const auto& row : page.sessions)
    BOOST_TEST((row.key() == parent || named.contains(row.key().id)));
  BOOST_TEST(page.sessions.size() == named.size() + 1);
}

BOOST_FIXTURE_TEST_CASE(the_report_names_the_beginning, conversation) {
  const auto made = run(plan(two_variants, answered));
  const auto text = to_text(made);
  BOOST_TEST(text.find(fmt::format("\nfrom       revision {} of session s1, "
                                   "app press, user ann\n",
                                   answered))
               != std::string::npos,
             text);
  BOOST_TEST(text.find(fmt::format(" (sessions x-{}-VARIANT-", made.run))
               != std::string::npos,
             text);
  const auto from = to_json(made).at("from");
  BOOST_TEST(from.at("app") == "press");
  BOOST_TEST(from.at("user") == "ann");
  BOOST_TEST(from.at("session") == "s1");
  BOOST_TEST(from.at("revision") == answered);
  const auto& past = from.at("past");
  BOOST_TEST_REQUIRE(past.size() == 2U);
  BOOST_TEST(past[0].at("author") == "user");
  BOOST_TEST(past[0].at("text") == "hello");
  BOOST_TEST(past[1].at("text") == "past");
  BOOST_TEST(past[1].at("revision") == answered);
}

BOOST_AUTO_TEST_SUITE_END()

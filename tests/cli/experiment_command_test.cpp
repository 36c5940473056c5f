// `troupe experiment` and `troupe trace`: their output, files and exit codes.

#include "troupe/core/json.hpp"

#include "program.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(experiment_command)

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with a slow agent, and an experiment with it.
struct place : scratch_folder {
  place() {
    write("replies.json", R"({"*": [{"text": "hi", "latency_ms": 2}]})");
    agents
      = write("agents.yaml", "{name: a, model: 'scripted:replies.json'}\n");
    file = write("x.yaml",
                 "agent: agents.yaml\n"
                 "inputs: [go]\n"
                 "repeats: 3\n"
                 "variants:\n"
                 "  plain:\n"
                 "  slow: {latency: {constant: 5}}\n");
    store = "sqlite:" + path() + "/x.db";
  }

  std::string agents;
  std::string file;
  std::string store;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_row_for_each_variant_and_files, place) {
  const auto done = run_program({"experiment",
                                 file,
                                 "--store",
                                 store,
                                 "--json",
                                 path() + "/x.json",
                                 "--html",
                                 path() + "/x.html"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.errors == "");
  BOOST_TEST(done.output.find("\nplain        3       0 ") != std::string::npos,
             done.output);
  const auto written = parse_json(content_of(path() + "/x.json")).value();
  BOOST_TEST(written.at("runs").size() == 6U);
  BOOST_TEST(content_of(path() + "/x.html").find("\"kind\":\"experiment\"")
             != std::string::npos);

  // The report names the session of each run, so its events can be read.
  const auto& session = written.at("runs")[0].at("session");
  const auto traced = run_program({"trace",
                                   "--store",
                                   store,
                                   "--app",
                                   session.at("app").get<std::string>(),
                                   "--user",
                                   session.at("user").get<std::string>(),
                                   "--session",
                                   session.at("id").get<std::string>(),
                                   "--json",
                                   path() + "/t.json",
                                   "--html",
                                   path() + "/t.html",
                                   "--svg",
                                   path() + "/t.svg"});
  BOOST_TEST(traced.code == 0);
  BOOST_TEST(traced.output.starts_with("invocation "), traced.output);
  const auto trace = parse_json(content_of(path() + "/t.json")).value();
  BOOST_TEST(trace.at("invocations")[0].at("modelCalls") == 1);
  BOOST_TEST(trace.at("invocations")[0].at("lanes")[0].at("agent") == "a");
  BOOST_TEST(content_of(path() + "/t.svg").find(">a</text>")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(prices_give_costs, place) {
  write("replies.json",
        R"({"*": [{"content": {"parts": [{"text": "hi"}]}, "extra": {
              "modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 1000,
              "candidatesTokenCount": 500, "totalTokenCount": 1500}}}],
            "b": [{"content": {"parts": [{"text": "hi"}]}, "extra": {
              "modelVersion": "n-1", "usageMetadata": {"promptTokenCount": 7,
              "candidatesTokenCount": 0, "totalTokenCount": 7}}}]})");
  write("other.yaml", "{name: b, model: 'scripted:replies.json'}\n");
  const auto prices = write(
    "prices.yaml", "currency: EUR\nmodels: {m*: {input: 1, output: 2}}\n");
  const auto done = run_program({"experiment",
                                 file,
                                 "--store",
                                 store,
                                 "--prices",
                                 prices,
                                 "--json",
                                 path() + "/x.json"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output.find("    0.002000") != std::string::npos,
             done.output);
  BOOST_TEST(done.output.find("\ncost of all runs: 0.012000 EUR\n")
               != std::string::npos,
             done.output);
  const auto written = parse_json(content_of(path() + "/x.json")).value();
  BOOST_TEST(written.at("cost").at("currency") == "EUR");
  BOOST_TEST(written.at("variants")[0].at("cost").at("mean") == 0.002);
  BOOST_TEST(written.at("runs")[0].at("cost").at("amount") == 0.002);

  const auto& session = written.at("runs")[0].at("session");
  const auto traced = run_program({"trace",
                                   "--store",
                                   store,
                                   "--app",
                                   session.at("app").get<std::string>(),
                                   "--session",
                                   "session",
                                   "--prices",
                                   prices});
  BOOST_TEST(traced.output.find(", 1500 tokens, cost 0.002000 EUR\n")
               != std::string::npos,
             traced.output);

  const auto ran = run_program({"run",
                                path() + "/other.yaml",
                                "--store",
                                "memory:",
                                "--session",
                                "s",
                                "--input",
                                "a",
                                "--input",
                                "b",
                                "--prices",
                                prices});
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(ran.errors == "cost: unknown: no price for n-1 (14 tokens)\n");
  // A variant with a call that has no price has no cost.
  write("agents.yaml", "{name: b, model: 'scripted:replies.json'}\n");
  const auto unknown = run_program(
    {"experiment", file, "--store", "memory:", "--prices", prices});
  BOOST_TEST(unknown.output.find("  no price for n-1 (21 tokens)\n")
               != std::string::npos,
             unknown.output);
  BOOST_TEST(unknown.output.find("cost of all runs: unknown: no price for n-1")
               != std::string::npos,
             unknown.output);
}

BOOST_FIXTURE_TEST_CASE(a_wrong_file_of_prices_ends_it, place) {
  const auto prices = write("prices.yaml", "models:\n  m: {input: 1}\n");
  for (const auto& [command, code] :
       {std::pair(std::vector<std::string>{"experiment", file}, 2),
        std::pair(std::vector<std::string>{"run", agents, "--input", "a"}, 1),
        std::pair(
          std::vector<std::string>{"trace", "--app", "a", "--session", "s"},
          1)}) {
    auto options = command;
    options.insert(options.end(), {"--store", store, "--prices", prices});
    const auto done = run_program(options);
    BOOST_TEST(done.code == code);
    BOOST_TEST(done.errors
               == "error: invalid_argument: " + prices
                    + ":2: model 'm' needs a field 'output'\n");
  }
}

BOOST_FIXTURE_TEST_CASE(options_take_the_place_of_the_file, place) {
  write("other.json", R"({"*": ["other"]})");
  const auto done = run_program({"experiment",
                                 file,
                                 "--store",
                                 "memory:",
                                 "--repeats",
                                 "1",
                                 "--model",
                                 "scripted:" + path() + "/other.json",
                                 "--json",
                                 path() + "/x.json"});
  BOOST_TEST(done.code == 0, done.errors);
  const auto written = parse_json(content_of(path() + "/x.json")).value();
  BOOST_TEST(written.at("runs").size() == 2U);
  BOOST_TEST(written.at("runs")[0].at("output") == "other");
}

BOOST_FIXTURE_TEST_CASE(wrong_files_and_options_end_it_with_one_line, place) {
  const auto wrong = write("wrong.yaml", "agent: agents.yaml\nrepeats: 3\n");
  const auto lost = write("lost.yaml", "agent: none.yaml\ninputs: [go]\n");
  for (const auto& words :
       {std::vector<std::string>{"experiment", path() + "/none.yaml"},
        {"experiment", path()},
        {"experiment", wrong},
        {"experiment", lost},
        {"experiment", file, "--repeats", "0"},
        {"experiment", file, "--repeats", "100000000000"},
        {"experiment", file, "--json", path() + "/x", "--html", path() + "/x"},
        {"experiment", file, "--model", "gpt"},
        {"experiment", file, "--json", "/nowhere/at/all.json"},
        {"experiment", file, "--store", "somewhere"},
        {"experiment"},
        {"trace", "--app", "x"},
        {"trace", "--app", "x", "--session", "y", "--html", "/nowhere/x"}}) {
    const auto done = run_program(words);
    BOOST_TEST(done.code == 2);
    BOOST_TEST(done.errors.starts_with("error: "), done.errors);
    BOOST_TEST(std::ranges::count(done.errors, '\n') == 1, done.errors);
    BOOST_TEST(done.output == "");
  }
  const auto unknown
    = run_program({"trace", "--store", store, "--app", "x", "--session", "y"});
  BOOST_TEST(unknown.code == 1);
  BOOST_TEST(unknown.errors.starts_with("error: not_found: "), unknown.errors);
}

BOOST_FIXTURE_TEST_CASE(an_interrupt_ends_with_a_report, place) {
  program running({"experiment",
                   file,
                   "--store",
                   "memory:",
                   "--repeats",
                   "100000",
                   "--at-once",
                   "2"},
                  program::screen::terminal);
  BOOST_REQUIRE(running.read_until(" running, "));
  running.send(SIGINT);
  const auto end = running.wait();
  BOOST_TEST(end.code == 130);
  BOOST_TEST(end.output.find("(ended early)") != std::string::npos, end.output);
}

namespace {

// The same with a session of two events, the message and the answer.
struct talked_place : place {
  talked_place() {
    BOOST_REQUIRE(
      run_program(
        {"run", agents, "--input", "go", "--store", store, "--session", "s1"})
        .code
      == 0);
  }

  ended experiment(const std::string& which,
                   std::vector<std::string> options) const {
    std::vector<std::string> words{"experiment", which, "--store", store};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words);
  }

  std::size_t sessions() const {
    const auto done
      = run_program({"sessions", "list", "--store", store, "--app", "a"});
    return parse_json(done.output).value().at("sessions").size();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(runs_begin_at_a_session, talked_place) {
  const auto done = experiment(file,
                               {"--from",
                                "s1",
                                "--app",
                                "a",
                                "--json",
                                path() + "/x.json",
                                "--html",
                                path() + "/x.html"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output.find(
               "\nfrom       revision 2 of session s1, app a, user user\n")
               != std::string::npos,
             done.output);
  const auto written = parse_json(content_of(path() + "/x.json")).value();
  BOOST_TEST(written.at("from").at("revision") == 2);
  BOOST_TEST(written.at("runs").size() == 6U);
  for (const auto& run : written.at("runs")) {
    BOOST_TEST(run.at("session").at("app") == "a");
    BOOST_TEST(run.at("modelCalls") == 1);
  }
  BOOST_TEST(sessions() == 7U);
  BOOST_TEST(content_of(path() + "/x.html").find("\"session\":\"s1\"")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(the_session_of_the_command_line_wins, talked_place) {
  const auto other = write("other.yaml",
                           "agent: agents.yaml\n"
                           "inputs: [go]\n"
                           "repeats: 1\n"
                           "from: {app: a, session: s1, revision: 2}\n");
  const auto revision = [&](const std::vector<std::string>& options) {
    auto words = options;
    words.emplace_back("--json");
    words.push_back(path() + "/x.json");
    const auto done = experiment(other, words);
    BOOST_TEST(done.code == 0, done.errors);
    return parse_json(content_of(path() + "/x.json"))
      .value()
      .at("from")
      .at("revision");
  };
  BOOST_TEST(revision({}) == 2);
  BOOST_TEST(revision({"--from", "s1@1"}) == 1);
  BOOST_TEST(experiment(other, {"--user", "ann"}).code == 1);
}

BOOST_FIXTURE_TEST_CASE(a_beginning_that_is_not_there_ends_it, talked_place) {
  for (const auto& options :
       {std::vector<std::string>{"--from", "none", "--app", "a"},
        {"--from", "s1", "--app", "none"},
        {"--from", "s1@99", "--app", "a"}}) {
    const auto done = experiment(file, options);
    BOOST_TEST(done.code == 1);
    BOOST_TEST(done.errors.starts_with("error: not_found: "), done.errors);
    BOOST_TEST(done.output == "");
  }
  const auto shared = write("shared.yaml",
                            "agent: agents.yaml\n"
                            "inputs: [go]\n"
                            "state: {'app:n': 1}\n");
  for (const auto& [which, options] :
       {std::pair(file, std::vector<std::string>{"--from", "s1"}),
        {file, {"--app", "a"}},
        {file, {"--user", "ann"}},
        {shared, {"--from", "s1", "--app", "a"}}}) {
    const auto done = experiment(which, options);
    BOOST_TEST(done.code == 2);
    BOOST_TEST(done.errors.starts_with("error: invalid_argument: "),
               done.errors);
    BOOST_TEST(done.output == "");
  }
  BOOST_TEST(sessions() == 1U);
  const auto empty = run_program(
    {"experiment", file, "--from", "s1", "--app", "a", "--store", "memory:"});
  BOOST_TEST(empty.code == 2);
  BOOST_TEST(empty.errors.starts_with(
               "error: invalid_argument: memory: has no session to begin at"),
             empty.errors);
}

BOOST_FIXTURE_TEST_CASE(an_invocation_comes_with_those_that_continue_it,
                        place) {
  auto events = json::array();
  for (const auto* run : {"e-1", "e-2", "e-3"}) {
    auto said = json::object();
    said["id"] = std::string("event of ") + run;
    said["invocationId"] = run;
    said["author"] = "user";
    said["timestamp"] = 1'700'000'000;
    said["content"]
      = parse_json(R"({"role": "user", "parts": [{"text": "said"}]})").value();
    if (said["invocationId"] == "e-2")
      said["customMetadata"]["troupe"]["firstInvocation"] = "e-1";
    events.push_back(std::move(said));
  }
  auto session = json::object();
  session["id"] = "s";
  session["appName"] = "a";
  session["userId"] = "user";
  session["state"] = json::object();
  session["events"] = std::move(events);
  const auto lines = write("s.jsonl", session.dump() + "\n");
  const auto imported
    = run_program({"sessions", "import", lines, "--store", store});
  BOOST_TEST_REQUIRE(imported.code == 0, imported.errors);
  const auto shown = [this](const std::string& id) {
    const auto traced = run_program({"trace",
                                     "--store",
                                     store,
                                     "--app",
                                     "a",
                                     "--session",
                                     "s",
                                     "--invocation",
                                     id});
    std::string found;
    for (const auto* line : {"invocation e-1, 2",
                             "invocation e-2, continues e-1, 2",
                             "invocation e-3, 2"})
      found += traced.output.find(line) == std::string::npos ? "-" : "x";
    return found;
  };
  BOOST_TEST(shown("e-1") == "xx-");
  BOOST_TEST(shown("e-2") == "-x-");
  BOOST_TEST(shown("e-3") == "--x");
}

BOOST_FIXTURE_TEST_CASE(a_run_can_keep_the_times_of_its_steps, place) {
  for (const bool kept : {false, true}) {
    const std::string id = kept ? "kept" : "plain";
    std::vector<std::string> words{
      "run", agents, "--input", "go", "--store", store, "--session", id};
    if (kept)
      words.emplace_back("--step-times");
    BOOST_TEST(run_program(words).code == 0);
    BOOST_TEST(run_program({"trace",
                            "--store",
                            store,
                            "--app",
                            "a",
                            "--session",
                            id,
                            "--json",
                            path() + "/t.json"})
                 .code
               == 0);
    const auto trace = parse_json(content_of(path() + "/t.json")).value();
    BOOST_TEST(trace.at("invocations")[0].at("modelCalls")
               == (kept ? json(1) : json()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing

// `troupe graph` as a child process.

#include "troupe/core/json.hpp"

#include "program.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(graph_command, *boost::unit_test::timeout(120))

namespace {

namespace fs = std::filesystem;

// A folder with an agent that has tools of all kinds, none of which is there.
struct drawn_agent : scratch_folder {
  drawn_agent() {
    file = write("root_agent.yaml",
                 "name: desk\n"
                 "description: 'Says \"<b>\" & \\N'\n"
                 "model: gemini-2.5-pro\n"
                 "tools:\n"
                 "  - name: McpToolset\n"
                 "    args: {stdio_server_params: {command: ./server, "
                 "pass_env: [KEY]}, tool_filter: [read]}\n"
                 "  - {name: weather, command: ./weather}\n"
                 "sub_agents:\n"
                 "  - name: reviews\n"
                 "    agent_class: LoopAgent\n"
                 "    max_iterations: 2\n"
                 "    sub_agents: [{name: writer}, {name: critic}]\n");
    for (const auto* name : {"server", "weather"}) {
      write(name, "#!/bin/sh\ntouch \"$0.started\"\n");
      fs::permissions(path() + "/" + name, fs::perms::owner_all);
    }
  }

  std::string read(const std::string& name) const {
    std::ifstream source(path() + "/" + name);
    std::ostringstream text;
    text << source.rdbuf();
    return text.str();
  }

  std::string file;
};

// Sets a variable of this process and of its children, until its end.
class changed_variable {
public:
  changed_variable(std::string name, const std::string& value)
    : name_(std::move(name)) {
    const char* held = std::getenv(name_.c_str());
    before_ = held != nullptr ? held : "";
    ::setenv(name_.c_str(), value.c_str(), 1);
  }

  ~changed_variable() { ::setenv(name_.c_str(), before_.c_str(), 1); }

  changed_variable(const changed_variable&) = delete;
  changed_variable& operator=(const changed_variable&) = delete;

private:
  std::string name_;
  std::string before_;
};

// A folder with a `dot` of the test.
struct made_dot : scratch_folder {
  explicit made_dot(const std::string& script)
    : found("PATH", path() + ":/usr/bin:/bin") {
    write("dot", "#!/bin/sh\n" + script);
    fs::permissions(path() + "/dot", fs::perms::owner_all);
  }

  changed_variable found;
};

std::string installed_dot() {
  for (const auto* file : {"/usr/bin/dot", "/usr/local/bin/dot"})
    if (fs::exists(file))
      return file;
  return {};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_file_and_its_folder_are_drawn_and_nothing_starts) {
  const drawn_agent of;
  const auto drawn = run_program({"graph", of.file});
  const auto server = fs::weakly_canonical(of.path()).string() + "/server";
  BOOST_TEST(drawn.code == 0);
  BOOST_TEST(drawn.errors == "");
  BOOST_TEST(drawn.output
             == "desk (LLM, model gemini-2.5-pro)\n"
                "├─ tool: weather (at most 16 calls at once)\n"
                "├─ toolset: "
                  + server
                  + " (read)\n"
                    "└─ hands over to: reviews (loop, at most 2 rounds)\n"
                    "   ├─ 1. writer (LLM, model gemini-2.5-pro)\n"
                    "   └─ 2. critic (LLM, model gemini-2.5-pro)\n");
  BOOST_TEST(run_program({"graph", of.path()}).output == drawn.output);
  for (const auto* name : {"server", "weather"})
    BOOST_TEST(!fs::exists(of.path() + "/" + name + ".started"));
}

BOOST_AUTO_TEST_CASE(a_graph_goes_to_stdout_or_into_a_file) {
  const drawn_agent of;
  const auto shown = run_program({"graph", of.file, "--format", "dot"});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(shown.output.starts_with("digraph \"desk\" {\n"));
  const auto written = run_program(
    {"graph", of.file, "--format", "dot", "--output", of.path() + "/desk.dot"});
  BOOST_TEST(written.code == 0);
  BOOST_TEST(written.output == "");
  BOOST_TEST(of.read("desk.dot") == shown.output);
  const auto dark
    = run_program({"graph", of.file, "--format", "dot", "--dark"});
  BOOST_TEST(dark.output != shown.output);
}

BOOST_AUTO_TEST_CASE(mistakes_are_told_and_leave_no_file) {
  const drawn_agent of;
  const auto format = run_program({"graph", of.file, "--format", "png"});
  BOOST_TEST(format.code == 2);
  BOOST_TEST(format.errors.find("'png' is neither text, dot nor svg")
             != std::string::npos);
  BOOST_TEST(run_program({"graph"}).code == 2);
  const auto place
    = run_program({"graph", of.file, "--output", of.path() + "/no/place"});
  BOOST_TEST(place.code == 2);
  const auto absent = run_program(
    {"graph", of.path() + "/none.yaml", "--output", of.path() + "/none.txt"});
  BOOST_TEST(absent.code == 1);
  BOOST_TEST(absent.errors.starts_with("error: not_found: agent file "));
  BOOST_TEST(!fs::exists(of.path() + "/none.txt"));
  const auto wrong = of.write("wrong.yaml", "name: a\nmodle: b\n");
  BOOST_TEST(run_program({"graph", wrong})
               .errors.find("wrong.yaml:2: unknown field 'modle'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_folder_of_several_agents_names_them) {
  const scratch_folder all;
  for (const auto* name : {"b", "a"}) {
    fs::create_directory(all.path() + "/" + name);
    all.write(std::string(name) + "/root_agent.yaml", "name: x\nmodel: m\n");
  }
  const auto drawn = run_program({"graph", all.path()});
  BOOST_TEST(drawn.code == 1);
  BOOST_TEST(
    drawn.errors.find("name one of " + all.path() + "/a, " + all.path() + "/b")
    != std::string::npos);
}

// -- pictures ----

BOOST_AUTO_TEST_CASE(a_picture_without_graphviz_says_how_to_get_it) {
  const drawn_agent of;
  const scratch_folder nothing;
  const changed_variable path("PATH", nothing.path());
  const auto drawn = run_program({"graph", of.file, "--format", "svg"});
  BOOST_TEST(drawn.code == 1);
  BOOST_TEST(drawn.output == "");
  BOOST_TEST(drawn.errors.find("install it (package graphviz)")
             != std::string::npos);
  BOOST_TEST(drawn.errors.find("--format dot") != std::string::npos);
  BOOST_TEST(run_program({"graph", of.file, "--format", "dot"}).code == 0);
}

BOOST_AUTO_TEST_CASE(the_program_gets_the_graph_on_stdin_and_no_shell) {
  const drawn_agent of;
  const made_dot fake("echo \"$@\"; cat\n");
  const auto drawn = run_program({"graph", of.file, "--format", "svg"});
  const auto graph = run_program({"graph", of.file, "--format", "dot"});
  BOOST_TEST(drawn.code == 0);
  BOOST_TEST(drawn.output == "-Tsvg\n" + graph.output);
}

BOOST_AUTO_TEST_CASE(a_failure_of_the_program_is_told_and_leaves_no_file) {
  const drawn_agent of;
  const made_dot fake("cat >/dev/null; echo 'no memory' >&2; exit 3\n");
  const auto drawn = run_program(
    {"graph", of.file, "--format", "svg", "--output", of.path() + "/desk.svg"});
  BOOST_TEST(drawn.code == 1);
  BOOST_TEST(drawn.errors.find("no memory") != std::string::npos);
  BOOST_TEST(!fs::exists(of.path() + "/desk.svg"));
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_the_program_of_pictures) {
  const drawn_agent of;
  const made_dot fake("echo $$ >\"$0.new\"; mv \"$0.new\" \"$0.pid\"\n"
                      "exec sleep 1000\n");
  program drawing({"graph", of.file, "--format", "svg"});
  while (!fs::exists(fake.path() + "/dot.pid"))
    continue;
  const auto done = drawing.end_by(SIGINT);
  BOOST_TEST(done.code == 130);
  std::ifstream source(fake.path() + "/dot.pid");
  pid_t started = 0;
  source >> started;
  BOOST_TEST(started > 0);
  BOOST_TEST(::kill(started, 0) != 0);
}

BOOST_AUTO_TEST_CASE(graphviz_accepts_the_graphs) {
  const auto dot = installed_dot();
  if (dot.empty()) {
    BOOST_TEST_MESSAGE("left out: there is no /usr/bin/dot (package graphviz)");
    std::fputs("graphviz_accepts_the_graphs is left out: there is no "
               "/usr/bin/dot (package graphviz)\n",
               stderr);
    return;
  }
  const drawn_agent of;
  const auto drawn = run_program({"graph", of.file, "--format", "svg"});
  BOOST_TEST(drawn.code == 0, drawn.errors);
  BOOST_TEST(drawn.output.find("<svg ") != std::string::npos);
  // Names of nodes and edges, by which a page finds them.
  BOOST_TEST(drawn.output.find("<title>reviews</title>") != std::string::npos);
  BOOST_TEST(drawn.output.find("<title>writer&#45;&gt;critic</title>")
             != std::string::npos);
  BOOST_TEST(drawn.output.find("Says &quot;&lt;b&gt;&quot; &amp; ∖N")
             != std::string::npos);
}

// -- states in a session ----

namespace {

// A workflow with a model's answer as route, and a session with one run of it.
struct run_workflow : scratch_folder {
  run_workflow() : store("sqlite:" + path() + "/w.db") {
    write("script.json",
          R"({"sorter": [{"text": "bill"}], "bills": [{"text": "paid"}]})");
    file = write("support.yaml", yaml("bill"));
    ran = run_program(
      {"run", file, "--store", store, "--session", "s1", "--input", "Hello"});
  }

  static std::string yaml(const std::string& route) {
    return "name: support\n"
           "agent_class: Workflow\n"
           "edges:\n"
           "  - - START\n"
           "    - {name: sorter, model: 'scripted:script.json'}\n"
           "    - "
           + route
           + ": {name: bills, model: 'scripted:script.json'}\n"
             "      fault: {name: faults, model: 'scripted:script.json'}\n";
  }

  ended graph(const std::vector<std::string>& more) const {
    std::vector<std::string> words{
      "graph", file, "--store", store, "--app", "support"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  std::string store;
  std::string file;
  ended ran;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_session_gives_the_states_of_nodes) {
  const run_workflow of;
  BOOST_TEST_REQUIRE(of.ran.code == 0, of.ran.errors);
  const auto shown = of.graph({"--session", "s1"});
  BOOST_TEST(shown.code == 0, shown.errors);
  BOOST_TEST(shown.output.find("support (workflow, done)\n")
               != std::string::npos,
             shown.output);
  BOOST_TEST(shown.output.find("bills (LLM, model scripted:script.json, done)")
               != std::string::npos,
             shown.output);
  BOOST_TEST(
    shown.output.find("faults (LLM, model scripted:script.json, skipped)")
      != std::string::npos,
    shown.output);
  const auto dot = of.graph({"--session", "s1", "--format", "dot"});
  BOOST_TEST(dot.output.find("fillcolor=\"#d3f0d6\"") != std::string::npos,
             dot.output);
  const auto plain = run_program({"graph", of.file});
  BOOST_TEST(plain.output.find("done") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_session_that_does_not_fit_is_an_error) {
  run_workflow of;
  const auto none = of.graph({"--session", "none"});
  BOOST_TEST(none.code == 1);
  BOOST_TEST(none.errors.find("not_found") != std::string::npos, none.errors);
  const auto run = of.graph({"--session", "s1", "--invocation", "i"});
  BOOST_TEST(run.code == 1);
  BOOST_TEST(run.errors.find("invocation 'i' of session") != std::string::npos,
             run.errors);
  BOOST_TEST(of.graph({}).code == 2);
  BOOST_TEST(run_program({"graph", of.file, "--session", "s1"}).code == 2);
  of.write("support.yaml", run_workflow::yaml("money"));
  const auto changed = of.graph({"--session", "s1"});
  BOOST_TEST(changed.code == 1);
  BOOST_TEST(changed.errors.find("conflict") != std::string::npos,
             changed.errors);
  BOOST_TEST(changed.errors.find("'sorter'") != std::string::npos,
             changed.errors);
}

BOOST_AUTO_TEST_CASE(a_trace_has_the_visits_of_workflows) {
  const run_workflow of;
  const auto traced = run_program({"trace",
                                   "--store",
                                   of.store,
                                   "--app",
                                   "support",
                                   "--session",
                                   "s1",
                                   "--json",
                                   of.path() + "/t.json",
                                   "--html",
                                   of.path() + "/t.html"});
  BOOST_TEST(traced.code == 0, traced.errors);
  BOOST_TEST(traced.output.find("\nworkflow support@1: ") != std::string::npos,
             traced.output);
  BOOST_TEST(traced.output.find("sorter@1 |") != std::string::npos,
             traced.output);
  BOOST_TEST(traced.output.find(", done → bill\n") != std::string::npos,
             traced.output);
  std::ifstream source(of.path() + "/t.json");
  const auto written = troupe::json::parse(source);
  const auto& shown = written.at("invocations")[0].at("workflows")[0];
  BOOST_TEST(shown.at("path") == "support@1");
  BOOST_TEST(shown.at("visits").size() == 2U);
  std::ifstream page(of.path() + "/t.html");
  std::ostringstream text;
  text << page.rdbuf();
  BOOST_TEST(text.str().find("\"workflows\":[{") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

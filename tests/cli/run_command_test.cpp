#include "troupe/core/event.hpp"

#include "../models/http_server.hpp"
#include "asking_agent.hpp"
#include "program.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(run_command)

namespace {

namespace data = boost::unit_test::data;

// The agents of the cases, all with one script.
struct folder : scratch_folder {
  folder() {
    write("replies.json",
          R"({"echo": ["${input}"],
              "teller": ["${instruction}"],
              "broken": [{"error": "no such luck"}],
              "rude": [{"content": {"parts": []}, "extra": {
                "errorCode": "SAFETY", "errorMessage": "too rude"}}, "sorry"],
              "long": [{"content": {"parts": []}, "extra": {
                "errorCode": "MAX_TOKENS"}}],
              "mute": [{"content": {"parts": []}}],
              "slow": [{"text": "late", "latency_ms": 3600000}]})");
    write("slow.yaml",
          "agent_class: SequentialAgent\nname: both\nsub_agents:\n"
          "- {name: echo, model: 'scripted:replies.json'}\n"
          "- {name: slow, model: 'scripted:replies.json'}\n");
  }

  std::string agent(const std::string& name,
                    const std::string& more = {}) const {
    return write(name + ".yaml",
                 "name: " + name + "\nmodel: scripted:replies.json\n" + more);
  }

  // Adds the options that every case needs.
  ended run(std::vector<std::string> options,
            std::string_view input = {}) const {
    if (std::ranges::find(options, "--store") == options.end())
      options.insert(options.begin(), {"--store", "memory:"});
    options.insert(options.begin(), {"run", agent("echo")});
    return run_program(std::move(options), input);
  }

  program start_slow(program::screen shown = program::screen::pipes) const {
    return program(
      {"run", "--store", "memory:", path() + "/slow.yaml", "--input", "hi"},
      shown);
  }
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream source(text);
  for (std::string line; std::getline(source, line);)
    found.push_back(line);
  return found;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Returns the reason that the program prints, which is one line.
std::string reason(const ended& done) {
  for (const auto& line : lines(done.errors))
    if (line.starts_with("error: "))
      return line;
  return {};
}

struct refusal {
  std::vector<std::string> options;
  int code;
  std::string expected;
};

std::ostream& operator<<(std::ostream& out, const refusal& shown) {
  for (const auto& option : shown.options)
    out << option << ' ';
  return out;
}

const std::vector<refusal> refusals{
  {{"--colour"}, 2, "error: invalid_argument: "},
  {{"again"}, 2, "error: invalid_argument: "},
  {{"--input"}, 2, "error: invalid_argument: "},
  {{"--user", "a", "--user", "b"}, 2, "error: invalid_argument: "},
  {{"--output", "xml"}, 2, "neither text nor json"},
  {{"--state", "{"}, 2, "malformed JSON"},
  {{"--state", "[1, 2]"}, 2, "expected an object"},
  {{"--state", R"({"a": 1, "a": 2})"}, 2, "comes twice"},
  {{"--state", R"({"app:__a": 1})"}, 1, "error: invalid_argument: "},
  {{"--store", "redis:x"}, 2, "error: invalid_argument: "},
  {{"--store", "troupe.db"}, 2, "error: invalid_argument: "},
  {{"--store", "sqlite:../troupe.db"}, 1, "error: invalid_argument: "},
  {{"--store", "memory:x"}, 1, "must be memory: without a path"},
  {{"--durability", "perhaps"}, 2, "not one of durable, os, none"},
  {{"--model-calls-max", "-1"}, 2, "error: invalid_argument: "},
  {{"--tokens-max", "many"}, 2, "error: invalid_argument: "},
  {{"--session-tokens-max", "0"}, 1, "limit_exceeded"},
  {{"--compaction-interval", "0"}, 2, "error: invalid_argument: "},
  {{"--compaction-overlap", "1"}, 2, "error: invalid_argument: "},
  {{"--lost-updates", "no"}, 2, "'no' is neither tell, refuse nor ignore"},
  {{"--app", ""}, 1, "error: invalid_argument: "},
  {{"--user", " "}, 1, "error: invalid_argument: "},
  {{"--model", "gpt"},
   1,
   "expected openai:NAME, openai-responses:NAME, gemini-NAME"},
};

} // namespace

BOOST_FIXTURE_TEST_CASE(prints_what_an_agent_says, folder) {
  const auto done = run({"--input", "hello"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output == "echo: hello\n");
  BOOST_TEST(done.errors.starts_with("session: "), done.errors);
}

BOOST_DATA_TEST_CASE_F(
  folder,
  takes_an_input_as_it_is,
  data::make({"[a,b]", "[]", "{}", "-x", "--user", "a=b"})) {
  BOOST_TEST(run({"--input", sample}).output
             == "echo: " + std::string(sample) + "\n");
}

BOOST_FIXTURE_TEST_CASE(a_repeated_input_is_one_invocation_each, folder) {
  const auto done = run({"--input", "a", "--input=b", "--session", "s"});
  BOOST_TEST(done.output == "echo: a\necho: b\n");
  BOOST_TEST(done.errors == "");
}

BOOST_FIXTURE_TEST_CASE(each_line_of_stdin_is_one_invocation, folder) {
  const auto done = run({}, "a\r\n\nb c\nd");
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output == "echo: a\necho: b c\necho: d\n");
}

BOOST_FIXTURE_TEST_CASE(answers_a_line_before_the_next_one_comes, folder) {
  program talk({"run", "--store", "memory:", agent("echo")});
  for (const std::string said : {"one", "two"}) {
    talk.write(said + "\n");
    BOOST_TEST(talk.read_until("echo: " + said + "\n"));
  }
  BOOST_TEST(talk.wait().code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_blocked_answer_fails_the_command, folder) {
  const std::string why
    = "error: model_failed: the model's answer to agent 'rude' was blocked: "
      "SAFETY: too rude";
  for (const std::string form : {"text", "json"}) {
    const auto done = run_program({"run",
                                   "--store",
                                   "memory:",
                                   agent("rude"),
                                   "--output",
                                   form,
                                   "--input",
                                   "go",
                                   "--input",
                                   "never sent"});
    BOOST_TEST(done.code == 1);
    BOOST_TEST(reason(done) == why);
    BOOST_TEST(lines(done.output).size() == 1U);
    BOOST_TEST(contains(done.output, "too rude"), done.output);
  }
  BOOST_TEST(run_program({"run", "--store", "memory:", agent("rude")}, "go\n")
               .errors.ends_with("error: model_failed: line 1: "
                                 + why.substr(why.find("the model's")) + '\n'));
}

// Agents of the folder one after another, in one run.
ended run_all(const folder& on,
              const std::string& kind,
              const std::vector<std::string>& names) {
  std::string file = "agent_class: " + kind + "\nname: all\nsub_agents:\n";
  for (const auto& name : names)
    file += "- {name: " + name + ", model: 'scripted:replies.json'}\n";
  if (kind == "LoopAgent")
    file += "max_iterations: 2\n";
  return run_program(
    {"run", "--store", "memory:", on.write("all.yaml", file), "--input", "go"});
}

BOOST_FIXTURE_TEST_CASE(the_last_answer_of_each_agent_counts, folder) {
  const auto before = run_all(*this, "SequentialAgent", {"rude", "echo"});
  BOOST_TEST(before.code == 1);
  BOOST_TEST(before.output == "rude: failed, SAFETY: too rude\necho: go\n");
  const auto again = run_all(*this, "LoopAgent", {"rude"});
  BOOST_TEST(again.code == 0);
  BOOST_TEST(again.output == "rude: failed, SAFETY: too rude\nrude: sorry\n");
  BOOST_TEST(reason(again) == "");
  const auto cut = run_all(*this, "SequentialAgent", {"long", "rude"});
  BOOST_TEST(reason(cut)
             == "error: model_failed: the model's answer to agent 'long' "
                "failed: MAX_TOKENS; the model's answer to agent 'rude' was "
                "blocked: SAFETY: too rude");
  BOOST_TEST(run_all(*this, "SequentialAgent", {"mute"}).code == 0);
}

BOOST_FIXTURE_TEST_CASE(json_is_one_event_per_line, folder) {
  const auto done
    = run({"--input", "a\nb", "--input", "c", "--output", "json"});
  const auto shown = lines(done.output);
  BOOST_REQUIRE(shown.size() == 2U);
  const auto said = event_from_json(parse_json(shown[0]).value()).value();
  BOOST_TEST(said.text() == "a\nb");
  BOOST_TEST(said.author == "echo");
  BOOST_TEST(!said.id.empty());
}

BOOST_FIXTURE_TEST_CASE(state_is_that_of_the_new_session, folder) {
  const auto done
    = run_program({"run",
                   "--store",
                   "memory:",
                   agent("teller",
                         "instruction: '{topic} for {user:name}'\n"
                         "output_key: told\n"),
                   "--input",
                   "go",
                   "--state",
                   R"({"topic": "owls", "user:name": "Ann", "temp:x": 1})"});
  BOOST_TEST(done.output
             == "teller: owls for Ann\nteller:    told = \"owls for Ann\"\n");
}

BOOST_FIXTURE_TEST_CASE(a_model_replaces_that_of_every_agent, folder) {
  write("foreign.yaml", "name: echo\nmodel: gemini-2.5-flash\n");
  const auto done = run_program({"run",
                                 "--store",
                                 "memory:",
                                 path() + "/foreign.yaml",
                                 "--input",
                                 "hello",
                                 "--model",
                                 "scripted:" + path() + "/replies.json"});
  BOOST_TEST(done.output == "echo: hello\n");
}

BOOST_FIXTURE_TEST_CASE(a_folder_stands_for_its_root_agent, folder) {
  write("root_agent.yaml", "name: echo\nmodel: scripted:replies.json\n");
  BOOST_TEST(
    run_program({"run", "--store", "memory:", path(), "--input", "hi"}).output
    == "echo: hi\n");
}

BOOST_FIXTURE_TEST_CASE(what_was_recorded_is_played_back, folder) {
  const auto kept = path() + "/answers.jsonl";
  BOOST_TEST(run({"--input", "hi", "--record", kept}).output == "echo: hi\n");
  // The recorded answer is used for another input.
  BOOST_TEST(run({"--input", "other", "--model", "scripted:" + kept}).output
             == "echo: hi\n");
  BOOST_TEST(run({"--input", "hi", "--record", "/nowhere/x"}).code == 1);
}

BOOST_DATA_TEST_CASE_F(folder, says_why_it_refuses, data::make(refusals)) {
  auto options = sample.options;
  options.insert(options.begin(), {"--input", "hi"});
  const auto done = run(options);
  BOOST_TEST(done.code == sample.code);
  BOOST_TEST(done.output == "");
  BOOST_TEST(contains(reason(done), sample.expected), done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_malformed_agent_file_names_file_and_line, folder) {
  const auto file = agent("echo", "colour: red\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(
    reason(done).starts_with("error: invalid_argument: " + file + ":3: "),
    done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_tool_of_adk_is_refused_with_the_way_out, folder) {
  const auto file = agent("echo", "tools: [ExampleTool]\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(reason(done).starts_with("error: invalid_argument: " + file
                                      + ":3: troupe does not have ADK's tool "
                                        "'ExampleTool'; make a program a tool"),
             done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_tool_of_another_vendor_is_refused, folder) {
  const auto file
    = write("search.yaml",
            "name: searcher\n"
            "model: {name: claude-x, base_url: 'http://localhost:9'}\n"
            "tools:\n- google_search\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(
    reason(done).starts_with(
      "error: invalid_argument: " + file
      + ":4: agent 'searcher': Anthropic model 'claude-x': the vendor does "
        "not run 'google_search' for this model; remove it or use another "
        "model (available: web_search, web_fetch, code_execution)"),
    done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_tool_of_openai_runs_in_its_responses, folder) {
  http_server server({say(whole(R"j({"status": "completed", "model": "m",
    "output": [
      {"type": "web_search_call", "id": "ws_1", "status": "completed",
       "action": {"type": "search", "query": "owls"}},
      {"type": "code_interpreter_call", "id": "ci_1", "status": "completed",
       "container_id": "c", "code": "print(2)",
       "outputs": [{"type": "logs", "logs": "2\n"}]},
      {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Two owls.", "annotations": [
          {"type": "url_citation", "url": "https://a.example", "title": "A",
           "start_index": 0, "end_index": 8}]}]}]})j"))});
  const auto file = write("search.yaml",
                          "name: searcher\nmodel: {name: 'openai-responses:m', "
                          "base_url: '"
                            + server.url("/v1")
                            + "'}\ntools: [web_search, code_execution]\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(contains(done.output, "Two owls."), done.output);
  BOOST_TEST(contains(done.output, "https://a.example"), done.output);
  BOOST_TEST(contains(done.output, "print(2)"), done.output);
  BOOST_TEST(contains(done.output, "WEB_SEARCH"), done.output);
  BOOST_TEST_REQUIRE(server.requests().size() == 1U);
  const auto body = parse_json(server.requests()[0].body).value();
  BOOST_TEST(body["tools"].size() == 2U);
  BOOST_TEST(body["input"][0]["content"] == "hi");
}

BOOST_FIXTURE_TEST_CASE(work_of_a_vendor_and_sources_are_shown, folder) {
  write("found.json", R"j({"*": [{
    "content": {"role": "model", "parts": [
      {"executableCode": {"language": "PYTHON", "code": "a = 1\nprint(a)"}},
      {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
      {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
      {"toolCall": {"toolType": "WEB_SEARCH", "args": {"query": "owls"}}},
      {"toolResponse": {"toolType": "WEB_SEARCH", "response": {}}},
      {"text": "Owls."}]},
    "extra": {"groundingMetadata": {"groundingChunks": [
      {"web": {"uri": "https://a.example", "title": "A"}},
      {"web": {"uri": "https://b.example"}}, {"maps": {}}]}}}]})j");
  const auto file = write("search.yaml",
                          "name: searcher\nmodel: scripted:found.json\n"
                          "tools: [google_search]\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output
             == "searcher: Owls.\n"
                "searcher: -> code: a = 1\n  print(a)\n"
                "searcher: <- code: 1\n"
                "searcher: <- code failed: no\n"
                "searcher: -> WEB_SEARCH({\"query\":\"owls\"})\n"
                "searcher: <- WEB_SEARCH {}\n"
                "searcher:    source: A https://a.example\n"
                "searcher:    source: https://b.example\n");
}

BOOST_FIXTURE_TEST_CASE(doubled_braces_of_a_file_are_replaced, folder) {
  const auto file = write("both.yaml",
                          "agent_class: google.adk.agents.SequentialAgent\n"
                          "name: both\n"
                          "sub_agents:\n"
                          "- &base {name: echo, model: 'scripted:replies.json',"
                          " output_key: topic}\n"
                          "- {<<: *base, name: teller, output_key: ~,"
                          " instruction: 'On {{topic}}, ${topic}.'}\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "owls"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(contains(done.output, "On owls, ${topic}."), done.output);
}

BOOST_FIXTURE_TEST_CASE(a_failing_model_ends_the_run, folder) {
  const auto done = run_program({"run",
                                 "--store",
                                 "memory:",
                                 agent("broken"),
                                 "--input",
                                 "a",
                                 "--input",
                                 "b"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(reason(done).starts_with("error: model_failed: "), done.errors);
  BOOST_TEST(lines(done.errors).size() == 2U); // The session; a reason.
}

BOOST_FIXTURE_TEST_CASE(a_missing_template_key_is_named, folder) {
  const auto done = run_program({"run",
                                 "--store",
                                 "memory:",
                                 agent("teller", "instruction: '{topic}'\n"),
                                 "--input",
                                 "a"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(reason(done).starts_with("error: template_error: "), done.errors);
  BOOST_TEST(contains(reason(done), "topic"));
}

BOOST_FIXTURE_TEST_CASE(input_that_is_not_utf8_is_refused, folder) {
  const auto done = run({"--input", "\xff"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(reason(done).starts_with("error: invalid_argument: "),
             done.errors);
}

BOOST_AUTO_TEST_CASE(a_missing_command_or_file_is_a_usage_error) {
  BOOST_TEST(run_program({"walk"}).code == 2);
  BOOST_TEST(run_program({"run"}).code == 2);
  BOOST_TEST(run_program({"run", "--store", "memory:", "no/such/file"}).code
             == 1);
}

BOOST_AUTO_TEST_CASE(help_and_version_are_results) {
  const auto help = run_program({"run", "--help"});
  BOOST_TEST(help.code == 0);
  for (const auto* part : {"--input", "memory:", "user", "Example:"})
    BOOST_TEST(contains(help.output, part));
  BOOST_TEST(contains(run_program({"--help"}).output, "run"));
  BOOST_TEST(run_program({"--version"}).output.starts_with("troupe "));
}

BOOST_DATA_TEST_CASE_F(folder,
                       a_signal_cancels_a_run,
                       data::make({SIGINT, SIGTERM})) {
  auto slow = start_slow();
  BOOST_REQUIRE(slow.read_until("echo: hi\n"));
  slow.send(sample);
  const auto done = slow.wait();
  BOOST_TEST(done.code == 128 + sample);
  BOOST_TEST(reason(done).starts_with("error: cancelled: "), done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_signal_ends_the_wait_for_a_line, folder) {
  program talk({"run", "--store", "memory:", agent("echo")});
  talk.write("one\n");
  BOOST_REQUIRE(talk.read_until("echo: one\n"));
  talk.send(SIGINT);
  talk.read_until("never"); // Reads to its end with stdin still open.
  BOOST_TEST(talk.wait().code == 130);
}

BOOST_FIXTURE_TEST_CASE(a_closed_stdout_ends_it_quietly, folder) {
  program talk({"run", "--store", "memory:", agent("echo"), "--session", "s"});
  talk.write("one\n");
  BOOST_REQUIRE(talk.read_until("echo: one\n"));
  talk.close_output();
  talk.write("two\n");
  const auto done = talk.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors == "");
}

BOOST_FIXTURE_TEST_CASE(a_terminal_shows_progress, folder) {
  auto slow = start_slow(program::screen::terminal);
  BOOST_TEST(slow.read_until(", events: 1, running:"));
  BOOST_TEST(slow.read_until(" slow"));
  slow.send(SIGINT);
  const auto done = slow.wait();
  BOOST_TEST(done.code == 130);
  const auto last = done.output.rfind("\r\033[K"); // Erases the line.
  BOOST_REQUIRE(last != std::string::npos);
  BOOST_TEST(!contains(done.output.substr(last), "running"));
}

BOOST_FIXTURE_TEST_CASE(key_env_names_what_the_user_allows, folder) {
  const auto file
    = write("far.yaml",
            "name: far\nmodel: {name: 'openai:x', attempts: 1, key_env: HOME, "
            "base_url: 'http://127.0.0.1:1/v1'}\n");
  const auto run_far = [&file](std::vector<std::string> more) {
    std::vector<std::string> line{
      "run", file, "--store", "memory:", "--input", "x"};
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line);
  };
  const auto refused = run_far({"--allow-env", "OTHER"});
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(reason(refused), "far.yaml:2: "), reason(refused));
  BOOST_TEST(contains(reason(refused), "--allow-env HOME"), reason(refused));
  const auto allowed = run_far({"--allow-env", "A", "--allow-env", "HOME"});
  BOOST_TEST(contains(reason(allowed), "model_failed"), reason(allowed));
  BOOST_TEST(run_far({"--allow-env", "A=b"}).code == 2);
  BOOST_TEST(run_far({"--allow-env", ""}).code == 2);
}

BOOST_FIXTURE_TEST_CASE(a_file_beside_the_agent_has_its_variables, folder) {
  ::unsetenv("TROUPE_FILE_KEY");
  const auto file
    = write("far.yaml",
            "name: far\nmodel: {name: 'openai:x', attempts: 1, key_env: "
            "TROUPE_FILE_KEY, base_url: 'http://127.0.0.1:1/v1'}\n");
  write(".env", "TROUPE_FILE_KEY='k'\n");
  const std::vector<std::string> line{
    "run", file, "--store", "memory:", "--input", "x"};
  const auto with_file = run_program(line);
  BOOST_TEST(contains(reason(with_file), "model_failed"), reason(with_file));
  auto without = line;
  without.emplace_back("--no-dotenv");
  BOOST_TEST(contains(reason(run_program(without)), "--allow-env"));
  ::setenv("ADK_DISABLE_LOAD_DOTENV", "1", 1);
  BOOST_TEST(contains(reason(run_program(line)), "--allow-env"));
  ::unsetenv("ADK_DISABLE_LOAD_DOTENV");
  write(".env", "A=1\nB C\n");
  const auto wrong = run_program(line);
  BOOST_TEST(wrong.code == 1);
  BOOST_TEST(contains(reason(wrong), ".env: line 2: "), reason(wrong));
}

BOOST_FIXTURE_TEST_CASE(a_program_is_a_tool_if_the_user_allows_it, folder) {
  write("calls.json",
        R"({"*": [{"function_calls": [{"name": "say",
            "args": {"text": "from a program"}}]}, "done"]})");
  const auto file = write(
    "teller.yaml",
    "name: teller\nmodel: scripted:calls.json\ntools:\n"
    "- name: say\n  command: [printf, '%s', '{text}']\n"
    "  parameters: {type: object, properties: {text: {type: string}}}\n");
  std::vector<std::string> line{
    "run", file, "--store", "memory:", "--input", "x"};
  const auto refused = run_program(line);
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(reason(refused), "teller.yaml:5: "), reason(refused));
  BOOST_TEST(contains(reason(refused), "--allow-command printf"));
  line.insert(line.end(), {"--allow-command", "printf", "--output", "json"});
  const auto done = run_program(line);
  BOOST_TEST(done.code == 0);
  BOOST_TEST(contains(done.output, R"("result":"from a program")"),
             done.output);
}

// -- untrusted text ----

BOOST_FIXTURE_TEST_CASE(text_can_neither_steer_nor_forge, folder) {
  const auto done = run({"--input", "one\nother: forged\x1b[2J\x7f\r\xc2\x9b"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output
             == "echo: one\n  other: forged\\x1b[2J\\x7f\\x0d\\x9b\n");
}

struct shown_text {
  std::string given;
  std::string expected;
};

std::ostream& operator<<(std::ostream& out, const shown_text& each) {
  return out << each.expected;
}

const std::vector<shown_text> hidden_characters{
  {"invoice\u202egpj.exe", "invoice\\u202egpj.exe"},
  {"a\u061cb\u200eb\u200fc", "a\\u061cb\\u200eb\\u200fc"},
  {"\u202a\u202b\u202c\u202d", "\\u202a\\u202b\\u202c\\u202d"},
  {"\u2066\u2067\u2068\u2069", "\\u2066\\u2067\\u2068\\u2069"},
  {"ro\u200bot\u200c\u200d\u2060\ufeff",
   "ro\\u200bot\\u200c\\u200d\\u2060\\ufeff"},
  {"one\u2028two\u2029three", "one\\u2028two\\u2029three"},
  {"\u00ad\u3164\u115f", "\\xad\\u3164\\u115f"},
  {"\U000e0001\U000e0041\U000e0100", "\\U000e0001\\U000e0041\\U000e0100"},
  {"\xc2\x85\xc2\x9bm", "\\x85\\x9bm"},
  {"a\ufe0f", "a\\ufe0f"},
  // Text of other scripts and an emoji stay unchanged.
  {"\u26a0\ufe0f \u05d0\u05d1 \u0627\u0628 \u0600\u0661 \U0001f989.",
   "\u26a0\ufe0f \u05d0\u05d1 \u0627\u0628 \u0600\u0661 \U0001f989."},
};

BOOST_DATA_TEST_CASE_F(folder,
                       hidden_characters_are_shown_by_their_numbers,
                       data::make(hidden_characters),
                       each) {
  const auto done = run({"--input", each.given});
  BOOST_TEST(done.output == "echo: " + each.expected + "\n");
}

BOOST_DATA_TEST_CASE_F(folder,
                       json_has_hidden_characters_as_escapes,
                       data::make(hidden_characters),
                       each) {
  const auto done = run({"--input", each.given, "--output", "json"});
  BOOST_TEST(contains(done.output, each.given)
             == (each.given == each.expected));
  const auto said = event_from_json(parse_json(done.output).value()).value();
  BOOST_TEST(said.text() == each.given);
}

BOOST_FIXTURE_TEST_CASE(errors_show_hidden_characters, folder) {
  const auto done = run({"--model", "a\u202eb\xff"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(contains(done.errors, "\\u202e"), done.errors);
  BOOST_TEST(!contains(done.errors, "\u202e"), done.errors);
  BOOST_TEST(!contains(done.errors, "\xff"), done.errors);
}

BOOST_FIXTURE_TEST_CASE(an_error_is_one_whole_line_whatever_is_in_it, folder) {
  write("bad.json", R"({"*": [{"error": "bad\u0000\u001bx\ny"}]})");
  const auto done
    = run({"--input", "x", "--model", "scripted:" + path() + "/bad.json"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(reason(done).ends_with("bad\\x00\\x1bx y"), reason(done));
  BOOST_TEST(done.errors.ends_with("\n"));
}

BOOST_FIXTURE_TEST_CASE(all_inputs_are_checked_before_the_first_is_said,
                        folder) {
  const auto done = run({"--input", "fine", "--input", "\xff"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.output.empty());
  BOOST_TEST(reason(done) == "error: invalid_argument: --input 2: not UTF-8");
}

BOOST_FIXTURE_TEST_CASE(a_model_can_end_a_loop, folder) {
  write(
    "script.json",
    R"({"worker": ["again", {"function_calls": [{"name": "exit_loop"}]}]})");
  const auto file = write("loop.yaml",
                          "agent_class: LoopAgent\nname: again\nsub_agents:\n"
                          "- {name: worker, model: 'scripted:script.json', "
                          "tools: [exit_loop]}\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "go"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(lines(done.output).front() == "worker: again");
  BOOST_TEST(contains(done.output, "worker:    escalates"), done.output);
}

BOOST_FIXTURE_TEST_CASE(model_calls_are_limited_as_asked, folder) {
  const auto file = write("loop.yaml",
                          "agent_class: LoopAgent\nname: again\nsub_agents:\n"
                          "- {name: echo, model: 'scripted:replies.json'}\n");
  const auto done = run_program({"run",
                                 "--store",
                                 "memory:",
                                 file,
                                 "--input",
                                 "go",
                                 "--model-calls-max",
                                 "3"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.output == "echo: go\necho: go\necho: go\n");
  BOOST_TEST(contains(reason(done), "limit_exceeded"));
}

BOOST_FIXTURE_TEST_CASE(long_conversations_are_summed_up_as_asked, folder) {
  const auto store = "sqlite:" + path() + "/long.db";
  const auto done = run_program({"run",
                                 "--store",
                                 store,
                                 "--user",
                                 "ann",
                                 "--session",
                                 "s",
                                 agent("echo"),
                                 "--input",
                                 "a",
                                 "--input",
                                 "b",
                                 "--compaction-interval",
                                 "2"});
  BOOST_TEST(done.output == "echo: a\necho: b\n");
  const auto held = run_program({"sessions",
                                 "get",
                                 "--store",
                                 store,
                                 "--app",
                                 "echo",
                                 "--user",
                                 "ann",
                                 "--session",
                                 "s"});
  BOOST_TEST(contains(held.output, R"("endRevision":4)"), held.output);
}

BOOST_FIXTURE_TEST_CASE(a_run_that_waits_says_how_to_go_on, folder) {
  const auto file = write_asking_agent(*this);
  const auto store = "sqlite:" + path() + "/waits.db";
  const auto asked = run_program(
    {"run", "--store", store, "--session", "s", file, "--input", "go"});
  BOOST_TEST(asked.code == 0);
  BOOST_TEST(contains(asked.errors, "waiting: may this be called?"),
             asked.errors);
  const auto id = question_of(asked);
  const auto answered = [&](const std::string& text) {
    return run_program({"run",
                        "--store",
                        store,
                        "--session",
                        "s",
                        file,
                        "--model",
                        "scripted:" + path() + "/done.json",
                        "--answer",
                        text});
  };
  BOOST_TEST(answered("x").code == 2);
  BOOST_TEST(answered(id + "={").code == 2);
  const auto nobody = answered("nobody={}");
  BOOST_TEST(nobody.code == 1);
  BOOST_TEST(contains(reason(nobody), "answers no call"), reason(nobody));
  const auto done = answered(id + "={\"confirmed\": false}");
  BOOST_TEST(done.code == 0);
  BOOST_TEST(contains(done.output, "rejected"), done.output);
  BOOST_TEST(contains(done.output, "asks: done"), done.output);
  BOOST_TEST(!contains(done.errors, "waiting"), done.errors);
}

BOOST_FIXTURE_TEST_CASE(artifacts_are_kept_where_it_is_told, folder) {
  const auto file = agent("teller", "instruction: '{artifact.notes?}.'\n");
  const auto told = [&](std::vector<std::string> more,
                        const std::string& store) {
    more.insert(more.begin(), {"run", "--store", store, file, "--input", "go"});
    return run_program(std::move(more));
  };
  BOOST_TEST(told({}, "memory:").output == "teller: .\n");
  const auto store = "sqlite:" + path() + "/files.db";
  BOOST_TEST(contains(reason(told({}, store)), "template_error"));
  BOOST_TEST(told({"--artifacts", "file:" + path() + "/files"}, store).output
             == "teller: .\n");
  const auto refused = told({"--artifacts", "file:../files"}, store);
  BOOST_TEST(contains(reason(refused), "invalid_argument"), reason(refused));
}

BOOST_FIXTURE_TEST_CASE(the_next_model_answers_for_one_that_is_down, folder) {
  const auto file = write(
    "list.yaml",
    "name: echo\nmodel:\n"
    "- {name: 'openai:x', base_url: 'http://127.0.0.1:1', attempts: 1}\n"
    "- scripted:replies.json\n");
  const auto done = run_program({"run",
                                 "--store",
                                 "memory:",
                                 file,
                                 "--input",
                                 "hi",
                                 "--output",
                                 "json",
                                 "--record",
                                 path() + "/kept.jsonl"});
  BOOST_TEST(done.code == 0, done.errors);
  const auto events = lines(done.output);
  BOOST_TEST_REQUIRE(events.size() == 1U);
  BOOST_TEST(contains(events[0], "\"modelVersion\":\"scripted:replies.json\""),
             events[0]);
  // The recording has one answer for the one call.
  const auto again
    = run({"--model", "scripted:" + path() + "/kept.jsonl", "--input", "hi"});
  BOOST_TEST(again.code == 0, again.errors);
  BOOST_TEST(contains(again.output, "hi"));
}

BOOST_FIXTURE_TEST_CASE(a_list_whose_models_all_fail_names_them, folder) {
  const auto file = write(
    "list.yaml",
    "name: echo\nmodel:\n"
    "- {name: 'openai:x', base_url: 'http://127.0.0.1:1', attempts: 1}\n"
    "- {name: 'openai:y', base_url: 'http://127.0.0.1:1', attempts: 1}\n");
  const auto done
    = run_program({"run", "--store", "memory:", file, "--input", "hi"});
  BOOST_TEST(done.code == 1);
  const auto why = reason(done);
  BOOST_TEST(contains(why, "2 of 2 models failed: openai:x: "), why);
  BOOST_TEST(contains(why, "; openai:y: "), why);
}

BOOST_FIXTURE_TEST_CASE(models_of_the_command_line_are_a_list, folder) {
  const auto script = "scripted:" + path() + "/replies.json";
  const auto done = run({"--model",
                         script,
                         "--model",
                         script,
                         "--input",
                         "hi",
                         "--output",
                         "json"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(contains(done.output, "\"modelVersion\":\"" + script));
  const auto refused = run({"--model", script, "--model", "gpt-4"});
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(reason(refused), "model 'gpt-4'"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing

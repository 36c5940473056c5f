// `McpToolset` in agent files: its fields, the refused ones, and the start of
// the servers.

#include "../agents/agent_folder.hpp"
#include "called_tools.hpp"
#include <boost/test/unit_test.hpp>

#include <map>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(mcp_in_agent_files)

namespace {

// An agent with one toolset. `lines` begin at line 5 of the file.
std::string file_with(const std::string& lines) {
  return "name: a\nmodel: scripted:replies.json\ntools:\n  - name: McpToolset\n"
         + lines;
}

// A set without tools.
class empty_set : public toolset {
public:
  const std::string& name() const noexcept override { return name_; }

  pending<tool_list> tools(std::stop_token) override {
    struct answered : detail::call<tool_list> {
      void start(completion<tool_list> done) override { done(wait()); }

      result<tool_list> wait() override {
        return tool_list(std::make_shared<const std::vector<tool>>());
      }
    };

    return pending<tool_list>(std::make_unique<answered>());
  }

  tool_list known_tools() const override {
    return std::make_shared<const std::vector<tool>>();
  }

private:
  const std::string name_ = "empty";
};

// A folder whose files may start `server`, and that keeps the sources.
struct mcp_folder : folder {
  mcp_folder() {
    options.allowed_commands = {"server", (path / "bin/server").string()};
    options.allowed_variables = {"TOKEN", "KEY", "LEVEL"};
    options.open_toolset = [this](const mcp_source& source) {
      sources.push_back(source);
      return std::make_shared<empty_set>();
    };
  }

  mcp_source source_of(const std::string& lines) {
    sources.clear();
    const auto loaded = load(file_with(lines));
    BOOST_REQUIRE_MESSAGE(loaded, reason_of(loaded));
    BOOST_REQUIRE(sources.size() == 1U);
    return sources.front();
  }

  std::vector<mcp_source> sources;
};

const std::string program_lines = "    args:\n"
                                  "      stdio_connection_params:\n"
                                  "        server_params:\n"
                                  "          command: server\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_program_is_read_with_all_its_fields) {
  mcp_folder in;
  const auto read = in.source_of("    args:\n"
                                 "      stdio_connection_params:\n"
                                 "        server_params:\n"
                                 "          command: ./bin/server\n"
                                 "          args: [-v, 7]\n"
                                 "          env: {LEVEL: 3}\n"
                                 "          pass_env: [KEY]\n"
                                 "          cwd: data\n"
                                 "        timeout: 2.5\n"
                                 "      tool_filter: [read, write]\n"
                                 "      tool_name_prefix: fs\n"
                                 "      tool_list_cache_ttl_seconds: 60\n"
                                 "      call_timeout: 9\n"
                                 "    require_confirmation: destructive\n");
  mcp_source expected;
  expected.command = fs::weakly_canonical(in.path / "bin/server").string();
  expected.args = {"-v", "7"};
  expected.env = {{"LEVEL", "3"}};
  expected.passed_variables = {"KEY"};
  expected.folder = in.path / "data";
  expected.start_timeout = std::chrono::milliseconds(2'500);
  expected.tool_filter = {"read", "write"};
  expected.tool_name_prefix = "fs";
  expected.list_lifetime = std::chrono::seconds(60);
  expected.call_timeout = std::chrono::seconds(9);
  expected.require_confirmation = mcp_confirmation::destructive;
  BOOST_TEST((read == expected));
}

BOOST_AUTO_TEST_CASE(an_address_is_read_with_all_its_fields) {
  mcp_folder in;
  const auto read = in.source_of("    args:\n"
                                 "      streamable_http_connection_params:\n"
                                 "        url: https://example.com/mcp\n"
                                 "        headers: {X-Team: red}\n"
                                 "        headers_env: {X-Api-Key: KEY}\n"
                                 "        bearer_env: TOKEN\n"
                                 "        timeout: 3\n"
                                 "        sse_read_timeout: 100\n"
                                 "        terminate_on_close: true\n"
                                 "    require_confirmation: true\n");
  mcp_source expected;
  expected.url = "https://example.com/mcp";
  expected.headers = {{"X-Team", "red"}};
  expected.header_variables = {{"X-Api-Key", "KEY"}};
  expected.bearer_variable = "TOKEN";
  expected.start_timeout = std::chrono::seconds(3);
  expected.call_timeout = std::chrono::seconds(100);
  expected.require_confirmation = mcp_confirmation::all;
  BOOST_TEST((read == expected));
}

BOOST_AUTO_TEST_CASE(the_older_spellings_of_adk_are_read) {
  mcp_folder in;
  BOOST_TEST(in.source_of("    args:\n"
                          "      stdio_server_params: {command: server}\n")
               .command
             == "server");
  for (const auto* name :
       {"MCPToolset",
        "google.adk.tools.mcp_tool.McpToolset",
        "google.adk.tools.mcp_tool.MCPToolset",
        "google.adk.tools.mcp_tool.mcp_toolset.McpToolset",
        "google.adk.tools.mcp_tool.mcp_toolset.MCPToolset"}) {
    in.sources.clear();
    const auto loaded
      = in.load("name: a\nmodel: scripted:replies.json\ntools:\n  - name: "
                + std::string(name) + "\n" + program_lines);
    BOOST_TEST(loaded.has_value(), reason_of(loaded));
    BOOST_TEST(in.sources.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(
  a_program_that_is_not_allowed_is_refused_before_any_starts) {
  mcp_folder in;
  in.options.allowed_commands = {"server"};
  const auto reason
    = in.failure(file_with(program_lines
                           + "  - name: McpToolset\n"
                             "    args:\n"
                             "      stdio_server_params: {command: rm}\n"));
  BOOST_TEST(reason
             == "root_agent.yaml:11: the file wants to start the program 'rm'; "
                "allow it with --allow-command rm (in C++: "
                "agent_file_options::allowed_commands), or remove the tool");
  BOOST_TEST(in.sources.empty());
}

// A path in the file and a path of the user name the same program.
BOOST_AUTO_TEST_CASE(a_path_is_allowed_by_its_target_and_not_by_its_text) {
  mcp_folder in;
  const auto lines = [](const std::string& command) {
    return file_with(
      "    args:\n      stdio_server_params: {command: " + command + "}\n");
  };
  BOOST_TEST(in.load(lines("bin/../bin/server")).has_value());
  in.options.allowed_commands = {"./bin/server"};
  const auto reason = in.failure(lines("./bin/server"));
  // Without the folder, which the error names.
  BOOST_TEST(reason.find("allow it with --allow-command bin/server")
               != std::string::npos,
             reason);
}

// A program may do something else under each of its names.
BOOST_AUTO_TEST_CASE(a_program_that_is_a_link_is_allowed_by_its_own_name) {
  mcp_folder in;
  in.write("bin/program", "#!/bin/sh\n");
  fs::create_symlink("program", in.path / "bin/link");
  const auto text = file_with(
    "    args:\n      stdio_server_params: {command: ./bin/link}\n");
  in.options.allowed_commands = {(in.path / "bin/program").string()};
  BOOST_TEST(in.failure(text).find("bin/link'; allow it") != std::string::npos);
  in.options.allowed_commands = {(in.path / "bin/link").string()};
  BOOST_REQUIRE(in.load(text).has_value());
  BOOST_TEST(in.sources.back().command
             == (fs::canonical(in.path) / "bin/link").string());
}

BOOST_AUTO_TEST_CASE(what_a_toolset_may_not_do_is_refused_with_a_reason) {
  mcp_folder in;
  const std::string http = "    args:\n"
                           "      streamable_http_connection_params:\n"
                           "        url: https://example.com\n";
  const std::map<std::string, std::string> reasons = {
    {"", "needs args with stdio_connection_params"},
    {"    args: {}\n", "needs one of stdio_server_params"},
    {"    args: {sse_connection_params: {url: x}}\n",
     "HTTP+SSE of 2024-11-05 is not supported"},
    {program_lines + "      auth_scheme: {}\n",
     "'auth_scheme' is not supported"},
    {program_lines + "      use_mcp_resources: true\n", "are not supported"},
    {program_lines + "      colour: red\n", "unknown field 'colour'"},
    {program_lines + "          shell: true\n", "unknown field 'shell'"},
    {program_lines + "          pass_env: [HOME]\n",
     "allow it with --allow-env HOME"},
    {program_lines + "          env: {LD_PRELOAD: ./x.so}\n",
     "allow it with --allow-env LD_PRELOAD"},
    {http + "        bearer_env: AWS_SECRET_ACCESS_KEY\n",
     "allow it with --allow-env AWS_SECRET_ACCESS_KEY"},
    {http + "        headers: {authorization: Bearer x}\n",
     "keys are not allowed in files"},
    {http + "        terminate_on_close: false\n", "a session always ends"},
    {http + "      stdio_server_params: {command: server}\n",
     "needs one of stdio_server_params"},
  };
  for (const auto& [lines, reason] : reasons) {
    const auto said = in.failure(file_with(lines));
    BOOST_TEST(said.find(reason) != std::string::npos, said);
  }
}

BOOST_AUTO_TEST_CASE(a_toolset_without_args_needs_them) {
  mcp_folder in;
  const auto reason = in.failure(
    "name: a\nmodel: scripted:replies.json\ntools: [McpToolset]\n");
  BOOST_TEST(reason.find("McpToolset needs args") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_program_without_mcp_says_so) {
  mcp_folder in;
  in.options.open_toolset = nullptr;
  const auto reason = in.failure(file_with(program_lines));
  BOOST_TEST(reason.find("agent_file_options::open_toolset")
               != std::string::npos,
             reason);
}

BOOST_AUTO_TEST_CASE(agents_that_name_one_server_share_its_connection) {
  mcp_folder in;
  const auto loaded
    = in.load(file_with(program_lines)
              + "sub_agents:\n"
                "  - name: b\n"
                "    tools:\n"
                "      - name: McpToolset\n"
                "        args:\n"
                "          stdio_server_params: {command: server}\n");
  BOOST_REQUIRE_MESSAGE(loaded, reason_of(loaded));
  BOOST_TEST(in.sources.size() == 1U);
  const auto& above = std::get<llm_options>(loaded->kind());
  const auto& below
    = std::get<llm_options>(loaded->sub_agents().front().kind());
  BOOST_TEST((above.toolsets == below.toolsets));
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_start_is_an_error_of_its_line) {
  mcp_folder in;
  in.options.open_toolset
    = [](const mcp_source& source) { return mcp_tools(source, fast()); };
  const auto reason = in.failure(file_with(program_lines));
  BOOST_TEST(reason
             == "root_agent.yaml:4: the program 'server' cannot be started: No "
                "such file or directory");
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_there_is_told_once) {
  mcp_folder in;
  std::vector<std::string> logged;
  in.options.open_toolset = [&logged](const mcp_source& source) {
    auto options = fast();
    options.connects_at_once = false;
    options.on_log
      = [&logged](std::string_view line) { logged.emplace_back(line); };
    return mcp_tools(source, options);
  };
  BOOST_TEST(in.failure(file_with(program_lines)).find("cannot be started")
             != std::string::npos);
  const auto unreachable
    = in.failure(file_with("    args:\n"
                           "      streamable_http_connection_params:\n"
                           "        url: http://127.0.0.1:1/mcp\n"));
  BOOST_TEST(unreachable.starts_with(
               "root_agent.yaml:4: the MCP server at http://127.0.0.1:1/mcp "
               "did not answer: request to 127.0.0.1:1: "),
             unreachable);
  BOOST_TEST(logged == std::vector<std::string>(),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_agent_of_a_file_calls_the_tools_of_its_server) {
  folder in;
  in.options.allowed_commands = {TROUPE_SMALL_SERVER};
  in.options.open_toolset
    = [](const mcp_source& source) { return mcp_tools(source, fast()); };
  in.write("replies.json",
           R"({"a": [{"function_calls": [{"name": "m_echo", "args": )"
           R"({"text": "from a file"}}]}, "done"]})");
  const auto root = in.load(
    file_with("    args:\n"
              "      stdio_server_params: {command: " TROUPE_SMALL_SERVER "}\n"
              "      tool_name_prefix: m\n"));
  BOOST_REQUIRE_MESSAGE(root, reason_of(root));
  auto on = runtime::open().value();
  on.sessions().create({"a", "u", "s"}).value();
  on.run(*root, {"a", "u", "s"}, user_text("go")).wait().value();
  bool is_found = false;
  for (const auto& each : on.sessions().get({"a", "u", "s"}).value().events())
    for (const auto& element : each->content.parts)
      if (const auto* response = element.response())
        is_found
          = text_in(response->response.data()) == "from a file" || is_found;
  BOOST_TEST(is_found);
}

BOOST_AUTO_TEST_SUITE_END()

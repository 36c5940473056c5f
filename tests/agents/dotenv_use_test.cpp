// Variables of a `.env` in agent files: keys of models, `${NAME}`, variables of
// programs and headers of servers.

#include "troupe/models/open_model.hpp"

#include "../outcome.hpp"
#include "agent_folder.hpp"
#include "tool_caller.hpp"
#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(dotenv_in_agent_files)

namespace {

struct dotenv_use : folder {
  dotenv_use() {
    ::unsetenv("OWN_KEY");
    options.allowed_commands = {"env", "server"};
    options.open_toolset = [this](const mcp_source& source) -> toolset_ptr {
      sources.push_back(source);
      throw error(errc::tool_failed, "not started");
    };
  }

  // Reads the `.env` and then the file.
  result<agent> load_with(const std::string& dotenv, const std::string& text) {
    write(".env", dotenv);
    options.dotenv
      = find_dotenv(path / "root_agent.yaml", options.allowed_variables)
          .value();
    return load(text);
  }

  // The server that the file names; it is not started.
  mcp_source source_of(const std::string& dotenv, const std::string& lines) {
    sources.clear();
    const auto loaded = load_with(
      dotenv, "name: a\nmodel: scripted:replies.json\ntools:\n" + lines);
    BOOST_REQUIRE_MESSAGE(sources.size() == 1U, reason_of(loaded));
    return sources.front();
  }

  std::vector<mcp_source> sources;
};

const std::string http = "- name: McpToolset\n"
                         "  args:\n"
                         "    streamable_http_connection_params:\n"
                         "      url: https://example.com/mcp\n";

// The environment of a program as lines.
std::string environment_of(const agent& root) {
  const auto& made = std::get<llm_options>(root.kind()).tools.front();
  return tool_caller(made).call()["result"].get<std::string>();
}

} // namespace

BOOST_FIXTURE_TEST_CASE(headers_of_a_server_come_from_the_file, dotenv_use) {
  auto read = source_of("OWN_KEY=k1\nTEAM=red\n",
                        http
                          + "      headers: {X-Team: 'the ${TEAM} one', "
                            "Authorization: 'Basic ${OWN_KEY}'}\n"
                            "      headers_env: {X-Own: OWN_KEY}\n");
  const std::map<std::string, std::string> expected = {
    {"Authorization", "Basic k1"}, {"X-Own", "k1"}, {"X-Team", "the red one"}};
  BOOST_TEST((read.headers == expected));
  BOOST_TEST(read.header_variables.empty());
  read = source_of("OWN_KEY=k1\n", http + "      bearer_env: OWN_KEY\n");
  BOOST_TEST(read.headers.at("Authorization") == "Bearer k1");
  BOOST_TEST(read.bearer_variable.empty());
}

BOOST_FIXTURE_TEST_CASE(an_address_of_the_file_gets_no_key_of_the_environment,
                        dotenv_use) {
  ::unsetenv("OPENAI_BASE_URL");
  ::setenv("OWN_KEY", "of the environment", 1);
  options.allowed_variables = {"OWN_KEY"};
  const std::string text
    = "name: a\nmodel: {name: 'openai:x', key_env: OWN_KEY}\n";
  const std::string address = "OPENAI_BASE_URL=https://other.example/v1\n";
  BOOST_TEST(reason_of(load_with(address, text))
               .find("does not get the key OWN_KEY of the environment")
             != std::string::npos);
  BOOST_TEST(load_with("OTHER=1\n", text).has_value());
  ::unsetenv("OWN_KEY");
  BOOST_TEST(load_with(address + "OWN_KEY=of the file\n", text).has_value());
}

// The names that the file repeats would give it the values of the environment.
BOOST_FIXTURE_TEST_CASE(a_name_in_the_file_gives_no_other_value, dotenv_use) {
  ::setenv("OWN_KEY", "of the environment", 1);
  const auto text = "name: a\nmodel: scripted:replies.json\ntools:\n" + http
                    + "      bearer_env: OWN_KEY\n";
  BOOST_TEST(reason_of(load_with("OWN_KEY=dummy\n", text))
               .find("allow it with --allow-env OWN_KEY")
             != std::string::npos);
  BOOST_TEST(sources.empty());
  // The environment goes first.
  options.allowed_variables = {"OWN_KEY"};
  const auto read
    = source_of("OWN_KEY=dummy\n", http + "      bearer_env: OWN_KEY\n");
  BOOST_TEST(read.bearer_variable == "OWN_KEY");
  BOOST_TEST(read.headers.empty());
}

BOOST_FIXTURE_TEST_CASE(a_file_above_needs_permission, dotenv_use) {
  const auto text = "name: a\nmodel: scripted:../replies.json\ntools:\n" + http
                    + "      bearer_env: OWN_KEY\n";
  write("agent/root_agent.yaml", text);
  write(".env", "OWN_KEY=of the user\n");
  options.dotenv = find_dotenv(path / "agent").value();
  BOOST_TEST(reason_of(load_agent_file(path / "agent", options))
               .find("allow it with --allow-env OWN_KEY")
             != std::string::npos);
  options.allowed_variables = {"OWN_KEY"};
  BOOST_TEST(!load_agent_file(path / "agent", options));
  BOOST_REQUIRE(sources.size() == 1U);
  BOOST_TEST(sources[0].headers.at("Authorization") == "Bearer of the user");
}

BOOST_FIXTURE_TEST_CASE(variables_for_a_program_need_permission, dotenv_use) {
  const std::string dotenv = "OWN_KEY=k1\nLD_PRELOAD=./x.so\n";
  const auto file = [](const std::string& lines) {
    return "name: a\nmodel: scripted:replies.json\ntools:\n"
           "- {name: show, command: env, "
           + lines + "}\n";
  };
  for (const auto* lines :
       {"pass_env: [LD_PRELOAD]", "env: {LD_PRELOAD: '${LD_PRELOAD}'}"})
    BOOST_TEST(reason_of(load_with(dotenv, file(lines)))
                 .find("allow it with --allow-env LD_PRELOAD")
               != std::string::npos);
  options.allowed_variables = {"OWN_KEY", "LEVEL"};
  for (const auto* lines :
       {"pass_env: [OWN_KEY]", "env: {OWN_KEY: '${OWN_KEY}'}"}) {
    const auto root = load_with(dotenv, file(lines));
    BOOST_REQUIRE_MESSAGE(root, reason_of(root));
    BOOST_TEST(environment_of(*root).find("OWN_KEY=k1\n") != std::string::npos);
  }
  // A value of the file needs no permission, and the process does not get it.
  options.allowed_variables = {"LEVEL"};
  const auto root = load_with(dotenv, file("env: {LEVEL: '${OWN_KEY}'}"));
  BOOST_REQUIRE_MESSAGE(root, reason_of(root));
  const auto seen = environment_of(*root);
  BOOST_TEST(seen.find("LEVEL=k1\n") != std::string::npos);
  BOOST_TEST(seen.find("OWN_KEY") == std::string::npos);
  BOOST_TEST(std::getenv("OWN_KEY") == nullptr);
}

BOOST_FIXTURE_TEST_CASE(the_key_of_a_model_comes_from_the_file, dotenv_use) {
  ::unsetenv("ANTHROPIC_API_KEY");
  ::unsetenv("ANTHROPIC_BASE_URL");
  const std::string text = "name: a\nmodel: claude-x\n";
  BOOST_TEST(reason_of(load(text)).find("ANTHROPIC_API_KEY is not set")
             != std::string::npos);
  const auto keyed = load_with("ANTHROPIC_API_KEY=k\n", text);
  BOOST_TEST(keyed.has_value(), reason_of(keyed));
  const std::string own
    = "name: a\nmodel: {name: 'openai:x', base_url: 'http://localhost:1/v1', "
      "key_env: OWN_KEY}\n";
  const auto named = load_with("OWN_KEY=k\n", own);
  BOOST_TEST(named.has_value(), reason_of(named));
  ::setenv("OWN_KEY", "of the environment", 1);
  BOOST_TEST(reason_of(load_with("OWN_KEY=k\n", own))
               .find("key_env may not name OWN_KEY")
             != std::string::npos);
}

// A file of another person must not send the user's key to a server of its own.
BOOST_FIXTURE_TEST_CASE(an_address_of_the_file_gets_no_key_of_others,
                        dotenv_use) {
  const std::string text = "name: a\nmodel: claude-x\n";
  const std::string url = "ANTHROPIC_BASE_URL=https://example.com\n";
  ::setenv("ANTHROPIC_API_KEY", "of the environment", 1);
  BOOST_TEST(reason_of(load_with(url, text))
               .find("does not get the key of the environment")
             != std::string::npos);
  ::setenv("ANTHROPIC_BASE_URL", "https://example.org", 1);
  BOOST_TEST(load_with(url, text).has_value());
  ::unsetenv("ANTHROPIC_BASE_URL");
  ::unsetenv("ANTHROPIC_API_KEY");
  BOOST_TEST(load_with(url + "ANTHROPIC_API_KEY=k\n", text).has_value());
  BOOST_TEST(load_with(url, text).has_value());
  // Nor that of a program.
  open_model_options usual;
  usual.dotenv = options.dotenv;
  usual.key = [] { return std::string("k"); };
  BOOST_TEST(reason_of(open_model({.name = "claude-x"}, usual))
               .find("does not get the key of the program")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

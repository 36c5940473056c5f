// Programs as tools in agent files: the fields, the refused ones, and the
// programs and variables that the user allows.

#include "../outcome.hpp"
#include "agent_folder.hpp"
#include "tool_caller.hpp"
#include <boost/test/unit_test.hpp>

#include <map>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(command_tools_in_agent_files)

namespace {

// An agent with one tool. `lines` begin at line 5 of the file.
std::string file_with(const std::string& lines) {
  return "name: a\nmodel: scripted:replies.json\ntools:\n  - name: weather\n"
         + lines;
}

struct command_folder : folder {
  command_folder() {
    options.allowed_commands = {"sh", (path / "bin/weather").string()};
    options.allowed_variables = {"LEVEL", "TROUPE_FILE_TEST"};
  }

  tool read(const std::string& lines) const {
    const auto loaded = load(file_with(lines));
    BOOST_REQUIRE_MESSAGE(loaded, reason_of(loaded));
    const auto& tools = std::get<llm_options>(loaded->kind()).tools;
    BOOST_REQUIRE(tools.size() == 1U);
    return tools.front();
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_program_is_read_with_all_its_fields) {
  ::setenv("TROUPE_FILE_TEST", "7", 1);
  const command_folder in;
  std::filesystem::create_directory(in.path / "data");
  in.write("bin/weather",
           "#!/bin/sh\nprintf '%s|' \"$@\" $LEVEL $TROUPE_FILE_TEST; pwd\n");
  std::filesystem::permissions(in.path / "bin/weather",
                               std::filesystem::perms::owner_all);
  const auto made = in.read("    description: Tells the weather.\n"
                            "    command: [./bin/weather, -v, 5, '{city}']\n"
                            "    parameters:\n"
                            "      type: object\n"
                            "      properties: {city: {type: string}}\n"
                            "      required: [city]\n"
                            "    cwd: data\n"
                            "    env: {LEVEL: 'x${TROUPE_FILE_TEST}$${y}$'}\n"
                            "    pass_env: [TROUPE_FILE_TEST]\n"
                            "    timeout: 2.5\n"
                            "    calls_max: 3\n"
                            "    output_bytes_max: 1000\n"
                            "    require_confirmation: true\n");
  BOOST_TEST(made.name() == "weather");
  BOOST_TEST(made.description() == "Tells the weather.");
  BOOST_TEST(made.parameters()["required"] == json({"city"}));
  BOOST_TEST((made.options().timeout == std::chrono::milliseconds(2'500)));
  BOOST_TEST((made.options().calls_max == std::size_t{3}));
  BOOST_TEST(made.options().require_confirmation.can_hold());
  auto options = made.options();
  options.require_confirmation = false;
  BOOST_TEST(tool_caller(tool(options)).call({{"city", "New York"}})["result"]
             == "-v|5|New York|x7${y}$|7|"
                  + std::filesystem::canonical(in.path / "data").string());
}

BOOST_AUTO_TEST_CASE(a_program_alone_is_a_text) {
  const command_folder in;
  BOOST_TEST(in.read("    command: sh\n").name() == "weather");
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_allowed_is_refused) {
  const command_folder in;
  BOOST_TEST(in.failure(file_with("    command: [rm, -rf, x]\n"))
             == "root_agent.yaml:5: the file wants to start the program 'rm'; "
                "allow it with --allow-command rm (in C++: "
                "agent_file_options::allowed_commands), or remove the tool");
  // A path is another program than one of its name in PATH.
  BOOST_TEST(
    in.failure(file_with("    command: [./sh]\n")).find("--allow-command sh")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fields_that_are_wrong_are_refused_with_a_reason) {
  const command_folder in;
  const std::string sh = "    command: [sh, -c, 'true']\n";
  const std::map<std::string, std::string> reasons = {
    {"    command: sh -c true\n", "'command' must be a list"},
    {"    command: []\n", "'command' must be a list"},
    {"    command:\n", "'command' must be a list"},
    {"    command: [sh, [a]]\n", "'command' must be a list of texts"},
    {sh + "    shell: true\n", "unknown field 'shell'"},
    {sh + "    args: [a]\n", "unknown field 'args'"},
    {sh + "    timeout: 0\n", "'timeout' must be a number of seconds"},
    {sh + "    calls_max: 0\n", "'calls_max' must be a whole number"},
    {sh + "    parameters: [a]\n", "'parameters' must be a mapping"},
    {sh + "    parameters: {type: text}\n", "not a schema of an object"},
    {"    command: [sh, '{city}']\n", "no property 'city'"},
    {sh + "    env: {LD_PRELOAD: ./x.so}\n",
     "allow it with --allow-env LD_PRELOAD"},
    {sh + "    env: {LEVEL: '${AWS_SECRET_ACCESS_KEY}'}\n",
     "allow it with --allow-env AWS_SECRET_ACCESS_KEY"},
    {sh + "    env: {LEVEL: '${LEVEL}'}\n", "LEVEL is not set"},
    {sh + "    env: {LEVEL: '${a b}'}\n", "is not ${NAME}"},
    {sh + "    pass_env: [HOME]\n", "allow it with --allow-env HOME"},
    {sh + "    pass_env: [LEVEL]\n", "needs the environment variable LEVEL"},
  };
  ::unsetenv("LEVEL");
  for (const auto& [lines, reason] : reasons) {
    const auto said = in.failure(file_with(lines));
    BOOST_TEST(said.find(reason) != std::string::npos, lines + said);
    BOOST_TEST(said.starts_with("root_agent.yaml:"), said);
  }
  BOOST_TEST(in.failure("name: a\nmodel: scripted:replies.json\ntools:\n"
                        "  - command: [sh]\n")
               .find("expected a field 'name'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(two_tools_of_one_name_are_refused) {
  const command_folder in;
  BOOST_TEST(in.failure(file_with("    command: [sh]\n"
                                  "  - name: weather\n"
                                  "    command: [sh]\n"))
             == "root_agent.yaml:6: the tool 'weather' comes twice");
}

BOOST_AUTO_TEST_SUITE_END()

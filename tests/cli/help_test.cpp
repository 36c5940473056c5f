// `--help`, the words that a command line does not understand, and
// `troupe init`.

#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(help, *boost::unit_test::timeout(120))

namespace {

// The lines of the example with which a help begins.
std::vector<std::string> example_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  BOOST_REQUIRE(std::getline(lines, line));
  BOOST_TEST(line == "Example:");
  std::vector<std::string> found;
  while (std::getline(lines, line) && !line.empty())
    found.push_back(line);
  BOOST_TEST(!found.empty());
  return found;
}

// Runs a line as a shell does in `folder`, where `troupe` is the program.
int run_line(const std::string& folder, const std::string& line) {
  const auto bin = std::filesystem::path(TROUPE_PROGRAM).parent_path().string();
  const auto command = "cd '" + folder + "' && PATH='" + bin + "':$PATH && "
                       + "{ " + line + "; } >/dev/null 2>errors";
  const auto status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same for a server, on a free port: it is ended when it is ready.
int run_server_line(const std::string& folder, std::string line) {
  const std::string port = "--port 8000";
  line.replace(line.find(port), port.size(), "--port 0");
  return run_line(folder,
                  line
                    + " > ready & "
                      "while [ ! -s ready ] && kill -0 $!; do :; done; "
                      "kill -TERM $!; wait $!; test $? = 143");
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream source(file);
  std::ostringstream text;
  text << source.rdbuf();
  return text.str();
}

} // namespace

BOOST_AUTO_TEST_CASE(every_help_begins_with_an_example_that_works) {
  const std::vector<std::vector<std::string>> commands{
    {},
    {"init"},
    {"run"},
    {"graph"},
    {"mcp"},
    {"experiment"},
    {"trace"},
    {"load"},
    {"load", "sweep"},
    {"load", "compare"},
    {"sessions"},
    {"sessions", "create"},
    {"sessions", "get"},
    {"sessions", "follow"},
    {"sessions", "list"},
    {"sessions", "append"},
    {"sessions", "delete"},
    {"sessions", "expire"},
    {"sessions", "trim"},
    {"sessions", "export"},
    {"sessions", "import"},
    {"apps"},
    {"apps", "list"},
    {"apps", "remove"},
    {"users"},
    {"users", "list"},
    {"users", "remove"},
    {"runs"},
    {"serve"},
    {"state"},
    {"state", "get"},
    {"state", "set"},
    {"state", "add"},
    {"state", "erase"},
    {"store"},
    {"store", "check"},
    {"store", "vacuum"},
  };
  for (auto command : commands) {
    command.emplace_back("--help");
    const auto shown = run_program(command);
    BOOST_TEST(shown.code == 0);
    const scratch_folder folder;
    for (const auto& line : example_of(shown.output)) {
      const bool serves = line.find(" serve ") != line.npos;
      const auto code = serves ? run_server_line(folder.path(), line)
                               : run_line(folder.path(), line);
      // A comparison of two short tests may find one of them slower.
      const bool compares = line.find("load compare") != line.npos;
      BOOST_TEST((code == 0 || (compares && code == 1)),
                 line << " ends with " << code << ": "
                      << text_of(folder.path() + "/errors"));
    }
  }
}

BOOST_AUTO_TEST_CASE(without_arguments_the_program_shows_where_to_start) {
  const auto shown = run_program({});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(shown.output == run_program({"--help"}).output);
}

BOOST_AUTO_TEST_CASE(unknown_words_are_told_in_order_with_what_is_near) {
  const auto errors = [](std::vector<std::string> arguments) {
    const auto ended = run_program(std::move(arguments));
    BOOST_TEST(ended.code == 2);
    return ended.errors;
  };
  BOOST_TEST(errors({"laod"})
             == "error: invalid_argument: unknown command 'laod', did you mean "
                "'load'? (see troupe --help)\n");
  BOOST_TEST(errors({"load", "--durabilty", "os", "--zzz=1", "--cllers", "3"})
             == "error: invalid_argument: unknown option '--durabilty', did "
                "you mean '--durability'?; unknown option '--zzz=1'; unknown "
                "option '--cllers', did you mean '--callers'? (see troupe load "
                "--help)\n");
  BOOST_TEST(errors({"sessions", "lst"})
             == "error: invalid_argument: unknown command 'lst', did you mean "
                "'list'? (see troupe sessions --help)\n");
  BOOST_TEST(errors({"sessions", "--store", "memory:", "list", "--app", "a"})
             == "error: invalid_argument: option '--store' must stand after "
                "'troupe sessions list' (see troupe sessions list "
                "--help)\n");
  BOOST_TEST(errors({"--store=memory:", "--strange", "store", "check"})
             == "error: invalid_argument: option '--store' must stand after "
                "'troupe store check'; unknown option '--strange' (see "
                "troupe store check --help)\n");
  BOOST_TEST(errors({"sessions", "get"})
             == "error: invalid_argument: --app is required (see troupe "
                "sessions get --help)\n");
}

BOOST_AUTO_TEST_CASE(init_makes_a_folder_once) {
  const scratch_folder folder;
  const auto path = folder.path() + "/desk";
  const auto made = run_program({"init", path});
  BOOST_TEST(made.code == 0);
  BOOST_TEST(made.output.find(path + "/build/desk run ") != made.output.npos);
  for (const auto* const file : {"root_agent.yaml",
                                 "script.json",
                                 "experiment.yaml",
                                 "main.cpp",
                                 "CMakeLists.txt",
                                 ".gitignore"}) {
    const auto text = text_of(std::filesystem::path(path) / file);
    BOOST_TEST(!text.empty());
    BOOST_TEST(text.find('@') == text.npos);
  }
  // A change of the user is not overwritten.
  folder.write("desk/main.cpp", "mine");
  const auto again = run_program({"init", path});
  BOOST_TEST(again.code == 1);
  BOOST_TEST(again.errors
             == "error: already_exists: " + path
                  + " exists already; name another folder\n");
  BOOST_TEST(text_of(path + "/main.cpp") == "mine");
  // Nothing else is left beside it.
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(folder.path()),
                           std::filesystem::directory_iterator())
             == 1);
}

BOOST_AUTO_TEST_CASE(init_refuses_what_is_no_name) {
  const scratch_folder folder;
  for (const auto* const name : {"3x", "a-b", "user", "a b", ".."})
    BOOST_TEST(run_program({"init", folder.path() + "/" + name}).code == 1);
  BOOST_TEST(std::filesystem::is_empty(folder.path()));
  BOOST_TEST(run_program({"init", folder.path() + "/none/desk"})
               .errors.find("No such file or directory")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

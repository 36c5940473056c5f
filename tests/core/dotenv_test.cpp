// The syntax of `.env` files, and the file that counts for an agent.

#include "troupe/core/dotenv.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>
#include <map>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(dotenv)

namespace {

using variables = std::map<std::string, std::string>;

result<std::optional<std::string>> nothing(const std::string&) {
  return std::optional<std::string>();
}

result<std::optional<std::string>> outside(const std::string& name) {
  if (name == "SECRET")
    return error(errc::invalid_argument, "SECRET is not for this file");
  return name == "HOME" ? std::optional<std::string>("/home/ann")
                        : std::nullopt;
}

std::string read_text(std::string_view text) {
  const auto read = read_dotenv(text, outside);
  return read ? to_text(json(*read)) : read.error().message();
}

struct dotenv_folder : temporary_folder {
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << text;
  }

  result<dotenv_file> find(const std::string& name,
                           const std::vector<std::string>& allowed = {}) const {
    return find_dotenv(path() / name, allowed);
  }
};

} // namespace

// Compared with python-dotenv 1.2.
BOOST_AUTO_TEST_CASE(the_syntax_is_that_of_python_dotenv) {
  const std::map<std::string, std::string> texts = {
    {"", "{}"},
    {"# a comment\n\n  \n", "{}"},
    {"A=b", R"({"A":"b"})"},
    {"\xEF\xBB\xBF"
     "A=b",
     R"({"A":"b"})"},
    {" A = b c \r\nB=2\rC=3", R"({"A":"b c","B":"2","C":"3"})"},
    {"export A=b\nexport\tB=1\nexported=2",
     R"({"A":"b","B":"1","exported":"2"})"},
    {"A=b # no\nB=c#yes\nC= # no\nD='x' # no\nE=#\n",
     R"({"A":"b","B":"c#yes","C":"","D":"x","E":"#"})"},
    {"A=\nB=''\nC=\"\"\nD\n", R"({"A":"","B":"","C":""})"},
    {R"(A='it\'s \n \\ "')", R"({"A":"it's \\n \\ \""})"},
    {R"(A="\"q\" \'s\' \n\t\\ \x")", R"({"A":"\"q\" 's' \n\t\\ \\x"})"},
    {"A=\"two\nlines\"\nB='x\ny'", R"({"A":"two\nlines","B":"x\ny"})"},
    {"'my key'=1", R"({"my key":"1"})"},
    {"A=1\nA=2\nB=1\nB\nexport # C", R"({"A":"2"})"},
    {"A=x\nB=${A}y${A}\nC='${A}'\nD=$A ${A",
     R"({"A":"x","B":"xyx","C":"x","D":"$A ${A"})"},
    {"A=${HOME}/a\nB=${NO}|${NO:-d e}|${HOME:-d}\nC=${NO:d}",
     R"({"A":"/home/ann/a","B":"|d e|/home/ann","C":"${NO:d}"})"},
    {"HOME=mine\nA=${HOME}", R"({"A":"mine","HOME":"mine"})"},
    {"A=url=x&y=#z", R"({"A":"url=x&y=#z"})"},
  };
  for (const auto& [text, expected] : texts)
    BOOST_TEST(read_text(text) == expected, text + "\n" + read_text(text));
}

BOOST_AUTO_TEST_CASE(a_wrong_line_is_an_error_with_its_number) {
  const std::map<std::string, std::string> texts = {
    {"A=1\nB C=2\n", "line 2: expected the end of the line"},
    {"\n\n=1", "line 3: expected NAME=value"},
    {"A='x\n\n", "line 1: a value in ' has no end"},
    {"A=\"x\\\"", "line 1: a value in \" has no end"},
    {"A=1\r\n'B=1", "line 2: a quoted name has no end"},
    {"A='1' 2", "line 1: expected the end of the line"},
    {"A=${SECRET}", "line 1: SECRET is not for this file"},
    {std::string("A=\0", 3), "line 1: a value cannot hold a NUL"},
  };
  for (const auto& [text, reason] : texts)
    BOOST_TEST(read_text(text).starts_with(reason), read_text(text));
}

BOOST_AUTO_TEST_CASE(values_that_grow_without_end_are_refused) {
  std::string text = "A0=" + std::string(1'000, 'x') + "\n";
  for (int n = 1; n < 40; ++n)
    text += "A" + std::to_string(n) + "=${A" + std::to_string(n - 1) + "}${A"
            + std::to_string(n - 1) + "}\n";
  BOOST_TEST(reason_of(read_dotenv(text, nothing)).find("more than 4 MiB")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_nearest_file_counts) {
  const dotenv_folder in;
  in.write("a/b/root_agent.yaml", "");
  in.write(".env", "A=above\n");
  auto found = in.find("a/b/root_agent.yaml").value();
  BOOST_TEST(found.file == in.path() / ".env");
  BOOST_TEST(!found.is_beside_agent);
  in.write("a/b/.env", "A=beside\n");
  for (const auto* name : {"a/b/root_agent.yaml", "a/b", "a/b/"}) {
    found = in.find(name).value();
    BOOST_TEST(found.is_beside_agent);
    BOOST_TEST((found.values == variables{{"A", "beside"}}));
  }
}

// A link in the folder of another person's agent could lead to any file.
BOOST_AUTO_TEST_CASE(a_link_is_not_beside_the_agent) {
  const dotenv_folder in;
  in.write("secrets/.env", "A=1\n");
  in.write("agent/root_agent.yaml", "");
  std::filesystem::create_symlink(in.path() / "secrets/.env",
                                  in.path() / "agent/.env");
  const auto found = in.find("agent").value();
  BOOST_TEST(!found.is_beside_agent);
  BOOST_TEST(found.values.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_file_beside_the_agent_reads_only_allowed_variables) {
  ::setenv("TROUPE_DOTENV_TEST", "secret", 1);
  const dotenv_folder in;
  in.write("a/.env", "B=${TROUPE_DOTENV_TEST}\n");
  BOOST_TEST(reason_of(in.find("a")).find("--allow-env TROUPE_DOTENV_TEST")
             != std::string::npos);
  BOOST_TEST(in.find("a", {"TROUPE_DOTENV_TEST"}).value().values.at("B")
             == "secret");
  // A folder above is the user's.
  std::filesystem::create_directory(in.path() / "a/agent");
  BOOST_TEST(in.find("a/agent").value().values.at("B") == "secret");
  ::unsetenv("TROUPE_DOTENV_TEST");
  BOOST_TEST(in.find("a").value().values.at("B").empty());
}

BOOST_AUTO_TEST_CASE(a_wrong_file_is_an_error_that_names_it) {
  const dotenv_folder in;
  in.write(".env", "A=1\nB C\n");
  const auto reason = reason_of(in.find("agent.yaml"));
  BOOST_TEST(reason.starts_with((in.path() / ".env").string() + ": line 2: "));
  BOOST_TEST(reason.find("--no-dotenv") != std::string::npos);
  in.write(".env", std::string((std::size_t{1} << 20U) + 1, '\n'));
  BOOST_TEST(code_of(in.find("agent.yaml")) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()

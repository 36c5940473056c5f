// The program with too little memory for its work.

#include "troupe/core/support/sanitized.hpp"

#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(memory_end, *boost::unit_test::timeout(300))

namespace {

constexpr int events = 40;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A session, and a file of events of a megabyte each.
class large_events {
public:
  large_events() {
    std::string lines;
    for (int number = 0; number < events; ++number)
      lines += fmt::format("{{\"id\": \"e{}\", \"author\": \"ann\", "
                           "\"content\": {{\"parts\": [{{\"text\": "
                           "\"{}\"}}]}}}}\n",
                           number,
                           std::string(900'000, 'x'));
    input_ = folder_.write("lines", lines);
  }

  // Appends them to a new session, with so much address space.
  ended append(int mebibytes) {
    session_ = fmt::format("s{}", mebibytes);
    BOOST_REQUIRE(run_program(arguments("create")).code == 0);
    auto command = fmt::format("ulimit -c 0; ulimit -v {}; exec '{}'",
                               mebibytes * 1'024,
                               TROUPE_PROGRAM);
    for (const auto& each : arguments("append"))
      command += fmt::format(" '{}'", each);
    command += fmt::format(
      " < '{}' > '{}' 2> '{}'", input_, path("output"), path("errors"));
    const int status = std::system(command.c_str());
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .output = read_file(path("output")),
            .errors = read_file(path("errors"))};
  }

  // Counts the events of the session; each is in one line.
  std::ptrdiff_t stored() const {
    const auto shown = run_program({"sessions",
                                    "export",
                                    "--store",
                                    "sqlite:" + path("s.db"),
                                    "--app",
                                    "a",
                                    "--user",
                                    "u",
                                    "--session",
                                    session_});
    BOOST_TEST(shown.code == 0);
    std::ptrdiff_t count = 0;
    for (auto at = shown.output.find("\"author\""); at != std::string::npos;
         at = shown.output.find("\"author\"", at + 1))
      ++count;
    return count;
  }

private:
  std::vector<std::string> arguments(const std::string& verb) const {
    return {"sessions",
            verb,
            "--store",
            "sqlite:" + path("s.db"),
            "--durability",
            "none",
            "--app",
            "a",
            "--user",
            "u",
            "--session",
            session_};
  }

  std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }

  scratch_folder folder_;
  std::string input_;
  std::string session_;
};

} // namespace

// With every limit the program ends with one line of reason, and all printed
// events are stored. A line of the store, whose file found no memory, may come
// before it.
BOOST_AUTO_TEST_CASE(too_little_memory_is_told_and_loses_nothing) {
  if (troupe::is_sanitized)
    return; // A sanitizer reserves more address space than any limit here.
  large_events on;
  int refused = 0;
  int failed = 0;
  int code = -1;
  for (int mebibytes = 64; code != 0 && mebibytes < 8'192;
       mebibytes += mebibytes / 8) {
    const auto seen = on.append(mebibytes);
    code = seen.code;
    const auto told = std::ranges::count(seen.output, '\n');
    BOOST_TEST_CONTEXT(mebibytes << " MiB: " << seen.errors) {
      BOOST_TEST((code == 0 || code == 1));
      const auto lines = std::ranges::count(seen.errors, '\n');
      BOOST_TEST((lines == code
                  || (code == 1 && lines == 2
                      && seen.errors.starts_with("error: store_failed: "))));
      BOOST_TEST((code == 0 || seen.errors.starts_with("error: ")));
      BOOST_TEST(told <= on.stored());
    }
    refused += seen.errors.find("too little to start") != std::string::npos;
    failed += seen.errors.find("out of memory") != std::string::npos;
  }
  BOOST_TEST(code == 0);
  BOOST_TEST(refused > 0);
  BOOST_TEST(failed > 0);
}

BOOST_AUTO_TEST_SUITE_END()

#include "troupe/agents/drawings/picture.hpp"

#include "troupe/core/processes/command_run.hpp"
#include "troupe/core/processes/inherited_variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

namespace troupe::drawings {

namespace fs = std::filesystem;

namespace {

constexpr auto program_name = "dot";
constexpr std::size_t picture_bytes_max = std::size_t{256} << 20U;

std::string variable(const char* name) {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* held = std::getenv(name);
  return held != nullptr ? held : "";
}

// Returns true if a folder of PATH has the program. An empty folder there is
// the working folder.
bool is_installed() {
  const auto folders = variable("PATH");
  for (std::size_t begin = 0; begin <= folders.size();) {
    const auto end = std::min(folders.find(':', begin), folders.size());
    const fs::path folder = folders.substr(begin, end - begin);
    const auto file = (folder.empty() ? "." : folder) / program_name;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0)
      return true;
    begin = end + 1;
  }
  return false;
}

processes::program program_of_pictures() {
  processes::program made{program_name, {"-Tsvg"}, {}, {}};
  for (const auto* name : processes::inherited_variables)
    if (const auto held = variable(name); !held.empty())
      made.environment.push_back(std::string(name) + '=' + held);
  return made;
}

} // namespace

result<std::string> to_svg(const std::string& graph, std::stop_token stop) {
  if (!is_installed())
    return error(errc::not_found,
                 "a picture needs the program 'dot' of Graphviz, which is not "
                 "in PATH: install it (package graphviz), or write the graph "
                 "with --format dot, which does not need it");
  std::promise<result<std::string>> promise;
  processes::command_run run(program_of_pictures(),
                             graph,
                             {.output_bytes_max = picture_bytes_max},
                             [&promise](result<std::string> outcome) {
                               promise.set_value(std::move(outcome));
                             });
  run.start();
  const std::stop_callback ended(stop, [&run] {
    run.stop({errc::cancelled, "the drawing was cancelled"});
  });
  return promise.get_future().get();
}

} // namespace troupe::drawings

// A folder with agent files, and the tools and models that they may name.

#pragma once

#include "troupe/agents/agent_file.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

inline tool make_tool(std::string name) {
  tool_options options;
  options.name = std::move(name);
  options.run = [](const json&, tool_context&) { return json(); };
  return tool(std::move(options));
}

// A folder of its own for each case.
struct folder {
  folder() {
    auto pattern = (fs::temp_directory_path() / "agent_file.XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    options.tools = make_registry({make_tool("count"), make_tool("measure")});
    write("replies.json", R"({"*": ["ok"]})");
  }

  ~folder() { fs::remove_all(path); }

  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
  }

  result<agent> load(const std::string& text,
                     const std::string& name = "root_agent.yaml") const {
    write(name, text);
    return load_agent_file(path / name, options);
  }

  // Returns the reason of the failure, without the folder.
  std::string failure(const std::string& text,
                      const std::string& name = "root_agent.yaml") const {
    const auto loaded = load(text, name);
    BOOST_REQUIRE(!loaded);
    BOOST_TEST(to_string(loaded.error().code()) == "invalid_argument");
    return without_folder(loaded.error().message());
  }

  std::string without_folder(std::string reason) const {
    const auto shown = path.string() + "/";
    for (auto at = reason.find(shown); at != std::string::npos;
         at = reason.find(shown))
      reason.erase(at, shown.size());
    return reason;
  }

  fs::path path;
  agent_file_options options;
};

} // namespace troupe

// `troupe sessions` on a SQLite store of its own, for the cases of one suite.

#pragma once

#include "troupe/core/event.hpp"

#include "program.hpp"

#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::testing {

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream source(text);
  for (std::string line; std::getline(source, line);)
    found.push_back(line);
  return found;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Returns the JSON objects of the lines of an output.
inline std::vector<json> objects(const std::string& text) {
  std::vector<json> found;
  for (const auto& line : lines(text))
    found.push_back(parse_json(line).value());
  return found;
}

/// Returns an event in wire form, with a text and a state delta.
inline std::string event_line(const std::string& text,
                              const json& delta = json::object(),
                              json more = json::object()) {
  more["author"] = "user";
  more["content"]["parts"] = json::array({{{"text", text}}});
  more["actions"]["stateDelta"] = delta;
  return to_text(more) + '\n';
}

struct stored_sessions : scratch_folder {
  using words = std::vector<std::string>;

  /// The key of a session, as options.
  const words s1{"--app", "press", "--user", "ann", "--session", "s1"};

  std::string store(const std::string& name = "troupe.db") const {
    return "sqlite:" + path() + "/" + name;
  }

  static words joined(words front, const words& back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
  }

  words command(const std::string& name,
                const words& options,
                const std::string& file = "troupe.db") const {
    return joined({"sessions", name, "--store", store(file)}, options);
  }

  ended run(const std::string& name,
            const words& options,
            std::string_view input = {},
            const std::string& file = "troupe.db") const {
    return run_program(command(name, options, file), input);
  }

  /// Returns the session that the subcommand prints.
  json show(const std::string& name,
            const words& options,
            std::string_view input = {}) const {
    return parse_json(run(name, options, input).output).value();
  }
};

} // namespace troupe::testing

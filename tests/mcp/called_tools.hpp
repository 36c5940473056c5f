// Calls the tools of a toolset as an agent does: a scripted model asks for
// them.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/toolset.hpp"
#include "troupe/mcp/mcp_tools.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The program of the tests' own server, and its arguments.
inline mcp_source small_server(std::vector<std::string> words = {}) {
  mcp_source made;
  made.command = TROUPE_SMALL_SERVER;
  made.args = std::move(words);
  return made;
}

/// Settings that do not wait for long.
inline mcp_options fast() {
  mcp_options made;
  made.restart_first = std::chrono::milliseconds(1);
  made.restart_longest = std::chrono::milliseconds(20);
  made.end_grace = std::chrono::milliseconds(200);
  return made;
}

inline std::vector<std::string> names_of(const tool_list& tools) {
  std::vector<std::string> names;
  for (const auto& each : *tools)
    names.push_back(each.name());
  return names;
}

/// A runtime with one agent that has the toolset.
class caller {
public:
  explicit caller(toolset_ptr set, std::chrono::milliseconds timeout = {})
    : set_(std::move(set)),
      on_(runtime::open().value()) {
    if (timeout.count() > 0)
      options_.tool_timeout = timeout;
    on_.sessions().create({"a", "u", "s"}).value();
  }

  /// Makes the calls in one turn. The responses are in the order of the calls.
  std::vector<function_response> call(std::vector<function_call> wanted) {
    script replies;
    replies["caller"] = {{.function_calls = wanted}, {.text = "done"}};
    const auto asking
      = llm({.name = "caller",
             .model = std::make_shared<scripted_model>(std::move(replies)),
             .toolsets = {set_},
             .after_tool = after_tool});
    user_message message("call");
    message.trace = trace_;
    auto running
      = on_.run(asking, {"a", "u", "s"}, std::move(message), options_);
    const auto ended = running.wait().get();
    BOOST_REQUIRE_MESSAGE(ended, reason_of(ended));
    std::vector<function_response> found;
    const auto seen = on_.sessions().get({"a", "u", "s"}).value();
    for (const auto& each : seen.events()) {
      std::vector<function_response> said;
      for (const auto& element : each->content.parts)
        if (const auto* response = element.response())
          said.push_back(*response);
      if (!said.empty())
        found = std::move(said);
    }
    BOOST_REQUIRE(found.size() == wanted.size());
    return found;
  }

  /// Makes one call and returns its response.
  json call(const std::string& name, json args = json::object()) {
    return call({function_call("", name, value(std::move(args)))})
      .front()
      .response.data();
  }

  runtime& on() noexcept { return on_; }

  /// The span that has caused the runs.
  trace_context& trace() noexcept { return trace_; }

  /// Callbacks of the agent after each call.
  std::vector<after_tool_callback> after_tool;

private:
  const toolset_ptr set_;
  runtime on_;
  run_options options_;
  trace_context trace_;
};

/// The text of the first block.
inline std::string text_in(const json& response) {
  return response.contains("content")
           ? response["content"][0].value("text", std::string())
           : to_text(response);
}

} // namespace troupe::testing

// Calls tools as an agent does: a scripted model asks for them.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// A runtime with one agent that has the tools. It has one thread for tools, so
/// a tool that blocks it is noticed.
class tool_caller {
public:
  explicit tool_caller(const tool& only) : tool_caller(std::vector{only}) {}

  explicit tool_caller(std::vector<tool> tools)
    : tools_(std::move(tools)),
      on_(runtime::open({.tool_threads = 1}).value()) {
    on_.sessions().create({"a", "u", "s"}).value();
  }

  /// Starts a run whose model makes the calls in one turn.
  run start(std::vector<function_call> wanted) {
    script replies;
    replies["caller"]
      = {{.function_calls = std::move(wanted)}, {.text = "done"}};
    const auto asking
      = llm({.name = "caller",
             .model = std::make_shared<scripted_model>(std::move(replies)),
             .tools = tools_});
    return on_.run(asking, {"a", "u", "s"}, user_text("call"));
  }

  /// Returns the results, in the order of the calls.
  std::vector<json> call_all(std::vector<function_call> wanted) {
    auto running = start(std::move(wanted));
    const auto ended = running.wait().get();
    BOOST_REQUIRE_MESSAGE(ended, reason_of(ended));
    std::vector<json> found;
    const auto seen = on_.sessions().get({"a", "u", "s"}).value();
    for (const auto& each : seen.events()) {
      std::vector<json> said;
      for (const auto& element : each->content.parts)
        if (const auto* response = element.response())
          said.push_back(response->response.data());
      if (!said.empty())
        found = std::move(said);
    }
    return found;
  }

  /// Makes one call and returns its result.
  json call(json args = json::object()) {
    auto found = call_all(
      {function_call("", tools_.front().name(), value(std::move(args)))});
    BOOST_REQUIRE(found.size() == 1U);
    return std::move(found.front());
  }

  /// The error that the model sees, or nothing.
  std::string failure(json args = json::object()) {
    return call(std::move(args)).value("error", std::string());
  }

private:
  const std::vector<tool> tools_;
  runtime on_;
};

} // namespace troupe::testing

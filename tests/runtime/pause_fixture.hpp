// Tools and agents that wait for the user, and a fixture for runs that pause.

#pragma once

#include "agent_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// A tool that starts work which ends elsewhere.
inline tool order() {
  return tool({.name = "order",
               .run = [](const json&, tool_context& context) -> json {
                 context.state().add("ordered", 1);
                 return nullptr;
               },
               .long_running = true});
}

/// A tool that pays after the user has confirmed; `paid` counts its calls.
inline tool pay(confirmation_rule rule = true) {
  return tool({.name = "pay",
               .run = [](const json& args, tool_context& context) -> json {
                 context.state().add("paid", 1);
                 return {{"paid", args.value("sum", 0)}};
               },
               .require_confirmation = std::move(rule)});
}

/// An agent with a model and tools.
inline agent
uses(const std::string& name, const model_ptr& model, std::vector<tool> tools) {
  return llm({.name = name, .model = model, .tools = std::move(tools)});
}

/// An agent that calls one tool and then says "done".
inline agent one_call(const std::string& name, const tool& called) {
  return uses(name,
              scripted({{name, {calling(called.name()), {.text = "done"}}}}),
              {called});
}

/// A fixture for runs that pause.
class pause_fixture : public agent_fixture {
public:
  using agent_fixture::agent_fixture;

  /// Runs to the end or the pause, and keeps the open calls.
  std::string go(const agent& root, content message = user_text("go")) {
    auto started = runtime.run(root, key, std::move(message));
    const auto line = follow(started);
    waits = started.waits_for();
    return line;
  }

  /// Answers the open call with this index.
  std::string
  answer(const agent& root, const json& with, std::size_t index = 0) {
    return go(root, replies({{waits.at(index), with}}));
  }

  /// Makes a message that answers calls by their ids.
  content replies(const std::vector<std::pair<std::string, json>>& all) {
    content message("user", {});
    for (const auto& [id, with] : all)
      message.parts.emplace_back(function_response{id, name_of(id), with});
    return message;
  }

  /// Returns the name of the call with this id.
  std::string name_of(const std::string& id) {
    for (const auto& said : events(key))
      for (const auto& element : said->content.parts)
        if (element.call() != nullptr && element.call()->id == id)
          return element.call()->name;
    return "order";
  }

  /// Makes a session without the newest event, as after a crash just before a
  /// pause.
  session_key cut_off() {
    const auto made = open("other");
    const auto known = events(key);
    for (std::size_t index = 0; index + 1 < known.size(); ++index)
      runtime.sessions().append_event(made, *known[index]).value();
    return made;
  }

  std::vector<std::string> waits;
};

inline const json yes{{"confirmed", true}};
inline const json no{{"confirmed", false}};

} // namespace troupe::testing

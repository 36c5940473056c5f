// Tools and agents that have to wait for the user, and a stage for runs that
// pause.

#pragma once

#include "play.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Starts work that ends elsewhere.
inline tool order() {
  return tool({.name = "order",
               .run = [](const json&, tool_context& context) -> json {
                 context.state().add("ordered", 1);
                 return nullptr;
               },
               .long_running = true});
}

/// Pays, if the user lets it; `paid` counts.
inline tool pay(confirmation_rule rule = true) {
  return tool({.name = "pay",
               .run = [](const json& args, tool_context& context) -> json {
                 context.state().add("paid", 1);
                 return {{"paid", args.value("sum", 0)}};
               },
               .require_confirmation = std::move(rule)});
}

/// Asks `model` and calls tools.
inline agent
uses(const std::string& name, const model_ptr& model, std::vector<tool> tools) {
  return llm({.name = name, .model = model, .tools = std::move(tools)});
}

/// An agent that calls one tool and then says what it got.
inline agent one_call(const std::string& name, const tool& called) {
  return uses(name,
              scripted({{name, {calling(called.name()), {.text = "done"}}}}),
              {called});
}

/// A stage for runs that pause.
class desk : public play {
public:
  using play::play;

  /// Runs and keeps what the run waits for.
  std::string go(const agent& root, content message = user_text("go")) {
    auto started = runtime.run(root, key, std::move(message));
    const auto line = follow(started);
    waits = started.waits_for();
    return line;
  }

  /// Answers the open call number `index`.
  std::string
  answer(const agent& root, const json& with, std::size_t index = 0) {
    return go(root, replies({{waits.at(index), with}}));
  }

  /// A message that answers calls by their ids.
  content replies(const std::vector<std::pair<std::string, json>>& all) {
    content message("user", {});
    for (const auto& [id, with] : all)
      message.parts.emplace_back(function_response{id, name_of(id), with});
    return message;
  }

  /// The name of the call with that id.
  std::string name_of(const std::string& id) {
    for (const auto& said : events(key))
      for (const auto& element : said.content.parts)
        if (element.call() != nullptr && element.call()->id == id)
          return element.call()->name;
    return "order";
  }

  /// A session with all but the newest event: as after a crash before a pause.
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

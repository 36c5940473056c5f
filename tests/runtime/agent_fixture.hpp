// Agents for a fixture, models that answer on request, and runs as one line of
// text.

#pragma once

#include "troupe/models/scripted_model.hpp"

#include "runtime_fixture.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// A model that keeps its replies until the test asks for them.
class held_model : public model {
public:
  std::string name() const override { return "held"; }

  void generate(model_request request, model_reply reply) override {
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(std::move(request));
      replies_.push_back(std::move(reply));
    }
    asked.add();
  }

  /// Answers all waiting requests.
  void answer(const std::string& said) {
    for (const auto& reply : take())
      reply(model_response(text("{}", said)));
  }

  /// Drops all waiting requests without an answer.
  void forget() { take(); }

  std::vector<model_request> requests() const {
    const std::lock_guard guard(mutex_);
    return requests_;
  }

  tally asked;

private:
  std::vector<model_reply> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(replies_, {});
  }

  mutable std::mutex mutex_;
  std::vector<model_request> requests_;
  std::vector<model_reply> replies_;
};

/// A model whose `generate` is a function of the test.
class made_model : public model {
public:
  explicit made_model(std::function<void(model_request, model_reply)> generate)
    : generate_(std::move(generate)) {}

  std::string name() const override { return "made"; }

  void generate(model_request request, model_reply reply) override {
    generate_(std::move(request), std::move(reply));
  }

private:
  std::function<void(model_request, model_reply)> generate_;
};

inline model_ptr scripted(script replies) {
  return std::make_shared<scripted_model>(std::move(replies));
}

/// A model that answers with its instruction.
inline model_ptr echo() {
  return scripted({{"*", {{.text = "${instruction}"}}}});
}

inline scripted_reply calling(const std::string& name,
                              json args = json::object()) {
  scripted_reply reply;
  reply.function_calls = {{"", name, std::move(args)}};
  return reply;
}

inline tool tool_of(std::string name, tool_function run) {
  return tool({.name = std::move(name), .run = std::move(run)});
}

/// An agent that says one thing.
inline agent says(const std::string& name, const std::string& words) {
  return custom(name, [words](invocation_context& context) -> agent_run {
    co_await context.emit(text("{}", words));
  });
}

/// An agent that says the value of a state key.
inline agent tells(const std::string& name, const std::string& key) {
  return custom(name, [key](invocation_context& context) -> agent_run {
    co_await context.emit(text("{}", text_of(context.state().find(key))));
  });
}

/// An agent that adds one to a state key and says the new value.
inline agent adds(const std::string& name, const std::string& key) {
  return custom(name, [key](invocation_context& context) -> agent_run {
    context.state().add(key, 1);
    co_await context.emit(text("{}", text_of(context.state().find(key))));
  });
}

/// An agent that asks a model.
inline agent asks(const std::string& name,
                  model_ptr model,
                  std::string instruction,
                  std::vector<tool> tools = {}) {
  return llm({.name = name,
              .model = std::move(model),
              .instruction = std::move(instruction),
              .tools = std::move(tools)});
}

inline agent
asks(const std::string& name, model_ptr model, std::vector<tool> tools = {}) {
  return asks(name, std::move(model), "", std::move(tools));
}

/// An agent that fails.
inline agent fails(const std::string& name) {
  return custom(name, [](invocation_context&) -> agent_run {
    throw std::runtime_error("broken");
    co_return;
  });
}

/// An agent that says something and escalates.
inline agent escalates(const std::string& name) {
  return custom(name, [](invocation_context& context) -> agent_run {
    context.actions().escalate = true;
    co_await context.emit(text("up"));
  });
}

/// The tools' responses in the events of a session.
inline json responses(runtime_fixture& on, const session_key& key) {
  auto all = json::array();
  for (const auto& said : on.events(key))
    for (const auto& each : said->content.parts)
      if (const auto* response = each.response())
        all.push_back(response->response.data());
  return all;
}

class agent_fixture : public runtime_fixture {
public:
  using runtime_fixture::runtime_fixture;

  /// Runs to the end: `"writer=a draft editor=fine
  ///
  /// ok"`.
  std::string perform(const agent& root,
                      run_options options = {},
                      json delta = json::object()) {
    return show(runtime.run(root, key, {"go", std::move(delta)}, options));
  }

  std::string say(const agent& root, user_message said) {
    return show(runtime.run(root, key, std::move(said)));
  }

  static std::string show(run started) { return follow(started); }

  static std::string follow(run& started) {
    std::string line;
    for (;;) {
      auto next = started.next().get();
      if (!next) {
        last_reason() = next.error().message();
        return line + "| " + code_of(next);
      }
      if (!*next)
        return line + "| ok";
      line += (*next)->author + "=" + (*next)->text() + " ";
    }
  }

  /// The reason of the last failed run that `show` or `follow` has seen.
  static std::string& last_reason() {
    static thread_local std::string reason;
    return reason;
  }

  json state_now() { return state(key); }

  const session_key key = open();
};

} // namespace troupe::testing

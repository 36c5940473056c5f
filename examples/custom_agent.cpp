// A custom agent: a coroutine that calls other agents, loops and waits.

#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace {

std::ptrdiff_t words(const std::string& text) {
  return text.empty() ? 0 : std::ranges::count(text, ' ') + 1;
}

// Asks for drafts until one is long enough. The waits in between hold no
// thread.
troupe::agent_function write_until(troupe::agent writer,
                                   std::ptrdiff_t words_min) {
  return
    [writer, words_min](troupe::invocation_context& ctx) -> troupe::agent_run {
      for (int round = 1;; ++round) {
        co_await ctx.run(writer);
        const auto draft = ctx.state().get<std::string>("draft");
        if (words(draft) >= words_min) {
          ctx.state().set("rounds", round);
          co_await ctx.emit(troupe::text("{} words, good", words(draft)));
          co_return;
        }
        co_await ctx.emit(troupe::text("{} words, again", words(draft)));
        co_await ctx.sleep(std::chrono::milliseconds(10));
      }
    };
}

} // namespace

int main() {
  try {
    const auto model = std::make_shared<troupe::scripted_model>(
      troupe::script{{"writer",
                      {{.text = "Owls."},
                       {.text = "Owls see well."}, //
                       {.text = "Owls see well in the dark."}}}});
    const auto writer = troupe::llm({.name = "writer",
                                     .model = model,
                                     .instruction = "Write about owls.",
                                     .output_key = "draft"});
    const auto agent
      = troupe::custom("patience", write_until(writer, 5), {writer});

    auto runtime = troupe::runtime::open().value();
    const auto session = runtime.sessions().create({"press", "ann"}).value();
    for (const auto& event : runtime.run(agent, session.key(), "Go!"))
      std::cout << event->author << ": " << event->text() << '\n';

    const auto fetched = runtime.sessions().get(session.key()).value();
    return fetched.state().get<int>("rounds") == 3 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}

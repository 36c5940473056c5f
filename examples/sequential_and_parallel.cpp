// A sequence with a fan-out: three critics read one draft concurrently, then an
// editor sums up.
//
// The scripted model answers with its instruction, so that the output shows the
// input of each agent.

#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <exception>
#include <iostream>
#include <memory>
#include <string>

int main() {
  try {
    const auto model = std::make_shared<troupe::scripted_model>(
      troupe::script{{"*",
                      {{.text = "${instruction}",
                        .latency = std::chrono::milliseconds(20)}}}});
    const auto critic
      = [&model](const std::string& name, const std::string& view) {
          return troupe::llm({.name = name,
                              .model = model,
                              .instruction = view + " of '{draft}'",
                              .output_key = name});
        };
    const auto writer = troupe::llm({.name = "writer",
                                     .model = model,
                                     .instruction = "A text on {topic}",
                                     .output_key = "draft"});
    const auto critics = troupe::parallel("critics",
                                          {critic("facts", "The facts"),
                                           critic("style", "The style"),
                                           critic("tone", "The tone")});
    const auto editor = troupe::llm({.name = "editor",
                                     .model = model,
                                     .instruction = "{facts}; {style}; {tone}",
                                     .output_key = "summary"});
    const auto pipeline
      = troupe::sequential("pipeline", {writer, critics, editor});

    auto runtime = troupe::runtime::open().value();
    const auto session = runtime.sessions()
                           .create({"press", "ann"}, {{"topic", "owls"}})
                           .value();
    for (const auto& event : runtime.run(pipeline, session.key(), "Go!"))
      std::cout << event->author << " on branch '" << event->branch
                << "': " << event->text() << '\n';

    const auto fetched = runtime.sessions().get(session.key()).value();
    return fetched.state().get<std::string>("summary")
               == "The facts of 'A text on owls'; The style of 'A text on "
                  "owls'; The tone of 'A text on owls'"
             ? 0
             : 1;
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}

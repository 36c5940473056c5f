#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <iostream>

troupe::agent_run measure(troupe::invocation_context& ctx) {
  ctx.state().add("app:drafts_read", 1); // The app adds, so no count is lost.
  const auto draft = ctx.state().get<std::string>("draft");
  co_await ctx.emit(troupe::text("'{}' has {} bytes", draft, draft.size()));
}

int main() {
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"writer", {{.text = "${instruction}, in short."}}}});
  const auto writer = troupe::llm({.name = "writer",
                                   .model = model,
                                   .instruction = "A text on {topic}",
                                   .output_key = "draft"});
  const auto critics = troupe::parallel(
    "critics",
    {troupe::custom("facts", measure), troupe::custom("style", measure)});
  const auto press = troupe::sequential("press", {writer, critics});

  auto runtime = troupe::runtime::open({.store = "sqlite:press.db"}).value();
  const auto session
    = runtime.sessions().create({"press", "ann"}, {{"topic", "owls"}}).value();
  for (const auto& event : runtime.run(press, session.key(), "Go!"))
    std::cout << event->author << ": " << event->text() << '\n';
  std::cout << runtime.sessions().app_state("press").value() << '\n';
}

// A dialogue with a workflow whose nodes ask: agent files have no functions.

#include "troupe/agents/workflow.hpp"
#include "troupe/cli/talk/dialogue.hpp"

#include <memory>

namespace {

troupe::agent make_form() {
  using namespace troupe;
  auto name = json::object();
  name["name"]["type"] = "string";
  name["age"]["type"] = "integer";
  auto person = json::object();
  person["type"] = "object";
  person["properties"] = name;
  person["required"] = json::array({"name", "age"});
  const json_schema number(json{{"type", "integer"}, {"minimum", 1}});
  return workflow(
    {.name = "form",
     .nodes = {{.name = "ask",
                .work =
                  [number, whole = json_schema(person)](node_context& context) {
                    auto all = json::array();
                    all.push_back(context.ask("How many?", number, "boxes"));
                    all.push_back(context.ask("What colour?"));
                    all.push_back(context.ask("Who are you?", whole));
                    context.state().set("answers", all);
                  }}},
     .edges = {{"START", "ask"}}});
}

} // namespace

int main() {
  using namespace troupe;
  cli::interrupts signals;
  const auto root = make_form();
  signals.begin();
  auto owners = runtime::open().value();
  const auto key = owners.sessions().create({"form", "ann", "s"}).value().key();
  cli::conversation::settings how;
  how.agents = std::make_shared<cli::running_agents>();
  how.cost = std::make_shared<cli::run_cost>(nullptr);
  const auto retries = std::make_shared<cli::retry_notices>();
  return cli::dialogue(owners, root, key, how, retries, signals).talk() ? 0 : 1;
}

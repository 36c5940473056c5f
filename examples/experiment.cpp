// An experiment with a tool of the program's own: is a review faster when its
// lanes search concurrently, and is the result the same?

#include "troupe/agents/function_tool.hpp"
#include "troupe/load/experiment_report.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

namespace {

struct search_query {
  std::string words;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("words", &search_query::words, "What to look for"));
};

std::string search(const search_query& query, troupe::tool_context&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(10)); // A slow archive.
  return "all about " + query.words;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

} // namespace

int main() {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path()
                      / ("troupe-experiment-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string turns = R"([
    {"function_calls": [{"name": "search", "args": {"words": "owls"}}]},
    {"text": "Owls are fine.", "latency_ms": 20}])";
  write(folder / "replies.json",
        R"({"facts": )" + turns + R"(, "style": )" + turns + R"(, "tone": )"
          + turns + "}");
  write(folder / "agents.yaml", R"(
agent_class: ParallelAgent
name: reviews
sub_agents:
- {name: facts, model: "scripted:replies.json", tools: [search]}
- {name: style, model: "scripted:replies.json", tools: [search]}
- {name: tone, model: "scripted:replies.json", tools: [search]}
)");
  write(folder / "lanes.yaml", R"(
agent: agents.yaml
inputs: [Review the page about owls.]
variants:
  at_once:
  in_turn: {agents: {reviews: {lanes_max: 1}}}
)");

  const auto planned
    = troupe::load::read_experiment(folder / "lanes.yaml").value();
  troupe::agent_file_options own;
  own.tools = troupe::make_registry(
    {troupe::function_tool({.name = "search"}, search)});
  const auto made
    = troupe::load::run_experiment(planned, {}, own, {}, {}).value();
  std::cout << to_text(made);
  fs::remove_all(folder);

  for (const auto& each : summarize(made))
    if (!each.failed.empty() || each.agreement != 1)
      return 1;
}

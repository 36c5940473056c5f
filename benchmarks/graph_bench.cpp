#include "graph_bench.hpp"

#include "troupe/agents/workflow.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace bench {

namespace {

constexpr std::size_t chain_length = 1'000;
constexpr std::size_t fan_width = 10'000;

troupe::workflow_node numbered(std::size_t index) {
  return {.name = fmt::format("n{}", index),
          .work = troupe::node_function(
            [index](troupe::node_context&) { return troupe::json(index); })};
}

troupe::agent chain() {
  troupe::workflow_options options{.name = "chain"};
  for (std::size_t index = 0; index < chain_length; ++index) {
    options.nodes.push_back(numbered(index));
    options.edges.push_back(
      {index == 0 ? "START" : fmt::format("n{}", index - 1),
       fmt::format("n{}", index)});
  }
  return troupe::workflow(std::move(options));
}

troupe::agent fan() {
  troupe::workflow_options options{.name = "fan"};
  for (std::size_t index = 0; index < fan_width; ++index) {
    options.nodes.push_back(numbered(index));
    options.edges.push_back({"START", fmt::format("n{}", index)});
    options.edges.push_back({fmt::format("n{}", index), "all"});
  }
  options.nodes.push_back({.name = "all", .work = troupe::join()});
  return troupe::workflow(std::move(options));
}

// `runs` runs at once, each on a session of its own. An operation is a node.
round_result run_at_once(const troupe::agent& root,
                         const std::string& store,
                         std::size_t runs,
                         std::size_t nodes) {
  troupe::runtime_options options;
  options.threads = 2;
  options.store = store;
  auto runtime = troupe::runtime::open(options).value();
  std::vector<troupe::session_key> keys;
  for (std::size_t index = 0; index < runs; ++index)
    keys.push_back(runtime.sessions()
                     .create({"app", fmt::format("user-{}", index), "session"})
                     .value()
                     .key());
  const stopwatch watch;
  std::vector<troupe::run> started;
  started.reserve(runs);
  for (const auto& key : keys)
    started.push_back(runtime.run(root, key, "go"));
  for (auto& each : started)
    each.wait().get().value();
  round_result made{watch.seconds(), watch.cpu_seconds(), nodes * runs, {}};
  static_cast<void>(runtime.shut_down());
  return made;
}

void print_graph(const char* what,
                 std::size_t rounds,
                 const troupe::agent& root,
                 const std::string& store,
                 std::size_t runs,
                 std::size_t nodes) {
  const auto made = alternate(rounds, {[&] {
                                const std::string scheme = "sqlite:";
                                if (store.starts_with(scheme))
                                  for (const auto* end : {"", "-wal", "-shm"})
                                    std::filesystem::remove(
                                      store.substr(scheme.size()) + end);
                                return run_at_once(root, store, runs, nodes);
                              }});
  fmt::print("{:<44} {:>3} at a time: {:>7.2f} us wall per node, {:>7.2f} us "
             "CPU\n",
             what,
             runs,
             1e6 / made[0].rate,
             made[0].cpu);
  std::fflush(stdout);
}

} // namespace

void run_graphs(std::size_t rounds) {
  fmt::print("\nworkflows\n");
  const auto file
    = (std::filesystem::temp_directory_path() / "graph_bench.db").string();
  const auto line = chain();
  print_graph("chain of 1,000 nodes", rounds, line, "memory:", 1, chain_length);
  print_graph("chain of 1,000 nodes", rounds, line, "memory:", 8, chain_length);
  print_graph("chain of 1,000 nodes, SQLite",
              rounds,
              line,
              "sqlite:" + file,
              1,
              chain_length);
  print_graph("chain of 1,000 nodes, SQLite",
              rounds,
              line,
              "sqlite:" + file,
              64,
              chain_length);
  print_graph(
    "fan-out and join of 10,000 nodes", rounds, fan(), "memory:", 1, fan_width);
}

} // namespace bench

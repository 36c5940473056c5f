#include "graph_bench.hpp"

#include "troupe/agents/workflow.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>

namespace bench {

namespace {

constexpr std::size_t chain_length = 1'000;
constexpr std::size_t fan_width = 10'000;

namespace fs = std::filesystem;

fs::path file_of_graphs() {
  return fs::temp_directory_path() / "graph_bench.db";
}

std::string new_store() {
  for (const auto* end : {"", "-wal", "-shm"})
    fs::remove(file_of_graphs().string() + end);
  return "sqlite:" + file_of_graphs().string();
}

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

// A fan-out to nodes that all lead to a join.
troupe::workflow_options fan() {
  troupe::workflow_options options{.name = "fan"};
  for (std::size_t index = 0; index < fan_width; ++index) {
    options.nodes.push_back(numbered(index));
    options.edges.push_back({"START", fmt::format("n{}", index)});
    options.edges.push_back({fmt::format("n{}", index), "all"});
  }
  options.nodes.push_back({.name = "all", .work = troupe::join()});
  return options;
}

// A tool that waits until it is released or asked to stop.
struct gate {
  void pass(const std::stop_token& stop) {
    std::unique_lock guard(mutex);
    begun = true;
    changed.notify_all();
    changed.wait(guard, stop, [this] { return is_open; });
  }

  void await() {
    std::unique_lock guard(mutex);
    changed.wait(guard, [this] { return begun; });
  }

  void open() {
    const std::lock_guard guard(mutex);
    is_open = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  bool begun = false;
  bool is_open = false;
};

troupe::tool held_tool(std::shared_ptr<gate> held) {
  return troupe::tool(
    {.name = "held",
     .description = "Waits.",
     .run = [held = std::move(held)](const troupe::json&,
                                     troupe::tool_context& context) {
       held->pass(context.stop());
       return troupe::json("passed");
     }});
}

// A fan-out whose end waits in a tool.
troupe::agent held_at_end(const std::shared_ptr<gate>& held) {
  auto options = fan();
  options.nodes.push_back(
    {.name = "arguments",
     .work = [](troupe::node_context&) { return troupe::json::object(); }});
  options.nodes.push_back({.name = "last", .work = held_tool(held)});
  options.edges.push_back({"all", "arguments"});
  options.edges.push_back({"arguments", "last"});
  return troupe::workflow(std::move(options));
}

// Nodes that wait for the only lane, behind one that is held.
troupe::agent held_at_start(const std::shared_ptr<gate>& held) {
  troupe::workflow_options options{.name = "turns", .lanes_max = 1};
  options.nodes.push_back(
    {.name = "arguments",
     .work = [](troupe::node_context&) { return troupe::json::object(); }});
  options.nodes.push_back({.name = "first", .work = held_tool(held)});
  options.edges.push_back({"START", "arguments"});
  options.edges.push_back({"arguments", "first"});
  for (std::size_t index = 0; index < fan_width; ++index) {
    options.nodes.push_back(numbered(index));
    options.edges.push_back({"arguments", fmt::format("n{}", index)});
  }
  return troupe::workflow(std::move(options));
}

troupe::runtime open_runtime(const std::string& store) {
  troupe::runtime_options options;
  options.threads = 2;
  options.store = store;
  return troupe::runtime::open(options).value();
}

const troupe::session_key& first_session() {
  static const troupe::session_key key{"app", "user", "session"};
  return key;
}

// Recovers a run all of whose nodes but the last one have ended.
round_result recover_once(const std::string& store) {
  const auto held = std::make_shared<gate>();
  std::string id;
  {
    auto runtime = open_runtime(store);
    runtime.sessions().create(first_session()).value();
    auto cut = runtime.run(held_at_end(held), first_session(), "go");
    id = cut.invocation_id();
    held->await();
    runtime.shut_down().value();
  }
  held->open();
  const auto whole = held_at_end(held);
  auto runtime = open_runtime(store);
  const stopwatch watch;
  auto recovered = runtime.recover(whole, first_session(), id);
  recovered.wait().get().value();
  round_result made{watch.seconds(), watch.cpu_seconds(), 1, {}};
  runtime.shut_down().value();
  return made;
}

// Bytes of resident memory that a waiting node adds.
double waiting_bytes() {
  const auto held = std::make_shared<gate>();
  const auto turns = held_at_start(held);
  auto runtime = open_runtime("memory:");
  runtime.sessions().create(first_session()).value();
  const auto before = resident_bytes();
  auto waits = runtime.run(turns, first_session(), "go");
  held->await();
  const auto now = std::max(resident_bytes(), before);
  held->open();
  waits.wait().get().value();
  runtime.shut_down().value();
  return static_cast<double>(now - before) / static_cast<double>(fan_width);
}

// `runs` runs at once, each on a session of its own. An operation is a node.
round_result run_at_once(const troupe::agent& root,
                         const std::string& store,
                         std::size_t runs,
                         std::size_t nodes) {
  auto runtime = open_runtime(store);
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
                 bool stores,
                 std::size_t runs,
                 std::size_t nodes) {
  const auto synced = stores ? fdatasync_rate(file_of_graphs()) : 0;
  const auto made = alternate(
    rounds, {[&] {
      return run_at_once(root, stores ? new_store() : "memory:", runs, nodes);
    }});
  fmt::print(
    "{:<44} {:>3} at a time: {:>7.2f} us wall per node, {:>7.2f} us "
    "CPU{}\n",
    what,
    runs,
    1e6 / made[0].rate,
    made[0].cpu,
    stores ? fmt::format("; an fdatasync takes {:.0f} us", 1e6 / synced) : "");
  std::fflush(stdout);
}

} // namespace

void run_graphs(std::size_t rounds) {
  fmt::print("\nworkflows\n");
  const auto line = chain();
  print_graph("chain of 1,000 nodes", rounds, line, false, 1, chain_length);
  print_graph("chain of 1,000 nodes", rounds, line, false, 8, chain_length);
  print_graph(
    "chain of 1,000 nodes, SQLite", rounds, line, true, 1, chain_length);
  print_graph(
    "chain of 1,000 nodes, SQLite", rounds, line, true, 64, chain_length);
  print_graph("fan-out and join of 10,000 nodes",
              rounds,
              troupe::workflow(fan()),
              false,
              1,
              fan_width);
  fmt::print("a node that waits for its turn: {:.0f} bytes of memory\n",
             waiting_bytes());
  const auto recovered
    = alternate(rounds, {[] { return recover_once(new_store()); }});
  fmt::print("recovery of a run with 10,000 ended nodes, SQLite: {:.0f} ms "
             "until its end, {:.0f} ms CPU\n",
             1e3 / recovered[0].rate,
             recovered[0].cpu / 1e3);
  std::fflush(stdout);
}

} // namespace bench

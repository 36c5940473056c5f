#include "run_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>

#include <atomic>
#include <latch>

namespace bench {

namespace {

troupe::agent_run say_one(troupe::invocation_context& context) {
  co_await context.emit(troupe::text("done"));
}

std::vector<troupe::agent> workers(std::size_t count) {
  std::vector<troupe::agent> made;
  for (std::size_t index = 0; index < count; ++index)
    made.push_back(troupe::custom(fmt::format("worker_{}", index), say_one));
  return made;
}

troupe::task<> run_until(troupe::runtime& runtime,
                         const troupe::agent& root,
                         troupe::session_key key,
                         std::atomic<bool>& stop,
                         std::vector<std::uint32_t>& latencies) {
  while (!stop.load(std::memory_order_relaxed)) {
    const auto before = clock::now();
    auto run = runtime.run(root, key, "go");
    const auto ended = co_await run.wait();
    ended.value();
    latencies.push_back(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now()
                                                           - before)
        .count()));
  }
}

// `callers` closed loops of runs, each on a session of its own, for `seconds`.
round_result
run_closed(const troupe::agent& root, std::size_t callers, double seconds) {
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  std::vector<std::vector<std::uint32_t>> latencies(callers);
  std::atomic<bool> stop{false};
  std::latch ended(static_cast<std::ptrdiff_t>(callers));
  const stopwatch watch;
  for (std::size_t index = 0; index < callers; ++index) {
    auto session = runtime.sessions()
                     .create({"app", fmt::format("user-{}", index), "session"})
                     .value();
    troupe::start(
      run_until(runtime, root, session.key(), stop, latencies[index]),
      [&ended](std::exception_ptr failure) {
        if (failure)
          std::terminate();
        ended.count_down();
      });
  }
  while (watch.seconds() < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop = true;
  ended.wait();
  round_result made{watch.seconds(), watch.cpu_seconds(), 0, {}};
  for (auto& each : latencies) {
    made.operations += each.size();
    made.latencies.insert(made.latencies.end(), each.begin(), each.end());
  }
  return made;
}

void print_runs(const char* what,
                std::size_t rounds,
                const troupe::agent& root) {
  for (const std::size_t callers : {1, 64}) {
    const auto made
      = alternate(rounds, {[&] { return run_closed(root, callers, 0.5); }});
    fmt::print(
      "{:<44} {:>3} at a time: {:>7.2f} us wall per invocation, {:>7.2f} "
      "us CPU, p50 {:.1f} us, p99.9 {:.1f} us\n",
      what,
      callers,
      1e6 / made[0].rate,
      made[0].cpu,
      made[0].p50,
      made[0].p999);
    std::fflush(stdout);
  }
}

} // namespace

void run_sequence(std::size_t rounds) {
  print_runs("sequence of three agents, one event each",
             rounds,
             troupe::sequential("sequence", workers(3)));
}

void run_parallel(std::size_t rounds) {
  print_runs("parallel of five agents, one event each",
             rounds,
             troupe::parallel("lanes", workers(5)));
}

// Calls a tool once, and answers when it has the result. Takes no time.
class instant_model : public troupe::model {
public:
  std::string name() const override { return "instant"; }

  void generate(troupe::model_request request,
                troupe::model_reply reply) override {
    const auto& last = *request.contents.back();
    const bool is_answered = last.parts.front().response() != nullptr;
    reply(troupe::model_response(
      troupe::content("model",
                      {is_answered ? troupe::part("done")
                                   : troupe::part(troupe::function_call{
                                     "", "count", troupe::json{{"n", 1}}})})));
  }
};

void run_turns(std::size_t rounds) {
  const troupe::tool count(
    {.name = "count",
     .parameters = troupe::json::parse(
       R"({"type": "object", "properties": {"n": {"type": "integer"}}})"),
     .run = [](const troupe::json& args,
               troupe::tool_context& context) -> troupe::json {
       context.state().add("n", args.at("n"));
       return 1;
     }});
  // History is left out, since it grows with each run.
  print_runs("LLM agent, a tool call and an answer (2 turns)",
             rounds,
             troupe::llm({.name = "agent",
                          .model = std::make_shared<instant_model>(),
                          .tools = {count},
                          .include_contents = troupe::include_contents::none}));
}

void run_many_models(std::size_t rounds) {
  constexpr std::chrono::milliseconds latency{100};
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"*", {{.text = "done", .latency = latency}}}});
  std::vector<troupe::agent> asking;
  for (std::size_t index = 0; index < 10'000; ++index)
    asking.push_back(
      troupe::llm({.name = fmt::format("agent_{}", index), .model = model}));
  const auto root = troupe::parallel("lanes", asking);
  std::vector<double> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    auto runtime = troupe::runtime::open({.threads = 2}).value();
    const auto session = runtime.sessions().create({"app", "user"}).value();
    const stopwatch watch;
    runtime.run(root, session.key(), "go", {.model_calls_max = 20'000})
      .wait()
      .value();
    times.push_back(watch.seconds() * 1e3 - 100);
  }
  fmt::print("{:<44} {:>7.1f} ms beyond the 100 of the model\n",
             "10,000 agents at once, a model of 100 ms",
             median(times));
  std::fflush(stdout);
}

namespace {

// Answers "done" at once.
class done_model : public troupe::model {
public:
  std::string name() const override { return "done"; }

  void generate(troupe::model_request, troupe::model_reply reply) override {
    reply(troupe::model_response(troupe::text("done")));
  }
};

// Microseconds per model turn of an agent in a lane that sees `visible` events
// of its own among `others` of its neighbour.
double turn_with_history(std::size_t visible, std::size_t others) {
  constexpr std::size_t turns = 200;
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  const auto key = runtime.sessions().create({"app", "user"}).value().key();
  for (std::size_t index = 0; index < visible + others; ++index) {
    troupe::event said(troupe::text("event {}", index));
    // The own events are spread evenly.
    const bool is_own = (index + 1) * visible / (visible + others)
                        != index * visible / (visible + others);
    said.author = is_own ? "agent" : "neighbour";
    said.branch = is_own ? "lanes.again" : "lanes.other";
    runtime.sessions().append_event(key, std::move(said)).value();
  }
  const auto agent
    = troupe::llm({.name = "agent", .model = std::make_shared<done_model>()});
  const auto root = troupe::parallel(
    "lanes",
    {troupe::loop({.name = "again", .max_iterations = turns}, {agent})});
  const stopwatch watch;
  runtime.run(root, key, "go", {.model_calls_max = turns}).wait().value();
  return watch.seconds() * 1e6 / turns;
}

} // namespace

void run_history(std::size_t rounds) {
  std::vector<double> few;
  std::vector<double> among;
  std::vector<double> many;
  for (std::size_t round = 0; round < rounds; ++round) {
    few.push_back(turn_with_history(100, 0));
    among.push_back(turn_with_history(100, 9'900));
    many.push_back(turn_with_history(10'000, 0));
  }
  fmt::print("{:<44} {:>7.1f} us; 100 among 10,000: {:.1f} us; 10,000 visible: "
             "{:.1f} us\n",
             "model turn, 100 events in the history",
             median(few),
             median(among),
             median(many));
  std::fflush(stdout);
}

void run_many_lanes(std::size_t rounds) {
  const auto root = troupe::parallel("lanes", workers(10'000));
  std::vector<double> costs;
  for (std::size_t round = 0; round < rounds; ++round) {
    auto runtime = troupe::runtime::open({.threads = 2}).value();
    const auto session = runtime.sessions().create({"app", "user"}).value();
    const stopwatch watch;
    runtime.run(root, session.key(), "go").wait().value();
    costs.push_back(watch.seconds() * 1e6 / 10'000);
  }
  fmt::print("{:<44} {:>7.2f} us wall per lane\n",
             "parallel of 10,000 agents, one event each",
             median(costs));
  std::fflush(stdout);
}

void get_recent(std::size_t rounds) {
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  const auto key
    = runtime.sessions().create({"app", "user", "session"}).value().key();
  constexpr std::size_t events = 100'000;
  std::latch appended(events);
  for (std::size_t index = 0; index < events; ++index) {
    troupe::event said(troupe::text("event {}", index));
    said.author = "worker";
    while (true) {
      std::latch full(1);
      bool busy = false;
      runtime.sessions().append_event(key, said).then(
        [&](troupe::result<troupe::event_ptr> stored) {
          busy = !stored && stored.error().code() == troupe::errc::busy;
          if (!busy)
            appended.count_down();
          full.count_down();
        });
      full.wait();
      if (!busy)
        break;
    }
  }
  appended.wait();
  std::vector<double> walls;
  std::vector<double> cpus;
  for (std::size_t round = 0; round < rounds; ++round) {
    constexpr std::size_t gets = 20'000;
    std::size_t seen = 0;
    std::latch ended(1);
    const stopwatch watch;
    troupe::start(
      [](troupe::runtime& on,
         const troupe::session_key& of,
         std::size_t& counted) -> troupe::task<> {
        for (std::size_t index = 0; index < gets; ++index) {
          auto fetched
            = co_await on.sessions().get(of, {.num_recent_events = 50});
          for (const auto& said : fetched.value().events())
            counted += said->content.parts.size();
        }
      }(runtime, key, seen),
      [&ended](std::exception_ptr) { ended.count_down(); });
    ended.wait();
    if (seen != gets * 50)
      std::terminate();
    walls.push_back(watch.seconds() * 1e6 / gets);
    cpus.push_back(watch.cpu_seconds() * 1e6 / gets);
  }
  fmt::print("{:<44} {:>7.2f} us wall, {:>7.2f} us CPU, one at a time, all 50 "
             "read\n",
             "get of the last 50 of 100,000 events",
             median(walls),
             median(cpus));
  std::fflush(stdout);
}

void idle_sessions() {
  constexpr std::size_t count = 100'000;
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  const auto create = [&](std::size_t first, std::size_t last) {
    std::latch created(static_cast<std::ptrdiff_t>(last - first));
    for (auto index = first; index < last; ++index)
      runtime.sessions()
        .create({"app", fmt::format("user-{}", index / 100)})
        .then([&created](troupe::result<troupe::session> made) {
          made.value();
          created.count_down();
        });
    created.wait();
  };
  create(0, 1'000); // The cost of the first session is not counted.
  const auto before = resident_bytes();
  // In waves, so that the memory of many concurrent creations is not counted.
  for (std::size_t first = 1'000; first < count; first += 1'000)
    create(first, first + 1'000);
  fmt::print("{:<44} {:>7} bytes each, {} open, 100 per user, no history\n",
             "idle session",
             (resident_bytes() - before) / (count - 1'000),
             count);
  std::fflush(stdout);
}

} // namespace bench

// Runs with every feature of agents, cancelled at random moments, thousands of
// times. Each run ends, no part of it continues, and its session stays valid.

#include "troupe/actors/backend.hpp"
#include "troupe/agents/agent_tool.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/artifact_store.hpp"

#include "../random.hpp"
#include "agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(cancel_storm, *boost::unit_test::timeout(600))

namespace {

std::size_t count_in(const char* folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Waits for simulated or real time in a coroutine that is no agent.
class pause_of {
public:
  pause_of(std::shared_ptr<environment> time, std::chrono::nanoseconds length)
    : time_(std::move(time)),
      length_(length) {}

  bool await_ready() const { return false; }

  void await_suspend(std::coroutine_handle<> waiting) const {
    time_->call_after(length_, [waiting] { waiting.resume(); });
  }

  void await_resume() const {}

private:
  std::shared_ptr<environment> time_;
  std::chrono::nanoseconds length_;
};

/// Checks that every call in a request is directly followed by its responses.
bool is_sound(const model_request& request) {
  for (std::size_t index = 0; index < request.contents.size(); ++index) {
    std::vector<std::string> open;
    for (const auto& element : request.contents[index]->parts)
      if (element.call() != nullptr)
        open.push_back(element.call()->id);
    if (open.empty())
      continue;
    if (index + 1 == request.contents.size())
      return false;
    std::vector<std::string> answered;
    for (const auto& element : request.contents[index + 1]->parts)
      if (element.response() != nullptr)
        answered.push_back(element.response()->id);
    if (open != answered)
      return false;
  }
  return true;
}

/// Returns the keys without a prefix.
json of_session(const json& all) {
  auto own = json::object();
  for (const auto& [name, held] : all.items())
    if (split_key(name).where == scope::session)
      own[name] = held;
  return own;
}

/// All features at once; every part counts steps at which it can be cancelled.
class storm : public runtime_fixture {
public:
  storm() : course_(make_course()) {}

  /// Cancels the run after so many steps: on the thread of the last step, or on
  /// this one. Returns the code of the run.
  std::string perform(int until, bool from_inside) {
    steps_ = 0;
    std::atomic<bool> is_set = false;
    std::optional<run> started;
    cancel_ = [&] {
      is_set.wait(false);
      started->cancel();
    };
    inside_at_ = from_inside ? until : 0;
    started.emplace(runtime.run(course_, key, "go"));
    const auto has_ended = std::make_shared<std::atomic<bool>>(false);
    started->wait().then(
      [has_ended](const result<void>&) { *has_ended = true; });
    is_set = true;
    is_set.notify_all();
    if (!from_inside) {
      while (steps_ < until && !*has_ended)
        std::this_thread::yield();
      started->cancel();
    }
    const auto code = code_of(started->wait().get());
    // No part of the run continues after its end.
    inside_at_ = 0;
    const auto after = steps_.load();
    BOOST_TEST(inside_ == 0);
    // The next run takes one step.
    auto next = runtime.run(asks("checks", model_), key, "next");
    BOOST_TEST(code_of(next.wait().get()) == "ok");
    BOOST_TEST(steps_ == after + 1);
    return code;
  }

  void renew_session() {
    sessions().remove(key).value();
    runtime.artifacts()->remove_user("press", "ann").value();
    key = open();
  }

  /// Number of actors that have not ended.
  std::size_t actors() const {
    return detail::backend_of(runtime)->shared().system.registry().running();
  }

  std::atomic<bool> is_broken = false;
  session_key key = open();

private:
  void step(int work = 0) {
    const auto now = ++steps_;
    if (now == inside_at_)
      cancel_();
    for (int spin = 0; spin < work; ++spin)
      std::this_thread::yield();
  }

  agent make_course() {
    const auto time = runtime.environment();
    model_ = std::make_shared<made_model>(
      [this, time](const model_request& request, const model_reply& reply) {
        step();
        if (!is_sound(request))
          is_broken = true;
        time->call_after(
          std::chrono::microseconds(100),
          [reply, answer = answer_to(request)] { reply(answer); });
      });
    const tool work({.name = "work",
                     .run = [this](const json&, tool_context& context) -> json {
                       ++inside_;
                       context.state().add("app:worked", 1);
                       step(2);
                       --inside_;
                       return "worked";
                     },
                     .calls_max = 2});
    const tool nap(
      {.name = "nap",
       .run = [this, time](const json&, tool_context& context) -> task<json> {
         ++inside_;
         step();
         co_await pause_of(time, std::chrono::microseconds(150));
         context.state().add("user:naps", 1);
         step();
         --inside_;
         co_return "rested";
       }});
    const auto helper
      = llm({.name = "helper", .model = model_, .tools = {work, nap}});
    const auto clerk = llm({.name = "clerk", .model = model_});
    const auto saves
      = [this](callback_context& context) -> task<std::optional<content>> {
      step();
      (co_await context.artifacts().save("notes", part("x"))).value();
      step();
      co_return std::nullopt;
    };
    const auto front = llm(
      {.name = "front",
       .model = model_,
       .instruction = "{artifact.notes?}",
       .tools = {work, nap, agent_tool(helper)},
       .before_agent = {saves},
       .after_agent = {saves},
       .before_model = {[this](callback_context&, model_request&) { step(); }},
       .after_tool
       = {[this](const tool&, const json&, tool_context&, const json&) {
           step();
           return std::optional<json>();
         }}},
      {clerk});
    const auto counts
      = custom("counts", [this](invocation_context& context) -> agent_run {
          context.state().add("temp:n", 1);
          co_await context.sleep(std::chrono::microseconds(100));
          step();
          co_await context.emit(text("x"));
          co_await context.refresh();
          step();
        });
    const auto worker
      = custom("worker", [this](invocation_context& context) -> agent_run {
          step();
          co_await context.emit(text("{}", context.state().all().size()));
        });
    return sequential(
      {.name = "course"},
      {custom("lists",
              [](invocation_context& context) -> agent_run {
                context.state().set("items", json{1, 2, 3});
                co_return;
              }),
       front,
       loop({.name = "again", .max_iterations = 2},
            {parallel("lanes",
                      {counts,
                       map({.name = "each",
                            .items_key = "items",
                            .output_key = "done",
                            .on_failure = lane_failures::collect},
                           worker)})})});
  }

  // Calls tools when it is asked, and answers after their responses.
  model_response answer_to(const model_request& request) const {
    const auto& last = *request.contents.back();
    const bool was_answered
      = !last.parts.empty() && last.parts[0].response() != nullptr;
    model_response answer(text("answer"));
    if (was_answered || request.agent == "clerk" || request.agent == "checks")
      return answer;
    answer.content.parts = {function_call{"", "work", json::object()},
                            function_call{"", "nap", json::object()},
                            function_call{"", "work", json::object()}};
    if (request.agent == "front")
      answer.content.parts.emplace_back(
        function_call{"", "helper", json{{"request", "help"}}});
    return answer;
  }

  std::atomic<int> steps_ = 0;
  std::atomic<int> inside_ = 0; // Number of running tools.
  std::atomic<int> inside_at_ = 0;
  std::function<void()> cancel_;
  model_ptr model_;
  const agent course_;
};

} // namespace

BOOST_DATA_TEST_CASE(nothing_of_a_cancelled_run_goes_on,
                     data::make({1, 2, 3, 4}),
                     seed) {
  storm on;
  random_source random(static_cast<std::uint64_t>(seed));
  constexpr int warm_up = 50;
  constexpr int rounds = 800;
  int cancelled = 0;
  std::size_t actors = 0;
  std::size_t threads = 0;
  std::size_t files = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto code
      = on.perform(1 + static_cast<int>(random.below(60)), random.one_in(2));
    BOOST_TEST((code == "cancelled" || code == "ok"), code);
    cancelled += code == "cancelled" ? 1 : 0;
    if (round % 25 == 24)
      on.renew_session();
    if (round + 1 == warm_up) {
      actors = on.actors();
      threads = count_in("/proc/self/task");
      files = count_in("/proc/self/fd");
    }
  }
  BOOST_TEST(cancelled > rounds / 4);
  BOOST_TEST(!on.is_broken);
  // The last actors may still be ending.
  const auto until = std::chrono::steady_clock::now() + patience;
  while (on.actors() > actors && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  BOOST_TEST(on.actors() <= actors);
  // The pool of tools may still grow to its 16 threads, but no run leaves a
  // thread.
  BOOST_TEST(count_in("/proc/self/task") <= threads + 16);
  BOOST_TEST(count_in("/proc/self/fd") <= files);
  // The state of app and user also comes from earlier sessions.
  const auto now = on.fetch(on.key);
  BOOST_TEST(of_session(replay(now.events())) == of_session(now.state().all()));
}

BOOST_AUTO_TEST_SUITE_END()

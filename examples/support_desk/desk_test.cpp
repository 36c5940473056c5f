// Tests of the support desk, with a model that answers from a script.

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/open_call.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "desk_tools.hpp"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

int failures = 0;

void check(bool holds, const std::string& sentence) {
  if (holds)
    return;
  std::cerr << "does not hold: " << sentence << '\n';
  ++failures;
}

// The desk in memory, and one customer who speaks to it.
class trial {
public:
  explicit trial(std::vector<troupe::scripted_reply> replies)
    : desk_(troupe::load_agent_file(
              ".",
              {.tools = troupe::make_registry(desk_tools()),
               .model = std::make_shared<troupe::scripted_model>(
                 troupe::script{{"desk", std::move(replies)}})})
              .value()) {}

  // Runs the desk, and returns its last words.
  std::string say(troupe::user_message message) {
    std::string answer;
    for (const auto& said : runtime_.run(desk_, key_, std::move(message)))
      if (!said->text().empty())
        answer = said->text();
    return answer;
  }

  std::vector<troupe::open_call> waiting() {
    return runtime_.sessions().open_calls(key_).value();
  }

  troupe::json state() {
    return runtime_.sessions().get(key_).value().state().all();
  }

private:
  troupe::agent desk_;
  troupe::runtime runtime_ = troupe::runtime::open().value();
  troupe::session_key key_
    = runtime_.sessions().create({"desk", "ann"}).value().key();
};

troupe::scripted_reply calling(std::string tool, troupe::json args) {
  troupe::scripted_reply reply;
  reply.function_calls = {{"", std::move(tool), std::move(args)}};
  return reply;
}

void a_fact_is_part_of_later_instructions() {
  trial on({calling("remember", {{"text", "She has two cats."}}),
            {.text = "${instruction}"}});
  const auto answer = on.say("I have two cats.");
  check(answer.ends_with("this customer: [\"She has two cats.\"]"),
        "the model is told the fact");
}

void a_small_refund_is_paid_at_once() {
  trial on({calling("refund", {{"order", 18}, {"euros", 4}}),
            {.text = "It is on its way."}});
  check(on.say("My bulb is broken.") == "It is on its way.", "the answer");
  check(on.state()["app:refunded_euros"] == 4, "four euros are paid");
}

void a_large_refund_waits_for_a_person(bool is_allowed) {
  trial on({calling("refund", {{"order", 17}, {"euros", 80}}),
            {.text = "I have asked."}});
  on.say("Both lamps are broken.");
  check(!on.state().contains("app:refunded_euros"), "nothing is paid yet");

  const auto waiting = on.waiting();
  check(waiting.size() == 1, "one question is open");
  on.say(is_allowed ? troupe::allow(waiting.at(0))
                    : troupe::deny(waiting.at(0)));
  check(on.state().contains("app:refunded_euros") == is_allowed,
        "it is paid if it was allowed");
  check(on.waiting().empty(), "no question is open");
}

} // namespace

int main() {
  try {
    a_fact_is_part_of_later_instructions();
    a_small_refund_is_paid_at_once();
    a_large_refund_waits_for_a_person(true);
    a_large_refund_waits_for_a_person(false);
  } catch (const std::exception& failure) {
    check(false, failure.what());
  }
  return failures == 0 ? 0 : 1;
}

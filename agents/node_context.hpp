// The context of a node that is a function or a coroutine.

#pragma once

#include "troupe/agents/json_schema.hpp"
#include "troupe/contexts/invocation_context.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

/// The context of one attempt of a node. Changes of `state()` are committed
/// with the next event of the attempt, which is that of its output if it emits
/// no others. They are dropped if the attempt fails before. Lives as long as
/// the attempt. Not thread-safe.
class node_context : public invocation_context {
public:
  /// One attempt of a node.
  struct attempt_facts {
    /// As `node_context::input`.
    json input;
    /// Number of the attempt, from 1.
    std::uint64_t attempt = 1;
    /// Id of the visit, the same in each attempt.
    std::string key;
    /// As `workflow_place::rewound`.
    std::uint64_t rewound = 0;
    /// True if the body may have run before in this visit.
    bool repeats = false;
    /// Takes the nanoseconds of waits that do not count for the time limit of
    /// the attempt. Null if they count.
    std::shared_ptr<std::atomic<std::int64_t>> waited = {};
  };

  /// `workflow` is the agent that the node belongs to; it must outlive the
  /// context.
  node_context(lane_host& lane,
               const agent& workflow,
               std::string workflow_name,
               std::string branch,
               const invocation_context* caller,
               attempt_facts facts)
    : invocation_context(
      lane, workflow, std::move(workflow_name), std::move(branch), caller),
      facts_of_attempt_(std::move(facts)) {
    number_events(facts_of_attempt_.key,
                  facts_of_attempt_.repeats,
                  facts_of_attempt_.rewound);
  }

  /// Returns the node's input: the output of the node before it. Behind START
  /// it is the input of the workflow: the text of the run's message, or, if the
  /// workflow is a node itself, that node's input.
  const json& input() const noexcept { return facts_of_attempt_.input; }

  /// Returns the number of the attempt, from 1.
  std::uint64_t attempt() const noexcept { return facts_of_attempt_.attempt; }

  /// Returns an id that is the same in all attempts of this visit of the node,
  /// also in another process: an idempotency key for calls to other systems.
  const std::string& key() const noexcept { return facts_of_attempt_.key; }

  using invocation_context::ask;

  /// Asks the user, and returns the answer. Functions and coroutines call it in
  /// the same way, without `co_await`.
  ///
  /// If there is no answer yet, the body is unwound by an exception that is not
  /// a `std::exception`. The other nodes go on; when nothing else can, the run
  /// pauses. In the run that brings the answer, the body starts again, and this
  /// call returns. A body may ask several questions, one after another. Each
  /// belongs to its place: the body must ask the same ones in the same order
  /// when it starts again. Agents that it has run before are skipped then.
  ///
  /// `message` is the question. An answer must fit `schema` before the session
  /// takes it; without a schema it is any JSON value. If a text does not fit,
  /// but is JSON that does, the answer is this JSON. `payload` is data for the
  /// program that shows the question.
  ///
  /// Throws `errc::invalid_argument` if changes of state or actions are
  /// recorded that no event carries: they would be lost. Throws
  /// `errc::conflict` if another question has been asked at this place.
  json ask(std::string message,
           const std::optional<json_schema>& schema = {},
           json payload = nullptr);

  /// Waits until a time without holding a thread, also over the end of the
  /// process. An event with the time is committed when the wait begins. A body
  /// that runs again, in a further attempt, after an answer or in a recovered
  /// run, waits until the time of this event, whatever `due` is now.
  ///
  /// The event carries the changes of state that are recorded, and counts among
  /// the events of the body: a body that waits where it has emitted another
  /// event before, or emits where it has waited, fails with `errc::conflict`.
  /// The wait does not count for `workflow_node::timeout`, except in the item
  /// of a map.
  ///
  /// Throws `errc::cancelled` if the run or the node is cancelled, and the
  /// errors of `emit`.
  task<> sleep_until(timestamp due);

  /// Waits until this time has passed since the wait first began; as
  /// `sleep_until`.
  task<> sleep_for(std::chrono::nanoseconds duration);

  // -- for the code that runs nodes ----

  /// Returns the question that the body waits for an answer to; unset if there
  /// is none.
  const std::optional<function_call>& question() const noexcept {
    return question_;
  }

private:
  attempt_facts facts_of_attempt_;
  std::uint64_t asked_ = 0;
  std::optional<function_call> question_;
};

} // namespace troupe

// Runs of an agent on one session, one message after another. Its events are
// printed to stdout: for a pipe, a file, or a terminal without a dialogue.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/cli/talk/open_questions.hpp"
#include "troupe/cli/talk/run_cost.hpp"
#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/cli/terminal/progress.hpp"
#include "troupe/runtime/runtime.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// The command line that continues a session that waits; empty if it cannot be
/// continued.
struct command_line {
  std::string text;
  std::string note; // Extra advice, starts with a semicolon.

  /// How the call can be answered later.
  std::string advice(const open_call& open) const;
};

/// The invocations of one session, in order.
class conversation {
public:
  struct settings {
    bool as_json = false;
    bool prints_pieces = false;
    run_options options;
    command_line go_on;
    std::shared_ptr<running_agents> agents;
    std::shared_ptr<run_cost> cost; // Counts all events.
  };

  /// `owners`, `root` and `signals` outlive this.
  conversation(runtime& owners,
               const agent& root,
               session_key session,
               settings chosen,
               const interrupts& signals);

  /// Runs the agent on a message. Fails with `errc::model_failed` also if the
  /// run ended with an answer that was blocked.
  result<void> say(const std::string& input);
  result<void> say(content message);

  /// Answers calls that an earlier run has left open, by their ids.
  result<void> answer(const std::vector<given_answer>& given);

  /// Continues a run whose process has ended before it. `id` is that of the
  /// run, or `last` for the newest one of the session that is open in the
  /// store.
  result<void> recover(const std::string& id);

  /// Sends each line of stdin that is not blank as a message.
  result<void> say_lines();

  /// Prints the state of the session, as the last line.
  result<void> print_state();

  /// Returns the exit code after the last invocation.
  int end(const result<void>& done) const;

private:
  result<void> follow(troupe::run run, progress& line);
  result<std::string> find_run(const std::string& id);
  void tell_waits(const std::vector<std::string>& ids) const;
  result<void> print(const event& said);

  runtime& owners_;
  const agent& root_;
  const session_key session_;
  const settings chosen_;
  const interrupts& signals_;
  output output_;
};

} // namespace troupe::cli

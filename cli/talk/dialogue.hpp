// `troupe run` on a terminal: a prompt, words as they come, questions, and
// commands that start with a slash.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/cli/talk/conversation.hpp"
#include "troupe/cli/talk/line_editor.hpp"
#include "troupe/cli/talk/palette.hpp"
#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/cli/terminal/progress.hpp"
#include "troupe/models/fallback_model.hpp"
#include "troupe/models/http_options.hpp"
#include "troupe/runtime/runtime.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

/// Passes retries of models, and changes to the next model of a list, to the
/// dialogue while it runs, and drops them before and after. Thread-safe.
class retry_notices {
public:
  void tell(const model_retry& retry);
  void tell(const model_fallback& change);
  void send_to(std::function<void(const std::string& line)> receiver);

private:
  void send(const std::string& line);

  std::mutex mutex_;
  std::function<void(const std::string&)> receiver_;
};

class dialogue {
public:
  /// All references outlive this. Ctrl-C cancels the run under way, and SIGTERM
  /// ends the dialogue.
  dialogue(runtime& owners,
           const agent& root,
           session_key session,
           conversation::settings chosen,
           std::shared_ptr<retry_notices> retries,
           interrupts& signals);
  ~dialogue();
  dialogue(const dialogue&) = delete;
  dialogue& operator=(const dialogue&) = delete;

  /// Talks until the end of the input or `/quit`. A run that fails is
  /// reported, and the dialogue continues. Fails with `errc::cancelled` on
  /// SIGTERM.
  result<void> talk();

private:
  enum class command_end { done, quit };

  // -- runs -------------------------------------------------------------------

  // Runs the agent for the message, and for the user's answers to its
  // questions.
  void say(content message);
  // Returns the ids of the calls that wait.
  result<std::vector<std::string>> run_once(content message);
  void show_event(const event& said);
  void show_piece(const event& said);
  void begin_line();
  void print(std::string_view text);
  void tell_notice(const std::string& line);
  void cancel_run();

  // -- questions --------------------------------------------------------------

  // The message with the answers; nothing if the user leaves a question open,
  // or if none is open any more.
  std::optional<content> ask(const std::vector<std::string>& ids);
  std::optional<content> ask_one(const open_call& open);
  // Asks until the answer fits.
  std::optional<content> ask_for_input(const open_call& open);
  std::optional<bool> ask_yes_or_no(const open_call& open);
  std::optional<json> fill_in(const json& properties);
  std::optional<std::string> read_reply(const std::string& prompt);

  // -- commands ---------------------------------------------------------------

  command_end obey(std::string_view command);
  void show_help();
  void show_state(std::string_view prefix);
  void show_events(std::string_view count);
  void take_back(std::string_view count);

  runtime& owners_;
  const agent& root_;
  const session_key session_;
  const conversation::settings chosen_;
  const std::shared_ptr<retry_notices> retries_;
  interrupts& signals_;
  const palette colours_;
  line_editor editor_;

  std::mutex run_mutex_;
  run* run_ = nullptr; // The run under way. Guarded by `run_mutex_`.

  std::mutex screen_; // Guards the rest.
  std::optional<progress> waiting_;
  // Author and branch of the words in the current line, and of all words of
  // this model call that were shown as they came.
  std::pair<std::string, std::string> speaker_;
  std::set<std::pair<std::string, std::string>> heard_;
  bool in_line_ = false;
};

} // namespace troupe::cli

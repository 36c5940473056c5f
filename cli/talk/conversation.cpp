#include "troupe/cli/talk/conversation.hpp"

#include "troupe/cli/talk/blocked_answers.hpp"
#include "troupe/cli/talk/losses.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/event_text.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/input_lines.hpp"
#include "troupe/cli/terminal/visible_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>

namespace troupe::cli {

std::string command_line::advice(const open_call& open) const {
  if (text.empty())
    return "the run cannot be continued, since the session ends with this "
           "program (--store memory:)";
  return fmt::format(
    "go on with {} --answer {}{}",
    text,
    quoted(open.id + (open.question ? R"(={"confirmed": true})" : "=JSON")),
    note);
}

conversation::conversation(runtime& owners,
                           const agent& root,
                           session_key session,
                           settings chosen,
                           const interrupts& signals)
  : owners_(owners),
    root_(root),
    session_(std::move(session)),
    chosen_(std::move(chosen)),
    signals_(signals),
    output_(STDOUT_FILENO, signals.descriptor()) {}

result<void> conversation::say(const std::string& input) {
  return say(user_text(input));
}

result<void> conversation::answer(const std::vector<given_answer>& given) {
  auto message = make_answers(owners_, session_, given);
  if (!message)
    return message.error();
  return say(std::move(*message));
}

result<void> conversation::say(content message) {
  if (signals_.token().stop_requested())
    return error(errc::cancelled, "interrupted");
  progress line(chosen_.agents);
  return follow(
    owners_.run(root_, session_, std::move(message), chosen_.options), line);
}

result<void> conversation::recover(const std::string& id) {
  const auto found = find_run(id);
  if (!found)
    return found.error();
  progress line(chosen_.agents);
  return follow(owners_.recover(root_, session_, *found, chosen_.options),
                line);
}

// The newest open run of the session, or the run that is named.
result<std::string> conversation::find_run(const std::string& id) {
  if (id != "last")
    return id;
  auto open = owners_
                .unfinished(session_.app,
                            {.limit = std::numeric_limits<std::int32_t>::max()})
                .get();
  if (!open)
    return open.error();
  std::erase_if(*open, [this](const unfinished_run& each) {
    return each.session != session_;
  });
  if (open->empty())
    return error(errc::not_found,
                 fmt::format("session {} has no unfinished run; `troupe runs` "
                             "lists those of all sessions",
                             to_string(session_)));
  return open->back().invocation_id;
}

// Prints the events of a run until it ends.
result<void> conversation::follow(troupe::run run, progress& line) {
  const std::stop_callback interrupted(signals_.token(),
                                       [&run] { run.cancel(); });
  blocked_answers blocked;
  for (;;) {
    auto next = run.next().get();
    if (!next || !*next)
      if (const auto lost = losses_of(run); !lost.empty())
        std::fputs((lost + '\n').c_str(), stderr);
    if (!next)
      return next.error();
    if (!*next) {
      tell_waits(run.waits_for());
      return blocked.check();
    }
    blocked.take(**next);
    chosen_.cost->take(**next);
    const bool is_piece = (*next)->partial;
    if (is_piece)
      line.hear((*next)->author, (*next)->text());
    else
      line.count_event();
    if (is_piece && !chosen_.prints_pieces)
      continue;
    auto written = line.without_line([this, &next] { return print(**next); });
    if (!written) {
      run.cancel();
      const auto unused
        = run.wait().get(); // The write has failed, not the run.
      return written.error();
    }
  }
}

result<void> conversation::say_lines() {
  input_lines lines(STDIN_FILENO, signals_.descriptor());
  for (;;) {
    auto line = lines.next();
    if (!line)
      return line.error();
    if (!*line)
      return {};
    if (auto said = say(**line); !said)
      return error(
        said.error().code(),
        fmt::format("line {}: {}", lines.number(), said.error().message()));
  }
}

result<void> conversation::print_state() {
  const auto held
    = owners_.sessions().get(session_, {.num_recent_events = 0}).get();
  if (!held)
    return held.error();
  return output_.write(visible_json({{"state", held->state().all()}}) + '\n');
}

int conversation::end(const result<void>& done) const {
  return cli::end(done, output_, signals_);
}

// Prints the questions that the user has to answer.
void conversation::tell_waits(const std::vector<std::string>& ids) const {
  if (ids.empty())
    return;
  const auto waiting = owners_.sessions().open_calls(session_).get();
  if (!waiting) {
    report(waiting.error());
    return;
  }
  for (const auto& open : *waiting)
    if (std::ranges::find(ids, open.id) != ids.end())
      std::fputs((visible_text(fmt::format("waiting: {}; {}",
                                           question_of(open),
                                           chosen_.go_on.advice(open)),
                               " ")
                  + '\n')
                   .c_str(),
                 stderr);
}

result<void> conversation::print(const event& said) {
  return output_.write(chosen_.as_json ? visible_json(to_json(said)) + '\n'
                                       : show(said));
}

} // namespace troupe::cli

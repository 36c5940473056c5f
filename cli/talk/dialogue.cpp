#include "troupe/cli/talk/dialogue.hpp"

#include "troupe/agents/turns/question.hpp"
#include "troupe/cli/talk/losses.hpp"
#include "troupe/cli/terminal/event_text.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace troupe::cli {

namespace {

constexpr const char* answer_prompt = "answer (text or JSON; empty: later) > ";

std::pair<std::string, std::string> speaker_of(const event& said) {
  return {said.author, said.branch};
}

// Returns `fallback` for an empty text, and nothing if it is not a number.
std::optional<std::size_t> read_number(std::string_view text,
                                       std::size_t fallback) {
  if (text.empty())
    return fallback;
  std::size_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end
           ? number
           : std::optional<std::size_t>();
}

// The newest message of the user but `count - 1`; null if there is none.
// Messages that only answer questions do not count.
event_ptr message_before_end(const event_slice& live, std::size_t count) {
  const auto is_answer
    = [](const part& each) { return each.response() != nullptr; };
  for (auto index = live.size(); index > 0; --index) {
    const auto& said = live[index - 1];
    const auto& parts = said->content.parts;
    if (said->author == "user" && !parts.empty()
        && std::ranges::none_of(parts, is_answer) && --count == 0)
      return said;
  }
  return nullptr;
}

// The properties of an object that a schema describes; null if it describes
// something else.
const json* properties_of(const json& schema) {
  if (!schema.is_object())
    return nullptr;
  const auto found = schema.find("properties");
  return found != schema.end() && found->is_object() ? &*found : nullptr;
}

// Returns the JSON in `text`, or the text itself if it is not JSON.
json value_of(const std::string& text) {
  auto read = parse_json(text);
  return read ? std::move(*read) : json(text);
}

} // namespace

// -- retries ------------------------------------------------------------------

void retry_notices::tell(const model_retry& retry) {
  send(fmt::format("{}: {}; attempt {} in {:.1f} s",
                   visible_text(retry.agent, " "),
                   visible_text(retry.reason.message(), " "),
                   retry.attempt,
                   static_cast<double>(retry.wait.count()) / 1e3));
}

void retry_notices::tell(const model_fallback& change) {
  send(fmt::format("{}: {}; asks {} now",
                   visible_text(change.agent, " "),
                   visible_text(change.reason.message(), " "),
                   visible_text(change.next, " ")));
}

void retry_notices::send(const std::string& line) {
  const std::lock_guard guard(mutex_);
  if (receiver_)
    receiver_(line);
}

void retry_notices::send_to(
  std::function<void(const std::string& line)> receiver) {
  const std::lock_guard guard(mutex_);
  receiver_ = std::move(receiver);
}

dialogue::dialogue(runtime& owners,
                   const agent& root,
                   session_key session,
                   conversation::settings chosen,
                   std::shared_ptr<retry_notices> retries,
                   interrupts& signals)
  : owners_(owners),
    root_(root),
    session_(std::move(session)),
    chosen_(std::move(chosen)),
    retries_(std::move(retries)),
    signals_(signals),
    colours_(palette::of_terminal()),
    editor_(signals.descriptor()) {
  retries_->send_to([this](const std::string& line) { tell_notice(line); });
  signals_.divert([this] { cancel_run(); });
}

dialogue::~dialogue() {
  signals_.divert({});
  retries_->send_to({});
}

result<void> dialogue::talk() {
  print(colours_.quiet(fmt::format("session {} of app {}; /help lists the "
                                   "commands\n",
                                   visible_text(session_.id, " "),
                                   visible_text(session_.app, " "))));
  for (bool told_how_to_leave = false;;) {
    auto line = editor_.read("> ");
    if (!line)
      return line.error();
    if (line->how == edited_line::ending::end) {
      print("\n");
      return {};
    }
    if (line->how == edited_line::ending::interrupt) {
      print("\n");
      if (!std::exchange(told_how_to_leave, true))
        print(colours_.quiet("Ctrl-D or /quit ends the dialogue\n"));
      continue;
    }
    if (is_blank(line->text))
      continue;
    if (!line->text.starts_with('/')) {
      say(user_text(line->text));
    } else if (line->text.starts_with("//")) {
      say(user_text(line->text.substr(1)));
    } else if (obey(line->text.substr(1)) == command_end::quit) {
      return {};
    }
    if (signals_.token().stop_requested())
      return error(errc::cancelled, "interrupted");
  }
}

// -- runs ---------------------------------------------------------------------

void dialogue::say(content message) {
  for (;;) {
    const auto waits = run_once(std::move(message));
    if (!waits) {
      const std::lock_guard guard(screen_);
      begin_line();
      std::fputs(
        (colours_.alarm(visible_text(to_string(waits.error()), " ")) + '\n')
          .c_str(),
        stderr);
      return;
    }
    if (waits->empty())
      return;
    auto answers = ask(*waits);
    if (!answers)
      return;
    message = std::move(*answers);
  }
}

result<std::vector<std::string>> dialogue::run_once(content message) {
  // Locked from the start on, so that Ctrl-C reaches a run that has begun.
  std::unique_lock starting(run_mutex_);
  auto run = owners_.run(root_, session_, std::move(message), chosen_.options);
  run_ = &run;
  starting.unlock();
  const std::stop_callback stopped(signals_.token(), [&run] { run.cancel(); });
  {
    const std::lock_guard guard(screen_);
    heard_.clear();
    waiting_.emplace(chosen_.agents);
  }
  result<void> done;
  for (;;) {
    const auto next = run.next().get();
    if (!next)
      done = next.error();
    if (!next || !*next)
      break;
    chosen_.cost->take(**next);
    const std::lock_guard guard(screen_);
    if ((*next)->partial)
      show_piece(**next);
    else
      show_event(**next);
  }
  {
    const std::lock_guard guard(screen_);
    waiting_.reset();
    begin_line();
    if (const auto lost = losses_of(run); !lost.empty())
      print(colours_.alarm(lost) + '\n');
  }
  {
    const std::lock_guard guard(run_mutex_);
    run_ = nullptr;
  }
  if (!done)
    return done.error();
  return run.waits_for();
}

void dialogue::show_piece(const event& said) {
  const auto words = said.text();
  if (words.empty())
    return;
  waiting_.reset(); // Its line would erase the words.
  if (const auto who = speaker_of(said); !in_line_ || speaker_ != who) {
    begin_line();
    print(colours_.name(visible_text(said.author, " ") + ":") + " ");
    speaker_ = who;
    heard_.insert(who);
    in_line_ = true;
  }
  print(visible_text(words, "\n  "));
}

void dialogue::show_event(const event& said) {
  waiting_.reset();
  begin_line();
  // Words that came in pieces are on the screen already.
  if (heard_.erase(speaker_of(said)) == 0)
    if (auto words = show_words(said); !words.empty()) {
      const auto name = words.find(':') + 1;
      print(colours_.name(words.substr(0, name)) + words.substr(name));
    }
  if (auto failure = show_failure(said); !failure.empty()) {
    failure.pop_back(); // The end of the line is not coloured.
    print(colours_.alarm(failure) + '\n');
  }
  print(colours_.quiet(show_work(said)));
  waiting_.emplace(chosen_.agents);
}

void dialogue::begin_line() {
  if (std::exchange(in_line_, false))
    print("\n");
}

void dialogue::print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void dialogue::tell_notice(const std::string& line) {
  const std::lock_guard guard(screen_);
  const bool waited = waiting_.has_value();
  waiting_.reset();
  begin_line();
  print(colours_.quiet(line + '\n'));
  if (waited)
    waiting_.emplace(chosen_.agents);
}

void dialogue::cancel_run() {
  const std::lock_guard guard(run_mutex_);
  if (run_ != nullptr)
    run_->cancel();
  else
    editor_.interrupt();
}

// -- questions ----------------------------------------------------------------

std::optional<content> dialogue::ask(const std::vector<std::string>& ids) {
  const auto waiting = owners_.sessions().open_calls(session_).get();
  if (!waiting) {
    print(colours_.alarm(to_string(waiting.error())) + '\n');
    return std::nullopt;
  }
  std::vector<content> answers;
  for (const auto& open : *waiting) {
    if (std::ranges::find(ids, open.id) == ids.end())
      continue;
    auto answer = ask_one(open);
    if (!answer) {
      print(colours_.quiet(
              visible_text("left open; " + chosen_.go_on.advice(open), " "))
            + '\n');
      return std::nullopt;
    }
    answers.push_back(std::move(*answer));
  }
  // Another program may have answered meanwhile.
  if (answers.empty())
    return std::nullopt;
  return join_answers(answers);
}

std::optional<content> dialogue::ask_one(const open_call& open) {
  print(visible_text(question_of(open), " ") + '\n');
  if (open.question) {
    const auto allowed = ask_yes_or_no(open);
    if (!allowed)
      return std::nullopt;
    return *allowed ? allow(open) : deny(open);
  }
  const auto& args = open.args.data();
  if (open.tool == request_input_name && args.is_object())
    return ask_for_input(open);
  if (!args.empty())
    print(colours_.quiet(visible_text(troupe::to_text(args), " ") + '\n'));
  // The arguments of a call may hold a JSON Schema of its answer.
  for (const auto* const name : {"response_schema", "responseSchema"})
    if (const auto schema = args.find(name); schema != args.end())
      if (const auto* properties = properties_of(*schema)) {
        auto filled = fill_in(*properties);
        if (!filled)
          return std::nullopt;
        return answer(open, std::move(*filled));
      }
  const auto reply = read_reply(answer_prompt);
  if (!reply)
    return std::nullopt;
  return answer(open, value_of(*reply));
}

std::optional<content> dialogue::ask_for_input(const open_call& open) {
  const auto& args = open.args.data();
  if (const auto payload = args.value("payload", json()); !payload.is_null())
    print(colours_.quiet(visible_text(troupe::to_text(payload), " ") + '\n'));
  const auto schema = args.value("response_schema", json());
  const auto* properties = properties_of(schema);
  for (;;) {
    std::optional<json> given;
    if (properties != nullptr)
      given = fill_in(*properties);
    else if (const auto reply = read_reply(answer_prompt))
      // With a schema, a text that is JSON may be meant as text.
      given = schema.is_null() ? value_of(*reply) : json(*reply);
    if (!given)
      return std::nullopt;
    auto message = answer(open, std::move(*given));
    const auto fits
      = read_answer(args, message.parts.front().response()->response.data());
    if (fits)
      return message;
    print(colours_.alarm(visible_text(fits.error().message(), " ")) + '\n');
  }
}

std::optional<bool> dialogue::ask_yes_or_no(const open_call& open) {
  if (!open.question->hint.empty())
    print(colours_.quiet(visible_text(open.question->hint, " ") + '\n'));
  for (;;) {
    const auto reply = read_reply("y/n (empty: later) > ");
    if (!reply)
      return std::nullopt;
    if (*reply == "y" || *reply == "yes")
      return true;
    if (*reply == "n" || *reply == "no")
      return false;
  }
}

std::optional<json> dialogue::fill_in(const json& properties) {
  auto filled = json::object();
  for (const auto& [name, schema] : properties.items()) {
    const auto type
      = schema.is_object() ? schema.value("type", json()) : json();
    const bool is_text = type == "string";
    const auto reply = read_reply(fmt::format(
      "{} ({}) > ",
      visible_text(name, " "),
      type.is_string() ? type.get<std::string>() : std::string("JSON")));
    if (!reply)
      return std::nullopt;
    filled[name] = is_text ? json(*reply) : value_of(*reply);
  }
  return filled;
}

std::optional<std::string> dialogue::read_reply(const std::string& prompt) {
  const auto line = editor_.read(prompt, false);
  if (!line || line->how != edited_line::ending::line) {
    print("\n");
    return std::nullopt;
  }
  if (is_blank(line->text))
    return std::nullopt;
  return line->text;
}

// -- commands -----------------------------------------------------------------

dialogue::command_end dialogue::obey(std::string_view command) {
  const auto space = command.find(' ');
  const auto word = command.substr(0, space);
  auto rest
    = space == command.npos ? std::string_view() : command.substr(space + 1);
  while (rest.starts_with(' '))
    rest.remove_prefix(1);
  if (word == "quit" || word == "exit")
    return command_end::quit;
  if (word == "help")
    show_help();
  else if (word == "state")
    show_state(rest);
  else if (word == "events")
    show_events(rest);
  else if (word == "rewind")
    take_back(rest);
  else
    print(colours_.alarm(
      fmt::format("there is no command '/{}'; /help lists them\n",
                  visible_text(word, " "))));
  return command_end::done;
}

void dialogue::show_help() {
  print("/state [KEYS]   the session's state; only keys that begin with KEYS\n"
        "/events [N]     the newest N events of the session (20)\n"
        "/rewind [N]     takes back your newest N messages and all that came "
        "after (1)\n"
        "/quit           ends the dialogue, as Ctrl-D does\n"
        "/help           this\n"
        "//TEXT          says /TEXT\n"
        "Anything else is sent to the agent. Ctrl-C cancels its run.\n");
}

void dialogue::show_state(std::string_view prefix) {
  const auto held
    = owners_.sessions().get(session_, {.num_recent_events = 0}).get();
  if (!held)
    return print(colours_.alarm(to_string(held.error())) + '\n');
  const auto all = held->state().all();
  std::string lines;
  for (const auto& [key, value] : all.items())
    if (key.starts_with(prefix))
      lines += fmt::format("{} = {}\n",
                           visible_text(key, " "),
                           visible_text(troupe::to_text(value), " "));
  print(lines.empty() ? colours_.quiet("nothing\n") : lines);
}

void dialogue::show_events(std::string_view count) {
  const auto number = read_number(count, 20);
  if (!number)
    return print(colours_.alarm("expected a number after /events\n"));
  const auto held = owners_.sessions().get(session_).get();
  if (!held)
    return print(colours_.alarm(to_string(held.error())) + '\n');
  const auto newest = held->events().live().recent(*number);
  for (const auto& said : newest)
    print(show_words(*said) + show_failure(*said)
          + colours_.quiet(show_work(*said)));
}

void dialogue::take_back(std::string_view count) {
  const auto number = read_number(count, 1);
  if (!number || *number == 0)
    return print(colours_.alarm("expected a number from 1 on after /rewind\n"));
  const auto held = owners_.sessions().get(session_).get();
  if (!held)
    return print(colours_.alarm(to_string(held.error())) + '\n');
  const auto message = message_before_end(held->events().live(), *number);
  if (!message)
    return print(colours_.alarm("you have said fewer messages than that\n"));
  const auto done
    = owners_.sessions()
        .rewind(session_, rewind_target::before_run(message->invocation_id))
        .get();
  if (!done)
    return print(colours_.alarm(to_string(done.error())) + '\n');
  print(
    colours_.quiet(fmt::format("took back \"{}\" and all that came after it\n",
                               visible_text(message->text(), " "))));
  if (!done->kept_keys.empty())
    print(colours_.quiet(fmt::format(
      "these keys keep their values: {}\n",
      visible_text(fmt::format("{}", fmt::join(done->kept_keys, ", ")), " "))));
}

} // namespace troupe::cli

#include "troupe/agents/llm_turn.hpp"

#include "troupe/agents/agent_tree.hpp"
#include "troupe/agents/history_search.hpp"
#include "troupe/agents/open_turn.hpp"
#include "troupe/agents/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

namespace {

using shared_content = std::shared_ptr<const content>;

shared_content part_of(const event_ptr& said) {
  return {said, &said->content}; // Shares the event: nothing is copied.
}

bool has_calls(const content& said) {
  return std::ranges::any_of(
    said.parts, [](const part& element) { return element.call() != nullptr; });
}

// What another agent did, told as user text.
shared_content retold(const event& said) {
  content told("user", {part("For context:")});
  for (const auto& element : said.content.parts) {
    if (element.thought)
      continue;
    if (const auto* words = element.text())
      told.parts.emplace_back(
        fmt::format("[{}] said: {}", said.author, *words));
    else if (const auto* call = element.call())
      told.parts.emplace_back(
        fmt::format("[{}] called tool `{}` with parameters: {}",
                    said.author,
                    call->name,
                    to_text(call->args.data())));
    else if (const auto* answer = element.response())
      told.parts.emplace_back(fmt::format("[{}] tool `{}` returned result: {}",
                                          said.author,
                                          answer->name,
                                          to_text(answer->response.data())));
    else
      told.parts.push_back(element);
  }
  return told.parts.size() > 1
           ? std::make_shared<const content>(std::move(told))
           : nullptr;
}

// Whether the event only hands over.
bool is_transfer(const event& said) {
  return std::ranges::all_of(said.content.parts, [](const part& element) {
    return (element.call() != nullptr
            && element.call()->name == transfer_tool_name)
           || (element.response() != nullptr
               && element.response()->name == transfer_tool_name);
  });
}

// Whether the user only answers calls: the turn in which they were made goes
// on.
bool goes_on(const event& said) {
  return said.author == "user" && only_answers(said.content);
}

// The events that show on a branch, oldest first.
class shown_events {
public:
  shown_events(const event_slice& events, std::string_view branch)
    : events_(events),
      places_(events.shown_on(branch)) {}

  std::size_t size() const {
    return places_ ? places_->size() : events_.size();
  }

  const event_ptr& operator[](std::size_t index) const {
    return events_[places_ ? (*places_)[index] : index];
  }

private:
  const event_slice& events_;
  const std::optional<std::vector<std::size_t>> places_; // Nothing: all.
};

bool has_content(const event& said) {
  return !said.partial && !said.content.parts.empty();
}

// The index at which the current turn starts: the latest event of the user or
// of another agent.
std::size_t turn_start(const shown_events& events,
                       std::string_view agent_name,
                       std::size_t end) {
  for (auto index = end; index > 0; --index)
    if (const auto& said = *events[index - 1];
        has_content(said) && said.author != agent_name && !is_transfer(said)
        && !goes_on(said))
      return index - 1;
  return 0;
}

// The ids of the calls that are answered from `start` on and were made before.
template <class Events>
std::unordered_set<std::string_view> answered_behind(const Events& events,
                                                     std::size_t start) {
  std::unordered_set<std::string_view> answered;
  for (auto index = start; index < events.size(); ++index)
    for (const auto& element : events[index]->content.parts)
      if (const auto* answer = element.response())
        answered.insert(answer->id);
  for (auto index = start; index < events.size(); ++index)
    for (const auto& element : events[index]->content.parts)
      if (const auto* call = element.call())
        answered.erase(call->id);
  return answered;
}

// The same, but for calls of the agent that were made before it and answered in
// it: then their turn goes on.
std::size_t current_turn(const shown_events& events,
                         std::string_view agent_name) {
  const auto start = turn_start(events, agent_name, events.size());
  const auto answered = answered_behind(events, start);
  for (auto index = start; index > 0 && !answered.empty(); --index)
    if (const auto& said = *events[index - 1]; said.author == agent_name)
      for (const auto& element : said.content.parts)
        if (element.call() != nullptr && answered.contains(element.call()->id))
          return turn_start(events, agent_name, index - 1);
  return start;
}

// The index of the first event that begins something: one of the user or of
// another agent. Where there is none, all are shown.
std::size_t first_beginning(const shown_events& events,
                            std::string_view agent_name) {
  for (std::size_t index = 0; index < events.size(); ++index)
    if (const auto& said = *events[index];
        has_content(said) && said.author != agent_name && !goes_on(said))
      return index;
  return 0;
}

// What the newest summary says, and the events that it does not stand for.
struct summed_history {
  event_slice events;
  shared_content summary; // Null: there is none.
};

summed_history sum_up(const event_slice& events, std::uint64_t first_revision) {
  history_search search({}, history_extent::since_summary());
  for (auto index = events.size(); index > 0 && search.needs_more(); --index)
    search.take(first_revision + index - 1, *events[index - 1]);
  if (!search.summary())
    return {events, nullptr};
  content told("user", {part("For context, a summary of what came before:")});
  for (const auto& element : search.summary()->parts)
    if (!element.thought)
      told.parts.push_back(element);
  auto first
    = std::max(search.since_summary(), first_revision) - first_revision;
  // Calls that were open when they were summed up.
  auto answered = answered_behind(events, first);
  for (auto index = first; index > 0 && !answered.empty(); --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* call = element.call();
          call != nullptr && answered.erase(call->id) > 0)
        first = index - 1;
  return {events.part(first, events.size()),
          std::make_shared<const content>(std::move(told))};
}

// Reads a history from the oldest event on, and gives what a model may see of
// it.
//
// Calls and responses belong together by their ids, a response to the newest
// call before it. Questions to the user about calls, and the answers to them,
// are the runtime's own and for no model.
class history_reader {
public:
  explicit history_reader(std::string_view agent_name)
    : agent_name_(agent_name) {}

  void read(const event_ptr& said) {
    if (said->author == agent_name_) {
      note_calls(*said);
      add(without(
        said, [this](const part& element) { return is_question(element); }));
    } else if (said->author == "user") {
      read_user(said);
    } else {
      note_foreign(*said);
      add(retold(*without_questions(said)));
    }
  }

  // A run has paused, and waits for what it has asked.
  void read_pause(const event& said) {
    for (const auto& id : waits_in(said))
      if (const auto asked = questions_.find(id); asked != questions_.end())
        if (const auto found = open_.find(asked->second); found != open_.end())
          found->second->is_awaited = true;
  }

  std::vector<shared_content> take() { return pair_up(); }

private:
  // A call of the agent's own, and what came of it.
  struct own_call {
    const content* made = nullptr;
    const part* answer = nullptr; // In contents_.
    bool is_awaited = false;
  };

  bool is_question(const part& element) const {
    const auto* call = element.call();
    const auto* answer = element.response();
    return (call != nullptr && questions_.contains(call->id))
           || (answer != nullptr && questions_.contains(answer->id));
  }

  // The same content, or what is left of it, or null.
  template <class Predicate>
  static shared_content without(const event_ptr& said, Predicate is_hidden) {
    if (std::ranges::none_of(said->content.parts, is_hidden))
      return part_of(said);
    auto rest = said->content;
    std::erase_if(rest.parts, is_hidden);
    return rest.parts.empty()
             ? nullptr
             : std::make_shared<const content>(std::move(rest));
  }

  event_ptr without_questions(const event_ptr& said) const {
    const auto hides
      = [this](const part& element) { return is_question(element); };
    if (std::ranges::none_of(said->content.parts, hides))
      return said;
    auto rest = std::make_shared<event>(*said);
    std::erase_if(rest->content.parts, hides);
    return rest;
  }

  void add(shared_content said) {
    if (!said)
      return;
    contents_.push_back(std::move(said));
    for (const auto& element : contents_.back()->parts) {
      if (const auto* call = element.call())
        open_[call->id] = &calls_.emplace_back(own_call{
          contents_.back().get(), nullptr, awaited_.contains(call->id)});
      else if (const auto* answer = element.response())
        if (const auto found = open_.find(answer->id); found != open_.end())
          found->second->answer = &element;
    }
  }

  // The calls of the runtime itself are among those that wait.
  static bool is_asked(const event& said, const function_call& call) {
    return call.name == confirmation_name
           && is_long_running(found_call{&said, &call});
  }

  void note_calls(const event& said) {
    awaited_.insert(said.long_running_tool_ids.begin(),
                    said.long_running_tool_ids.end());
    for (const auto& element : said.content.parts) {
      const auto* call = element.call();
      if (call == nullptr)
        continue;
      foreign_.erase(call->id);
      if (!is_asked(said, *call))
        continue;
      questions_[call->id] = asked_about(*call);
    }
  }

  void note_foreign(const event& said) {
    for (const auto& element : said.content.parts)
      if (const auto* call = element.call()) {
        foreign_.insert(call->id);
        open_.erase(call->id);
        if (is_asked(said, *call))
          questions_[call->id] = {};
      }
  }

  // What the user answers to the calls of other agents is told like those.
  void read_user(const event_ptr& said) {
    const auto plain = without_questions(said);
    const auto is_foreign = [this](const part& element) {
      return element.response() != nullptr
             && foreign_.contains(element.response()->id);
    };
    if (std::ranges::any_of(plain->content.parts, is_foreign)) {
      event others(*plain);
      std::erase_if(others.content.parts, std::not_fn(is_foreign));
      add(retold(others));
    }
    if (!plain->content.parts.empty())
      add(without(plain, is_foreign));
  }

  // A call without a response gets one: a model refuses a history with a call
  // that nobody has answered.
  static part answer_to(const function_call& made, const own_call& call) {
    if (call.answer != nullptr)
      return *call.answer;
    auto answer = json::object();
    if (call.is_awaited)
      answer["status"] = "waiting for an answer from outside";
    else
      answer["error"] = "the run ended before the tool had answered";
    return part(function_response{made.id, made.name, std::move(answer)});
  }

  // The content with the calls that the newest one answers, or null.
  const content* newest_answered() const {
    const content* made = nullptr;
    for (const auto& element : contents_.back()->parts)
      if (element.response() != nullptr)
        for (const auto& call : calls_)
          if (call.answer == &element)
            made = call.made;
    return made;
  }

  // Puts responses right behind the calls that they answer; those that answer
  // nothing visible are left out. Calls whose answer is the newest thing of all
  // stand at the end with it, so that the model goes on from there.
  std::vector<shared_content> pair_up() {
    if (std::ranges::none_of(contents_, [](const auto& said) {
          return has_responses(*said) || has_calls(*said);
        }))
      return std::move(contents_);
    const auto* last = newest_answered();
    std::vector<shared_content> paired;
    shared_content held;
    auto next = calls_.begin();
    std::deque<own_call>::iterator held_calls;
    for (const auto& said : contents_) {
      if (said.get() == last) {
        held = said;
        held_calls = next;
        next += count_calls(*said);
      } else {
        next = pair(said, next, paired);
      }
    }
    if (held)
      pair(held, held_calls, paired);
    return paired;
  }

  static std::ptrdiff_t count_calls(const content& said) {
    return std::ranges::count_if(said.parts, [](const part& element) {
      return element.call() != nullptr;
    });
  }

  // `next` is the first call of the content; gives the one behind its last.
  static std::deque<own_call>::iterator
  pair(const shared_content& said,
       std::deque<own_call>::iterator next,
       std::vector<shared_content>& paired) {
    if (has_responses(*said)) {
      // What was said beside a response stays where it was said.
      content words(said->role, {});
      std::ranges::copy_if(
        said->parts, std::back_inserter(words.parts), [](const part& element) {
          return element.response() == nullptr && element.call() == nullptr;
        });
      if (!words.parts.empty())
        paired.push_back(std::make_shared<const content>(std::move(words)));
      return next + count_calls(*said);
    }
    paired.push_back(said);
    content answers("user", {});
    for (const auto& element : said->parts)
      if (const auto* call = element.call())
        answers.parts.push_back(answer_to(*call, *next++));
    if (!answers.parts.empty())
      paired.push_back(std::make_shared<const content>(std::move(answers)));
    return next;
  }

  const std::string_view agent_name_;
  std::vector<shared_content> contents_;
  std::deque<own_call> calls_; // Those in contents_, in their order.
  // By id: the newest own call, those of other agents, calls that wait by their
  // nature, and questions to the user.
  std::unordered_map<std::string, own_call*> open_;
  std::unordered_set<std::string> foreign_;
  std::unordered_set<std::string> awaited_;
  std::unordered_map<std::string, std::string> questions_; // To own call.
};

json as_response(const result<json>& outcome) {
  if (!outcome)
    return {{"error", outcome.error().message()}};
  return outcome->is_object() ? *outcome : json{{"result", *outcome}};
}

// Behind the last responses of tools, or before what the user said last.
void insert_instruction(std::string text,
                        std::vector<shared_content>& contents) {
  auto place = contents.end();
  while (place != contents.begin() && (*std::prev(place))->role == "user"
         && !has_responses(**std::prev(place)))
    --place;
  contents.insert(
    place,
    std::make_shared<const content>(content("user", {part(std::move(text))})));
}

// What an agent's final text comes to: itself, or the value that it says.
// Nothing for a blank text where a value is expected.
result<std::optional<json>> read_output(const llm_options& options,
                                        std::string text) {
  if (!options.output_schema)
    return std::optional<json>(std::move(text));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return std::optional<json>();
  const auto misfit = [&options](std::string_view why) {
    return error(errc::model_failed,
                 fmt::format("the answer of agent '{}' does not fit its "
                             "output_schema: {}",
                             options.name,
                             why));
  };
  auto parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return misfit("it is not JSON");
  if (auto fits = options.output_schema->check(parsed); !fits)
    return misfit(fits.error().message());
  return std::optional<json>(std::move(parsed));
}

// A model that has answered nothing at all has failed, though the agent has
// not.
void say_nothing(event& said) {
  auto fields = said.extra.is_null() ? json::object() : said.extra.data();
  fields["errorCode"] = "MODEL_RETURNED_NO_CONTENT";
  fields["errorMessage"] = "the model has answered nothing";
  said.extra = std::move(fields);
}

} // namespace

std::vector<std::shared_ptr<const content>>
visible_contents(const event_slice& events,
                 std::string_view agent_name,
                 std::string_view branch,
                 include_contents which,
                 std::uint64_t first_revision) {
  const auto summed = which == include_contents::since_summary
                        ? sum_up(events, first_revision)
                        : summed_history{events, nullptr};
  const shown_events shown(summed.events, branch);
  history_reader reader(agent_name);
  std::size_t index = 0;
  if (which == include_contents::none)
    index = current_turn(shown, agent_name);
  else if (which == include_contents::all && first_revision > 1)
    index = first_beginning(shown, agent_name);
  for (; index < shown.size(); ++index)
    if (const auto& said = shown[index]; has_content(*said))
      reader.read(said);
    else if (!said->partial)
      reader.read_pause(*said);
  auto contents = reader.take();
  if (summed.summary)
    contents.insert(contents.begin(), summed.summary);
  return contents;
}

task<std::string> resolve_instruction(const instruction& source,
                                      const readonly_context& context) {
  std::string made;
  if (const auto* text = std::get_if<std::string>(&source.source())) {
    if (text->find('{') == std::string::npos)
      co_return *text;
    made = co_await inject_session_state_async(*text, context);
    co_return made;
  }
  std::optional<error> failure;
  const auto whose
    = fmt::format("instruction provider of agent '{}'", context.agent_name());
  try {
    if (const auto* plain = std::get_if<instruction_provider>(&source.source()))
      made = (*plain)(context);
    else
      made = co_await std::get<instruction_coroutine>(source.source())(context);
  } catch (const error&) {
    throw;
  } catch (const std::exception& thrown) {
    failure = error(errc::callback_failed,
                    fmt::format("{}: {}", whose, thrown.what()));
  } catch (...) {
    failure = error(
      errc::callback_failed,
      fmt::format("{} threw something that is no std::exception", whose));
  }
  if (failure)
    throw *failure;
  co_return made;
}

std::string
assemble_instruction(const std::string& global,
                     const std::string& fixed,
                     std::string own,
                     std::string_view hint,
                     std::vector<std::shared_ptr<const content>>& contents) {
  std::string whole;
  const auto add = [&whole](std::string_view part) {
    if (part.empty())
      return;
    if (!whole.empty())
      whole += "\n\n";
    whole += part;
  };
  add(global);
  add(fixed);
  if (fixed.empty())
    add(own);
  else if (!own.empty())
    insert_instruction(std::move(own), contents);
  add(hint);
  return whole;
}

result<event> make_response_event(const llm_options& options,
                                  model_response response,
                                  environment& environment) {
  event said(std::move(response.said));
  said.partial = response.partial;
  said.extra = std::move(response.extra);
  if (said.content.role.empty())
    said.content.role = "model";
  if (said.partial)
    return said;
  if (said.content.parts.empty() && said.field("errorCode").empty())
    say_nothing(said);
  for (auto& element : said.content.parts)
    if (auto* call = std::get_if<function_call>(&element.body)) {
      call->id = "adk-" + environment.new_id();
      if (call->args.is_null())
        call->args = json::object();
    }
  const bool has_text
    = std::ranges::any_of(said.content.parts, [](const part& element) {
        return element.text() != nullptr && !element.thought;
      });
  if (!has_text || !is_final(said))
    return said;
  auto output = read_output(options, said.text());
  if (!output)
    return output.error();
  // The key was checked when the agent was made.
  if (!options.output_key.empty() && *output)
    if (auto recorded = said.actions.state_delta.record(
          options.output_key, operation_kind::set, std::move(**output));
        !recorded)
      return recorded.error();
  return said;
}

event make_tool_event(std::vector<tool_call> answered) {
  event said;
  said.content.role = "user";
  for (auto& done : answered) {
    if (!is_pending(done))
      said.content.parts.emplace_back(function_response{
        done.call.id, done.call.name, as_response(done.outcome)});
    said.actions.state_delta.merge(done.recorded);
    said.actions.state_delta.merge(done.actions.state_delta);
    said.actions.escalate = said.actions.escalate || done.actions.escalate;
    said.actions.skip_summarization
      = said.actions.skip_summarization || done.actions.skip_summarization;
    if (!done.actions.transfer_to_agent.empty())
      said.actions.transfer_to_agent
        = std::move(done.actions.transfer_to_agent);
    for (const auto& [name, version] : done.actions.artifact_delta) {
      auto& newest = said.actions.artifact_delta[name];
      newest = std::max(newest, version);
    }
    if (!done.actions.extra.is_null()) {
      auto joined = said.actions.extra.is_null() ? json::object()
                                                 : said.actions.extra.data();
      joined.update(done.actions.extra.data(), true);
      said.actions.extra = std::move(joined);
    }
  }
  return said;
}

} // namespace troupe

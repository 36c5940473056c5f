#include "troupe/agents/turns/visible_contents.hpp"

#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/fence.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/open_turn.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/agents/turns/summed_ranges.hpp"
#include "troupe/agents/turns/tree.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace troupe {

namespace {

using shared_content = std::shared_ptr<const content>;

shared_content part_of(const event_ptr& said) {
  return {said, &said->content}; // Shares the event, no copy.
}

bool has_calls(const content& said) {
  return std::ranges::any_of(
    said.parts, [](const part& element) { return element.call() != nullptr; });
}

// Code that a vendor has run, or its output, as text; empty for another part.
std::string code_in(const part& element) {
  const auto work = server_part_of(element);
  return work ? text_of_code(*work) : std::string();
}

// Content of another agent as words of the user, quoted between markers. Null
// if nothing of it is shown.
shared_content retold(const event& said) {
  content told("user", {part(quote_preamble())});
  const auto quote = [&told](std::string heading, std::string_view text) {
    told.parts.emplace_back(fmt::format("{}\n{}",
                                        without_markers(std::move(heading)),
                                        fenced(fence::quote, text)));
  };
  for (const auto& element : said.content.parts) {
    if (element.thought)
      continue;
    if (const auto* words = element.text()) {
      if (!is_blank(*words))
        quote(fmt::format("[{}] said:", said.author), *words);
    } else if (const auto* call = element.call()) {
      quote(
        fmt::format(
          "[{}] called tool `{}` with parameters:", said.author, call->name),
        to_text(call->args.data()));
    } else if (const auto* answer = element.response()) {
      quote(fmt::format(
              "[{}] `{}` tool returned result:", said.author, answer->name),
            to_text(answer->response.data()));
      for (auto& attached : attached_parts(*answer))
        told.parts.push_back(std::move(attached));
    } else if (const auto text = code_in(element); !text.empty()) {
      quote(fmt::format("[{}] said:", said.author), text);
    } else {
      told.parts.push_back(element);
    }
  }
  return told.parts.size() > 1
           ? std::make_shared<const content>(std::move(told))
           : nullptr;
}

// Returns true if the event holds nothing but a hand-over.
bool is_transfer(const event& said) {
  return std::ranges::all_of(said.content.parts, [](const part& element) {
    return (element.call() != nullptr
            && element.call()->name == transfer_tool_name)
           || (element.response() != nullptr
               && element.response()->name == transfer_tool_name);
  });
}

// Returns true if a user's event only answers calls. It continues the current
// turn of the agent that made the calls.
bool goes_on(const event& said) {
  return said.author == "user" && only_answers(said.content);
}

// The events that are visible on a branch, oldest first.
class shown_events {
public:
  shown_events(const event_slice& events, std::string_view branch)
    : events_(events),
      places_(places_on(events, branch)) {}

  std::size_t size() const {
    return places_ ? places_->size() : events_.size();
  }

  const event_ptr& operator[](std::size_t index) const {
    return events_[place(index)];
  }

  std::uint64_t number(std::size_t index) const {
    return events_.number(place(index));
  }

  // Index of the first event from `number` on, which is not before `index`.
  std::size_t from(std::uint64_t number, std::size_t index) const {
    // clang 14 has no view of numbers that an algorithm of ranges takes.
    auto last = size();
    while (index < last) {
      const auto middle = index + (last - index) / 2;
      if (this->number(middle) < number)
        index = middle + 1;
      else
        last = middle;
    }
    return index;
  }

private:
  // The places of the events that belong to the branch and to no task or call
  // of another agent. Unset if these are all events.
  static std::optional<std::vector<std::size_t>>
  places_on(const event_slice& events, std::string_view branch) {
    auto places = events.shown_on(branch);
    const auto is_hidden = [&events, branch](std::size_t place) {
      return is_isolated(*events[place], branch);
    };
    if (!places) {
      std::size_t first = 0;
      while (first < events.size() && !is_hidden(first))
        ++first;
      if (first == events.size())
        return std::nullopt;
      places.emplace(events.size());
      std::iota(places->begin(), places->end(), std::size_t{0});
    }
    std::erase_if(*places, is_hidden);
    return places;
  }

  std::size_t place(std::size_t index) const {
    return places_ ? (*places_)[index] : index;
  }

  const event_slice& events_;
  const std::optional<std::vector<std::size_t>> places_; // Unset: all events.
};

bool has_content(const event& said) {
  return !said.partial && !said.content.parts.empty();
}

// Index of the first event of the current turn: the latest event of the user or
// of another agent before `end`. Answers of the user and hand-overs do not
// count.
std::size_t current_turn_start(const shown_events& events,
                               std::string_view agent_name,
                               std::size_t end) {
  for (auto index = end; index > 0; --index)
    if (const auto& said = *events[index - 1];
        has_content(said) && said.author != agent_name && !is_transfer(said)
        && !goes_on(said))
      return index - 1;
  return 0;
}

// Ids of calls that were made before `start` and are answered from there on.
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

// Index of the first event of the current turn. If an event of this turn
// answers older calls of the agent, the current turn is the one of these calls.
std::size_t current_turn(const shown_events& events,
                         std::string_view agent_name) {
  const auto start = current_turn_start(events, agent_name, events.size());
  const auto answered = answered_behind(events, start);
  for (auto index = start; index > 0 && !answered.empty(); --index)
    if (const auto& said = *events[index - 1]; said.author == agent_name)
      for (const auto& element : said.content.parts)
        if (element.call() != nullptr && answered.contains(element.call()->id))
          return current_turn_start(events, agent_name, index - 1);
  return start;
}

// Index of the first event by the user or by another agent. 0 if there is none;
// then all events are shown.
std::size_t first_beginning(const shown_events& events,
                            std::string_view agent_name) {
  for (std::size_t index = 0; index < events.size(); ++index)
    if (const auto& said = *events[index];
        has_content(said) && said.author != agent_name && !goes_on(said))
      return index;
  return 0;
}

// The summaries that count, without the events that have to stay visible: those
// from `message` on, and those from the first call on that is answered behind
// the newest summary.
std::vector<summed_range>
sum_up(const event_slice& events, std::uint64_t message, std::uint64_t oldest) {
  auto ranges = summed_ranges(events, oldest);
  if (ranges.empty())
    return ranges;
  auto first = message > 0 ? message : UINT64_MAX;
  const auto behind
    = events.size() - events.from(ranges.back().last + 1).size();
  auto answered = answered_behind(events, behind);
  for (auto index = behind; index > 0 && !answered.empty(); --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* call = element.call();
          call != nullptr && answered.erase(call->id) > 0)
        first = std::min(first, events.number(index - 1));
  for (auto& each : ranges)
    each.last = std::min(each.last, first - 1);
  // All of its events are shown, so the summary would tell them twice.
  std::erase_if(ranges,
                [](const auto& each) { return each.last < each.first; });
  return ranges;
}

shared_content told_summary(const summary& made) {
  content told("user", {part("For context, a summary of what came before:")});
  for (const auto& element : made.content.parts)
    if (!element.thought)
      told.parts.push_back(element);
  return std::make_shared<const content>(std::move(told));
}

// Reads a history from the oldest event on, and makes the contents for the
// model.
//
// Calls and responses are matched by their ids; a response belongs to the
// newest call before it. Questions to the user about calls, and the answers to
// them, are internal to the runtime and are not shown to a model.
class history_reader {
public:
  history_reader(std::string_view agent_name, std::string_view visit)
    : agent_name_(agent_name),
      visit_(visit) {}

  void read_any(const event_ptr& said) {
    if (has_content(*said))
      read(said);
    else if (closes_calls(*said))
      close_calls();
    else if (!said->partial)
      read_pause(*said);
  }

  // Shows a summary in place of its events.
  void read_summary(const summary& made) { add(told_summary(made)); }

  std::vector<shared_content> take() { return pair_up(); }

private:
  void read(const event_ptr& said) {
    if (is_node_input(*said)) {
      // A message to the agents of one visit.
      if (is_input_of(*said, visit_))
        add(part_of(said));
    } else if (said->author == agent_name_) {
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

  // Notes that a paused run waits for the calls in this event.
  void read_pause(const event& said) {
    for (const auto& id : waits_in(said))
      if (const auto asked = questions_.find(id); asked != questions_.end())
        if (const auto found = open_.find(asked->second); found != open_.end())
          found->second->is_awaited = true;
  }

  // A fork does not get the answers to calls that were open when it began.
  void close_calls() {
    for (auto& each : calls_)
      each.is_closed = each.answer == nullptr;
  }

  // A call by the agent itself, and its result.
  struct own_call {
    const content* made = nullptr;
    const part* answer = nullptr; // Points into contents_.
    bool is_awaited = false;
    bool is_closed = false;
  };

  bool is_question(const part& element) const {
    const auto* call = element.call();
    const auto* answer = element.response();
    return (call != nullptr && questions_.contains(call->id))
           || (answer != nullptr && questions_.contains(answer->id));
  }

  // The content without hidden parts; null if nothing is left.
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

  // Only the runtime makes questions, and marks them as long-running. A model
  // may make another call of the same name.
  static bool is_asked(const event& said, const function_call& call) {
    return (call.name == confirmation_name || call.name == request_input_name)
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

  // Answers of the user to calls of other agents are retold like those calls.
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

  // Makes a response for a call that has none: vendors refuse a history with an
  // unanswered call.
  static part answer_to(const function_call& made, const own_call& call) {
    if (call.answer != nullptr)
      return *call.answer;
    auto answer = json::object();
    if (call.is_closed)
      answer["error"] = "the session was forked before the tool had answered";
    else if (call.is_awaited)
      answer["status"] = "waiting for an answer from outside";
    else
      answer["error"] = "the run ended before the tool had answered";
    return part(function_response{made.id, made.name, std::move(answer)});
  }

  // The content whose calls the newest content answers, or null.
  const content* newest_answered() const {
    const content* made = nullptr;
    for (const auto& element : contents_.back()->parts)
      if (element.response() != nullptr)
        for (const auto& call : calls_)
          if (call.answer == &element)
            made = call.made;
    return made;
  }

  // Moves responses directly after their calls; vendors require that.
  // Responses without a visible call are dropped. Calls that the newest
  // content answers move to the end with their responses, so that the model
  // continues from there.
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

  // `next` is the first call of the content. Returns the call after its last.
  static std::deque<own_call>::iterator
  pair(const shared_content& said,
       std::deque<own_call>::iterator next,
       std::vector<shared_content>& paired) {
    if (has_responses(*said)) {
      // Text beside a response keeps its place.
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
  const std::string_view visit_;
  std::vector<shared_content> contents_;
  std::deque<own_call> calls_; // The calls in contents_, in order.
  // By call id: the newest own call, calls of other agents, long-running calls,
  // and questions to the user.
  std::unordered_map<std::string, own_call*> open_;
  std::unordered_set<std::string> foreign_;
  std::unordered_set<std::string> awaited_;
  std::unordered_map<std::string, std::string> questions_; // To the own call.
};

} // namespace

std::vector<std::shared_ptr<const content>>
visible_contents(const event_slice& events,
                 std::string_view agent_name,
                 std::string_view branch,
                 include_contents which,
                 std::uint64_t message,
                 std::uint64_t oldest,
                 std::string_view visit) {
  const auto summed = which == include_contents::since_summary
                        ? sum_up(events, message, oldest)
                        : std::vector<summed_range>();
  const shown_events shown(events, branch);
  history_reader reader(agent_name, visit);
  std::size_t index = 0;
  // A delegated agent begins with the arguments of its call, so its own events
  // may come first.
  if (which == include_contents::none)
    index = current_turn(shown, agent_name);
  else if (call_of_branch(branch).empty() && events.first_number() > 1
           && (summed.empty() || summed.front().first > events.first_number()))
    index = first_beginning(shown, agent_name);
  for (auto next = summed.begin();; ++next) {
    const auto end
      = next == summed.end() ? shown.size() : shown.from(next->first, index);
    for (; index < end; ++index)
      reader.read_any(shown[index]);
    if (next == summed.end())
      break;
    reader.read_summary(next->made);
    index = shown.from(next->last + 1, index);
  }
  return reader.take();
}

} // namespace troupe

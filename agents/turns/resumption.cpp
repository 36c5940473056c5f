#include "troupe/agents/turns/resumption.hpp"

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using id_list = std::vector<std::string>;

bool contains(const id_list& ids, std::string_view id) {
  return std::ranges::find(ids, id) != ids.end();
}

error refused(std::string_view id, std::string_view why) {
  return {errc::invalid_argument,
          fmt::format("the function response '{}' {}", id, why)};
}

// The event's fields about pauses, or null.
const json* state_of(const event& said) {
  const auto& extra = said.actions.extra.data();
  if (!extra.is_object())
    return nullptr;
  const auto found = extra.find("agentState");
  return found != extra.end() && found->is_object() ? &*found : nullptr;
}

// The id in field `name`, or empty.
std::string id_in(const json& state, const char* name) {
  const auto found = state.find(name);
  return found != state.end() && found->is_string() ? found->get<std::string>()
                                                    : std::string();
}

void set_state(event& said, json state) {
  auto actions
    = said.actions.extra.is_null() ? json::object() : said.actions.extra.data();
  actions["agentState"] = std::move(state);
  said.actions.extra = std::move(actions);
}

struct pause {
  resumption from;
  id_list waits;
  /// Those of `waits` whose answers count: a node of a workflow may have ended
  /// in a run that failed later. All of them if each node has ended.
  id_list open;
  /// A run has continued from the pause and has not failed.
  bool is_claimed = false;
  /// The session was forked after the pause.
  bool is_closed = false;
};

// Number of the newest event that closes the pauses before it; 0 if there is
// none. It counts also if a rewind has taken it back: the answers go to the
// session that was forked.
std::uint64_t newest_closing(const event_slice& events) {
  for (auto index = events.size(); index > 0; --index)
    if (closes_calls(*events[index - 1]))
      return events.number(index - 1);
  return 0;
}

// Visits of workflows whose ends the session has: run, path of the workflow and
// `node@visit`.
using ended_visits
  = std::set<std::tuple<std::string, std::string, std::string>>;

void add_open_waits(const checkpoint& from,
                    const ended_visits& ended,
                    id_list& into) {
  into.insert(into.end(), from.waits_for.begin(), from.waits_for.end());
  if (from.at)
    add_open_waits(*from.at, ended, into);
  for (const auto& each : from.lanes)
    if (each.at && !ended.contains({from.run, from.path, each.name}))
      add_open_waits(*each.at, ended, into);
}

// Those that no rewind has taken back, newest first.
std::vector<pause> pauses_in(const event_slice& all) {
  const auto closing = newest_closing(all);
  const auto events = all.live();
  std::vector<pause> found;
  id_list claimed;
  id_list released; // Ids of messages.
  ended_visits ended;
  for (auto index = events.size(); index > 0; --index) {
    const auto& said = *events[index - 1];
    if (const auto told = record_in(said);
        told && (told->is == workflow_record::kind::end || told->is_skipped))
      ended.emplace(told->at.run,
                    told->at.path,
                    fmt::format("{}@{}", told->node, told->ordinal));
    const auto* state = state_of(said);
    if (state == nullptr)
      continue;
    if (auto id = id_in(*state, "releases"); !id.empty())
      released.push_back(std::move(id));
    if (auto id = id_in(*state, "resumes");
        !id.empty() && !contains(released, said.id))
      claimed.push_back(std::move(id));
    const auto kept = state->find("checkpoint");
    if (kept == state->end())
      continue;
    if (auto where = checkpoint_from_json(*kept)) {
      auto waits = waits_of(*where);
      id_list open;
      add_open_waits(*where, ended, open);
      if (open.empty())
        open = waits;
      found.push_back({{said.id, std::move(where)},
                       std::move(waits),
                       std::move(open),
                       contains(claimed, said.id),
                       events.number(index - 1) < closing});
    }
  }
  return found;
}

result<void> check_response(const function_response& answer,
                            const event_slice& events) {
  const auto found = find_call(events.live(), answer.id);
  if (!found && find_call(events, answer.id))
    return refused(
      answer.id, "answers a call that a rewind of the session has taken back");
  if (!found)
    return refused(answer.id, "answers no call of this session");
  if (found->call->name != answer.name)
    return refused(answer.id,
                   fmt::format("names '{}', but the call is one of '{}'",
                               answer.name,
                               found->call->name));
  if (!is_long_running(*found))
    return refused(
      answer.id,
      fmt::format("answers a call of '{}', which does not wait for "
                  "an answer from outside",
                  answer.name));
  // Only the runtime's own questions have a schema that was checked.
  if (const auto asked = record_in(*found->event);
      asked && asked->is == workflow_record::kind::question)
    if (auto read
        = read_answer(found->call->args.data(), answer.response.data());
        !read)
      return refused(
        answer.id,
        fmt::format("does not fit the question: {}", read.error().message()));
  if (answer.name != confirmation_name)
    return {};
  if (auto read = read_confirmation(answer.response.data()); !read)
    return refused(answer.id,
                   fmt::format("does not fit: {}", read.error().message()));
  return {};
}

} // namespace

std::optional<found_call> find_call(const event_slice& events,
                                    std::string_view id) {
  if (id.empty())
    return std::nullopt;
  for (auto index = events.size(); index > 0; --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* call = element.call(); call != nullptr && call->id == id)
        return found_call{events[index - 1].get(), call};
  return std::nullopt;
}

bool is_long_running(const found_call& found) {
  return contains(found.event->long_running_tool_ids, found.call->id);
}

bool has_responses(const content& message) {
  return std::ranges::any_of(message.parts, [](const part& element) {
    return element.response() != nullptr;
  });
}

bool only_answers(const content& message) {
  return std::ranges::all_of(message.parts, [](const part& element) {
    return element.response() != nullptr;
  });
}

result<tool_confirmation> read_confirmation(const json& response) {
  auto answer = response;
  // Some clients send the object as text.
  if (answer.is_object() && answer.size() == 1 && answer.contains("response")
      && answer.at("response").is_string()) {
    auto unpacked = parse_json(answer.at("response").get<std::string>());
    if (!unpacked)
      return unpacked.error();
    answer = std::move(*unpacked);
  }
  if (!answer.is_object() || !answer.contains("confirmed")
      || !answer.at("confirmed").is_boolean())
    return error(errc::invalid_argument,
                 "the answer to a request for confirmation is {\"confirmed\": "
                 "true or false}");
  tool_confirmation read;
  read.confirmed = answer.at("confirmed").get<bool>();
  if (answer.contains("hint") && answer.at("hint").is_string())
    read.hint = answer.at("hint").get<std::string>();
  if (answer.contains("payload"))
    read.payload = value(answer.at("payload"));
  return read;
}

result<std::optional<resumption>> check_responses(const content& message,
                                                  const event_slice& events,
                                                  const answer_rights& rights) {
  std::optional<resumption> resumed;
  if (!has_responses(message))
    return resumed;
  const auto pauses = pauses_in(events);
  id_list seen;
  id_list needed; // Calls of the pause whose answers count.
  for (const auto& element : message.parts) {
    if (element.response() == nullptr)
      return error(errc::invalid_argument,
                   "a message with function responses holds nothing else");
    const auto& answer = *element.response();
    if (contains(seen, answer.id))
      return refused(answer.id, "comes twice");
    seen.push_back(answer.id);
    if (auto fits = check_response(answer, events); !fits)
      return fits.error();
    const auto waits
      = std::ranges::find_if(pauses, [&answer](const pause& each) {
          return contains(each.waits, answer.id);
        });
    if (waits == pauses.end()) {
      if (answer.name == confirmation_name || answer.name == request_input_name)
        return refused(answer.id,
                       "answers a question that is not open: the run that has "
                       "asked it did not pause, or has failed; run the agent "
                       "again");
      if (!rights.takes_news)
        return refused(answer.id,
                       "answers a call that no run waits for, and the root "
                       "agent is not an LLM agent, which could handle it");
      continue;
    }
    if (waits->is_closed)
      return refused(answer.id,
                     "answers a call that was closed when this session was "
                     "forked: answer it in the session that was forked, or "
                     "fork that with keep_open_calls");
    if (waits->is_claimed && !rights.takes_over)
      return error(
        errc::conflict,
        fmt::format("another run has continued from the pause of '{}'; it has "
                    "the answer, or waits for one when it has paused again. If "
                    "the process of that run has ended, answer with take_over",
                    answer.id));
    if (resumed && resumed->event_id != waits->from.event_id)
      return refused(answer.id,
                     "belongs to another run than the responses before it; "
                     "send a message to each run");
    resumed = waits->from;
    needed = waits->open;
  }
  if (resumed && std::ranges::none_of(seen, [&needed](const auto& id) {
        return contains(needed, id);
      }))
    return refused(seen.front(),
                   fmt::format("comes too late: the node that asked has ended "
                               "with an earlier answer; the run waits for {}",
                               fmt::join(needed, ", ")));
  return resumed;
}

std::vector<std::string> open_ids(const event_slice& events) {
  id_list open;
  const auto pauses = pauses_in(events);
  for (auto each = pauses.rbegin(); each != pauses.rend(); ++each)
    for (const auto& id : each->open)
      if (!each->is_claimed && !each->is_closed && !contains(open, id))
        open.push_back(id);
  return open;
}

std::optional<resumption> find_pause(const event_slice& events,
                                     std::string_view event_id) {
  for (auto& each : pauses_in(events))
    if (each.from.event_id == event_id)
      return std::move(each.from);
  return std::nullopt;
}

event make_pause_event(std::string root_name, const checkpoint& where) {
  auto state = json::object();
  state["checkpoint"] = to_json(where);
  state["waitsFor"] = waits_of(where);
  event made;
  made.author = std::move(root_name);
  set_state(made, std::move(state));
  return made;
}

std::vector<std::string> waits_in(const event& said) {
  id_list ids;
  const auto* state = state_of(said);
  if (state == nullptr || !state->contains("waitsFor")
      || !state->at("waitsFor").is_array())
    return ids;
  for (const auto& id : state->at("waitsFor"))
    if (id.is_string())
      ids.push_back(id.get<std::string>());
  return ids;
}

void claim_pause(event& message, const std::string& pause_id) {
  set_state(message, {{"resumes", pause_id}});
}

std::optional<pause_claim> claim_of(const event& message) {
  const auto* state = state_of(message);
  auto id = state == nullptr ? std::string() : id_in(*state, "resumes");
  if (id.empty())
    return std::nullopt;
  return pause_claim{message.id, std::move(id)};
}

std::string released_in(const event& said) {
  const auto* state = state_of(said);
  return state == nullptr ? std::string() : id_in(*state, "releases");
}

event make_fork_event(const fork_origin& origin, bool keeps_open_calls) {
  json from{{"session", origin.session}, {"revision", origin.revision}};
  if (origin.incarnation != 0)
    from["incarnation"] = origin.incarnation;
  json state{{"forkedFrom", std::move(from)}};
  if (keeps_open_calls)
    state["keepsOpenCalls"] = true;
  event made;
  made.author = "system";
  set_state(made, std::move(state));
  return made;
}

std::optional<std::uint64_t> forked_at(const event& said) {
  const auto* state = state_of(said);
  if (state == nullptr || said.author != "system")
    return std::nullopt;
  const auto origin = state->find("forkedFrom");
  if (origin == state->end() || !origin->is_object())
    return std::nullopt;
  const auto revision = origin->find("revision");
  if (revision == origin->end() || !revision->is_number_unsigned())
    return std::nullopt;
  return revision->get<std::uint64_t>();
}

bool closes_calls(const event& said) {
  const auto* state = state_of(said);
  return state != nullptr && state->contains("forkedFrom")
         && !state->contains("keepsOpenCalls");
}

event make_release_event(std::string root_name, const std::string& message_id) {
  event made;
  made.author = std::move(root_name);
  set_state(made, {{"releases", message_id}});
  return made;
}

} // namespace troupe

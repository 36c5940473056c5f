// Traces for the page of ADK, made from the events of a session and the times
// of their steps.
//
// The page refuses the whole trace if one span lacks a field that its kind
// needs.

#include "troupe/agents/turns/step_times.hpp"
#include "troupe/core/rewind.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// The page writes sessions of this user, unless its address names another one.
constexpr std::string_view page_user = "user";
constexpr std::size_t users_max = 100;
constexpr std::size_t events_max = 5'000;

// -- spans ----

std::int64_t nanoseconds_of(timestamp time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           time.time_since_epoch())
    .count();
}

struct span {
  std::string name;
  std::string id;
  std::string parent; // Empty for the whole run.
  timestamp began;
  timestamp ended;
  json attributes;
};

json form_of(const span& made, const std::string& trace) {
  return {{"name", made.name},
          {"trace_id", trace},
          {"span_id", made.id},
          {"parent_span_id", made.parent.empty() ? json() : json(made.parent)},
          {"start_time", nanoseconds_of(made.began)},
          {"end_time", nanoseconds_of(made.ended)},
          {"attributes", made.attributes},
          {"logs", json::array()}};
}

void cover(span& outer, timestamp began, timestamp ended) {
  outer.began = std::min(outer.began, began);
  outer.ended = std::max(outer.ended, ended);
}

std::int64_t count_in(const json& fields, const char* name) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_number_integer()
           ? found->get<std::int64_t>()
           : 0;
}

void add_tokens(json& attributes, const event& said) {
  const auto usage = said.extra.data().find("usageMetadata");
  if (usage == said.extra.data().end() || !usage->is_object())
    return;
  attributes["gen_ai.usage.input_tokens"]
    = count_in(*usage, "promptTokenCount");
  attributes["gen_ai.usage.output_tokens"]
    = count_in(*usage, "candidatesTokenCount");
}

// -- one run ----

// The spans of one run: the run, each agent on each branch, and their calls.
class run_trace {
public:
  run_trace(const event& first, std::string session)
    : invocation_(first.invocation_id),
      session_(std::move(session)),
      whole_{"invocation",
             invocation_,
             "",
             first.timestamp,
             first.timestamp,
             common(first)} {}

  void add(const event& said) {
    cover(whole_, said.timestamp, said.timestamp);
    if (said.author == "user")
      return;
    auto& agent = agent_of(said);
    cover(agent, said.timestamp, said.timestamp);
    const auto steps = steps_of(said);
    for (std::size_t index = 0; index < steps.size(); ++index) {
      cover(whole_, steps[index].began, steps[index].ended);
      cover(agent, steps[index].began, steps[index].ended);
      calls_.push_back(call(said, steps[index], index, agent.id));
    }
  }

  void write(json& spans) const {
    spans.push_back(form_of(whole_, invocation_));
    for (const auto& [lane, agent] : agents_)
      spans.push_back(form_of(agent, invocation_));
    for (const auto& each : calls_)
      spans.push_back(form_of(each, invocation_));
  }

private:
  json common(const event& said) const {
    return {{"gcp.vertex.agent.invocation_id", invocation_},
            {"gcp.vertex.agent.event_id", said.id}};
  }

  span& agent_of(const event& said) {
    const auto lane = std::pair(said.branch, said.author);
    const auto found = agents_.find(lane);
    if (found != agents_.end())
      return found->second;
    auto attributes = common(said);
    attributes["gen_ai.operation.name"] = "invoke_agent";
    attributes["gen_ai.agent.name"] = said.author;
    attributes["gen_ai.conversation.id"] = session_;
    return agents_
      .emplace(lane,
               span{"invoke_agent " + said.author,
                    fmt::format("{}-{}", invocation_, agents_.size() + 1),
                    whole_.id,
                    said.timestamp,
                    said.timestamp,
                    std::move(attributes)})
      .first->second;
  }

  span call(const event& said,
            const step_time& step,
            std::size_t index,
            const std::string& agent) const {
    const bool is_model = step.kind == step_kind::model;
    auto attributes = common(said);
    attributes["gen_ai.operation.name"]
      = is_model ? "generate_content" : "execute_tool";
    if (is_model) {
      attributes["gen_ai.request.model"] = step.name;
      add_tokens(attributes, said);
    } else {
      attributes["gen_ai.tool.name"] = step.name;
      attributes["gen_ai.tool.call.id"] = step.call_id;
    }
    return {is_model ? "call_llm" : "execute_tool " + step.name,
            fmt::format("{}-{}", said.id, index + 1),
            agent,
            step.began,
            step.ended,
            std::move(attributes)};
  }

  std::string invocation_;
  std::string session_;
  span whole_;
  std::map<std::pair<std::string, std::string>, span> agents_;
  std::vector<span> calls_;
};

json spans_of(const session& shown) {
  std::vector<std::string> order;
  std::map<std::string, run_trace> runs;
  for (const auto& said : shown.events()) {
    if (said->invocation_id.empty() || is_rewind(*said))
      continue;
    const auto [run, is_new]
      = runs.try_emplace(said->invocation_id, *said, shown.key().id);
    if (is_new)
      order.push_back(said->invocation_id);
    run->second.add(*said);
  }
  auto spans = json::array();
  for (const auto& each : order)
    runs.at(each).write(spans);
  return spans;
}

// -- the session ----

// Looks for the session, whose user the request does not name: first at the
// user of the page, then at the others.
struct trace_search : std::enable_shared_from_this<trace_search> {
  trace_search(served_ptr shared, exchange from)
    : on(std::move(shared)),
      asked(std::move(from)) {}

  void start() {
    if (!asked.who.sees_all()) {
      users = {asked.who.user};
      return look(0);
    }
    on->on.sessions()
      .list_users({spelled(asked.path["app"]), users_max})
      .then([self = shared_from_this()](const result<name_page>& found) {
        if (!found)
          return self->asked.to.send(failure(found.error()));
        self->users = {std::string(page_user)};
        for (const auto& each : found->names)
          self->users.push_back(each);
        self->look(0);
      });
  }

  void look(std::size_t index) {
    if (index == users.size())
      return asked.to.send(json_text_response("[]"));
    on->on.sessions()
      .get({spelled(asked.path["app"]),
            users[index],
            spelled(asked.path["session"])},
           {.num_recent_events = events_max})
      .then([self = shared_from_this(), index](const result<session>& found) {
        if (found)
          return self->asked.to.send(json_response(spans_of(*found)));
        if (found.error().code() != errc::not_found)
          return self->asked.to.send(failure(found.error()));
        self->look(index + 1);
      });
  }

  const served_ptr on;
  const exchange asked;
  std::vector<std::string> users;
};

void tell_trace(const served_ptr& on, exchange asked) {
  std::make_shared<trace_search>(on, std::move(asked))->start();
}

} // namespace

void add_traces(router& routes, const served_ptr& on) {
  routes.add("GET",
             "/dev/apps/{app}/debug/trace/session/{session}",
             handled_by(on, tell_trace));
}

} // namespace troupe::serving

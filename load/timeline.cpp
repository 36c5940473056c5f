#include "troupe/load/timeline.hpp"

#include "troupe/agents/turns/step_times.hpp"
#include "troupe/contexts/first_invocation.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/rewind.hpp"
#include "troupe/load/pages/bar.hpp"
#include "troupe/load/pages/visit_lines.hpp"
#include "troupe/load/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace troupe::load {

namespace {

using std::chrono::nanoseconds;
using form = timeline_step::form;

// Shorter gaps are not waits, but work of the runtime between two steps.
constexpr nanoseconds wait_min = std::chrono::microseconds(100);

// A text from a log, as one line: it must not start a line of its own.
std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

// The names in a branch: for each level that of the fan-out and of the lane.
std::vector<std::string_view> names_of(std::string_view branch) {
  std::vector<std::string_view> names;
  while (!branch.empty()) {
    const auto end = branch.find('.');
    names.push_back(branch.substr(0, end));
    branch.remove_prefix(end == branch.npos ? branch.size() : end + 1);
  }
  return names;
}

// Returns true if work on one branch can be the reason for work on the other.
// Lanes of one fan-out do not wait for each other. A fan-out waits for an
// earlier one on its lane.
bool are_related(std::string_view left, std::string_view right) {
  const auto ours = names_of(left);
  const auto theirs = names_of(right);
  const auto shared = std::min(ours.size(), theirs.size());
  for (std::size_t level = 0; level < shared; ++level)
    if (ours[level] != theirs[level])
      return level % 2 == 0; // Different fan-outs, not lanes of one.
  return true;
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// A step of which only the end is known.
timeline_step derived_step(const event& said) {
  timeline_step step;
  std::vector<std::string> calls;
  std::vector<std::string> responses;
  for (const auto& element : said.content.parts) {
    // The runtime asks for permissions, and no model does.
    if (const auto* wanted = element.call();
        wanted != nullptr && wanted->name != confirmation_name
        && wanted->name != request_input_name)
      calls.push_back(wanted->name);
    if (const auto* given = element.response())
      responses.push_back(given->name);
  }
  if (!responses.empty()) {
    step.kind = form::tool;
    step.name = joined(responses);
  } else if (!calls.empty()) {
    step.kind = form::model;
    step.detail = "calls " + joined(calls);
  } else if (said.extra.data().contains("usageMetadata")
             || said.extra.data().contains("finishReason")
             || said.extra.data().contains("modelVersion")) {
    step.kind = form::model;
  }
  return step;
}

std::uint64_t tokens_of(const event& said) {
  const auto& fields = said.extra.data();
  const auto usage = fields.find("usageMetadata");
  if (usage == fields.end() || !usage->is_object())
    return 0;
  const auto total = usage->find("totalTokenCount");
  return total != usage->end() && total->is_number_integer()
           ? static_cast<std::uint64_t>(
             std::max<std::int64_t>(total->get<std::int64_t>(), 0))
           : 0;
}

nanoseconds length(const timeline_step& step) {
  return step.end - step.begin;
}

// The time in which at least one span was active.
nanoseconds covered(std::vector<std::pair<nanoseconds, nanoseconds>> spans) {
  std::ranges::sort(spans);
  nanoseconds sum{0};
  nanoseconds reached = nanoseconds::min();
  for (const auto& [begin, end] : spans) {
    if (end > std::max(begin, reached))
      sum += end - std::max(begin, reached);
    reached = std::max(reached, end);
  }
  return sum;
}

// Finds the longest chain of lanes by their work.
class chain_finder {
public:
  struct chain {
    nanoseconds work{0};
    std::size_t model_calls = 0;
  };

  chain_finder(const timeline& shown, bool counts_other) {
    for (const auto& lane : shown.lanes)
      for (const auto& step : lane.steps)
        if (step.kind != form::wait
            && (step.kind != form::other || counts_other))
          all_.push_back({names_of(lane.branch), &step});
    std::ranges::stable_sort(
      all_, {}, [](const place& each) { return each.step->begin; });
  }

  chain longest() const { return longest(all_, 0); }

private:
  struct place {
    std::vector<std::string_view> names;
    const timeline_step* step;
  };

  using places = std::vector<place>;

  // The longest chain of steps that share their first `level` names, ordered by
  // beginning: the work on that lane itself, plus the longest chain in each of
  // its fan-outs.
  static chain longest(const places& steps, std::size_t level) {
    chain found;
    std::vector<std::pair<nanoseconds, nanoseconds>> own;
    std::map<std::string_view, places> fan_outs;
    for (const auto& each : steps) {
      if (each.names.size() > level) {
        fan_outs[each.names[level]].push_back(each);
        continue;
      }
      own.emplace_back(each.step->begin, each.step->end);
      found.model_calls += each.step->kind == form::model ? 1 : 0;
    }
    found.work = covered(std::move(own));
    for (const auto& [name, below] : fan_outs) {
      const auto slowest = longest_of_rounds(below, level);
      found.work += slowest.work;
      found.model_calls += slowest.model_calls;
    }
    return found;
  }

  // A fan-out that runs again, as in a loop, starts when all its lanes have
  // ended.
  static chain longest_of_rounds(const places& steps, std::size_t level) {
    chain sum;
    for (std::size_t first = 0; first < steps.size();) {
      auto end = steps[first].step->end;
      auto last = first + 1;
      for (; last < steps.size() && steps[last].step->begin < end; ++last)
        end = std::max(end, steps[last].step->end);
      std::map<std::string_view, places> lanes;
      for (auto index = first; index < last; ++index) {
        const auto& names = steps[index].names;
        lanes[names.size() > level + 1 ? names[level + 1] : std::string_view()]
          .push_back(steps[index]);
      }
      chain slowest;
      for (const auto& [name, lane] : lanes)
        if (const auto reached = longest(lane, level + 2);
            reached.work >= slowest.work)
          slowest = reached;
      sum.work += slowest.work;
      sum.model_calls += slowest.model_calls;
      first = last;
    }
    return sum;
  }

  places all_;
};

class timeline_maker {
public:
  explicit timeline_maker(std::vector<const event*> events)
    : events_(std::move(events)) {}

  timeline make() {
    const auto& first = *events_.front();
    made_.invocation = first.invocation_id;
    made_.first_invocation = first_invocation(first);
    made_.started = first.timestamp;
    for (const auto* said : events_)
      made_.started = std::min(made_.started, said->timestamp);
    for (std::size_t index = 0; index < events_.size(); ++index)
      add(index);
    made_.error = events_.back()->field("errorCode");
    finish();
    return std::move(made_);
  }

private:
  nanoseconds since_start(timestamp time) const {
    // Bounded, since another program may have written the times in the log.
    constexpr std::chrono::microseconds longest = std::chrono::hours(24 * 366);
    if (time <= made_.started)
      return nanoseconds(0);
    const auto apart
      = static_cast<std::uint64_t>(time.time_since_epoch().count())
        - static_cast<std::uint64_t>(made_.started.time_since_epoch().count());
    return apart > static_cast<std::uint64_t>(longest.count())
             ? nanoseconds(longest)
             : nanoseconds(
               std::chrono::microseconds(static_cast<std::int64_t>(apart)));
  }

  timeline_lane& lane_of(const event& said) {
    const auto [known, is_new] = places_.try_emplace(
      std::pair(said.branch, said.author), made_.lanes.size());
    if (is_new) {
      auto& added = made_.lanes.emplace_back();
      added.agent = said.author;
      added.branch = said.branch;
    }
    return made_.lanes[known->second];
  }

  // End of the event that the next one had to wait for.
  nanoseconds ready_for(std::size_t index) const {
    while (index-- > 0)
      if (are_related(events_[index]->branch, events_[next_]->branch))
        return since_start(events_[index]->timestamp);
    return nanoseconds(0);
  }

  void add(std::size_t index) {
    next_ = index;
    const auto& said = *events_[index];
    const auto end = since_start(said.timestamp);
    made_.wall = std::max(made_.wall, end);
    made_.tokens += tokens_of(said);
    if (said.author == "user"
        || (said.content.parts.empty() && said.field("errorCode").empty()))
      return;
    const auto ready = ready_for(index);
    std::vector<timeline_step> steps;
    for (const auto& told : steps_of(said)) {
      auto& step = steps.emplace_back();
      step.kind = told.kind == step_kind::model ? form::model : form::tool;
      step.name = told.name;
      step.begin = since_start(told.began);
      step.end = since_start(told.ended);
      made_.wall = std::max(made_.wall, step.end);
    }
    if (steps.empty()) {
      steps.push_back(derived_step(said));
      steps.back().begin = std::min(ready, end);
      steps.back().end = end;
    } else {
      is_told_ = true;
    }
    auto& lane = lane_of(said);
    const auto begin = std::ranges::min(steps, {}, &timeline_step::begin).begin;
    if (begin - ready >= wait_min) {
      auto& waited = lane.steps.emplace_back();
      waited.kind = form::wait;
      waited.begin = ready;
      waited.end = begin;
      waited.event = said.id;
    }
    for (auto& step : steps) {
      step.event = said.id;
      step.error = said.field("errorCode");
      if (step.detail.empty() && step.kind != form::tool)
        step.detail = derived_step(said).detail;
      made_.model_calls += step.kind == form::model ? 1 : 0;
      made_.tool_calls += step.kind == form::tool ? 1 : 0;
      lane.steps.push_back(std::move(step));
    }
  }

  void finish() {
    for (auto& lane : made_.lanes) {
      std::ranges::stable_sort(lane.steps, {}, &timeline_step::begin);
      for (const auto& step : lane.steps)
        if (step.kind == form::model || step.kind == form::tool
            || (step.kind == form::other && !is_told_))
          made_.work += length(step);
    }
    const auto chain = chain_finder(made_, !is_told_).longest();
    made_.longest_lane = chain.work;
    made_.longest_lane_model_calls = chain.model_calls;
    made_.calls_recorded = is_told_;
    put_lanes_in_order();
  }

  // Keeps the lanes of a fan-out together; otherwise orders by beginning.
  void put_lanes_in_order() {
    using place = std::pair<nanoseconds, std::size_t>;
    std::map<std::string, place> first;
    const auto note = [&first](const std::string& name, nanoseconds begin) {
      auto& known = first.try_emplace(name, begin, first.size()).first->second;
      known.first = std::min(known.first, begin);
    };
    // A lane adds two names to its branch: the fan-out's and its own.
    const auto levels = [](const std::string& branch) {
      std::vector<std::string> names;
      for (std::size_t at = 0; at < branch.size(); ++at) {
        for (int dot = 0; dot < 2 && at != std::string::npos; ++dot)
          at = branch.find('.', at + static_cast<std::size_t>(dot));
        at = std::min(at, branch.size());
        names.push_back(branch.substr(0, at));
      }
      return names;
    };
    for (const auto& lane : made_.lanes)
      for (const auto& name : levels(lane.branch))
        note(name, lane.steps.front().begin);
    std::vector<std::pair<std::vector<place>, timeline_lane>> ranked;
    for (auto& lane : made_.lanes) {
      std::vector<place> rank;
      for (const auto& name : levels(lane.branch))
        rank.push_back(first.at(name));
      rank.emplace_back(lane.steps.front().begin, 0);
      ranked.emplace_back(std::move(rank), std::move(lane));
    }
    std::ranges::stable_sort(
      ranked, {}, [](const auto& each) { return each.first; });
    made_.lanes.clear();
    for (auto& [rank, lane] : ranked)
      made_.lanes.push_back(std::move(lane));
  }

  std::vector<const event*> events_;
  std::size_t next_ = 0;
  bool is_told_ = false;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  timeline made_;
};

char mark_of(form kind) {
  switch (kind) {
  case form::model:
    return '#';
  case form::tool:
    return '=';
  case form::other:
    return '-';
  case form::wait:
    return '.';
  }
  return ' ';
}

// The name of a lane, indented by the number of fan-outs above it.
std::string label_of(const timeline_lane& lane) {
  return std::string(2 * depth_of(lane), ' ') + on_one_line(name_of(lane));
}

} // namespace

std::string_view name_of(timeline_step::form kind) {
  switch (kind) {
  case form::model:
    return "model";
  case form::tool:
    return "tool";
  case form::other:
    return "other";
  case form::wait:
    return "wait";
  }
  return {};
}

std::string name_of(const timeline_lane& lane) {
  const auto place = lane.branch.substr(lane.branch.rfind('.') + 1);
  const bool is_index
    = !place.empty() && place.find_first_not_of("0123456789") == place.npos;
  return is_index ? fmt::format("{} [{}]", lane.agent, place) : lane.agent;
}

std::size_t depth_of(const timeline_lane& lane) {
  // A branch has the names of the fan-out and of the lane for each level.
  const auto dots
    = static_cast<std::size_t>(std::ranges::count(lane.branch, '.'));
  return lane.branch.empty() ? 0 : (dots + 1) / 2;
}

std::vector<timeline> timelines_of(const event_slice& events,
                                   const price_list* prices) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const event*>> by_invocation;
  for (const auto& said : events) {
    if (said->invocation_id.empty() || is_rewind(*said))
      continue;
    auto& known = by_invocation[said->invocation_id];
    if (known.empty())
      order.push_back(said->invocation_id);
    known.push_back(said.get());
  }
  std::set<std::string_view> live;
  for (const auto left = events.live(); const auto& said : left)
    live.insert(said->invocation_id);
  workflow_progress seen;
  for (const auto& said : events)
    if (!is_rewind(*said))
      // Without an agent no event is in conflict with its workflow.
      static_cast<void>(seen.add(said));
  std::map<std::string, std::vector<workflow_view>> workflows;
  for (const auto& each : seen.workflows())
    for (const auto& invocation : each.invocations)
      workflows[invocation].push_back(each);
  std::vector<timeline> made;
  made.reserve(order.size());
  for (const auto& invocation : order) {
    made.push_back(timeline_maker(by_invocation.at(invocation)).make());
    made.back().is_taken_back = !live.contains(invocation);
    made.back().workflows = std::move(workflows[invocation]);
    if (prices == nullptr)
      continue;
    auto& cost = made.back().cost.emplace();
    made.back().currency = prices->currency();
    for (const auto* said : by_invocation.at(invocation))
      prices->add(*said, cost);
  }
  return made;
}

std::string to_text(const timeline& shown, std::size_t width) {
  auto text = fmt::format(
    "invocation {}{}, {}\n"
    "{} in all, {} of work ({:.2f} at a time), {} of it one after the other\n",
    on_one_line(shown.invocation),
    shown.first_invocation == shown.invocation
      ? std::string()
      : ", continues " + on_one_line(shown.first_invocation),
    to_rfc3339(shown.started),
    to_text(shown.wall),
    to_text(shown.work),
    shown.wall.count() > 0 ? static_cast<double>(shown.work.count())
                               / static_cast<double>(shown.wall.count())
                           : 0.0,
    to_text(shown.longest_lane));
  text += shown.calls_recorded
            ? fmt::format("{} model calls, {} tool calls",
                          shown.model_calls,
                          shown.tool_calls)
            : "model and tool calls not recorded (run with --step-times)";
  if (shown.tokens > 0)
    text += fmt::format(", {} tokens", shown.tokens);
  if (shown.cost)
    text += ", cost " + on_one_line(to_text(*shown.cost, shown.currency));
  if (!shown.error.empty())
    text += ", ended with " + on_one_line(shown.error);
  if (shown.is_taken_back)
    text += ", taken back by a rewind";
  text += "\n\n";
  std::size_t labels = 0;
  for (const auto& lane : shown.lanes)
    labels = std::max(labels, label_of(lane).size());
  labels = std::min(labels, bar_labels_max);
  const auto columns = std::max<std::size_t>(width, 40) - labels - 3;
  for (const auto& lane : shown.lanes) {
    bar drawn(shown.wall, columns);
    // Waits are drawn first, so that concurrent work stays visible.
    for (const bool waits : {true, false})
      for (const auto& step : lane.steps)
        if ((step.kind == form::wait) == waits)
          drawn.fill(step.begin,
                     step.end,
                     step.error.empty() ? mark_of(step.kind) : '!');
    text += fmt::format(
      "{:<{}.{}} |{}|\n", label_of(lane), labels, labels, drawn.text());
  }
  text += "# model  = tool  - other  . waits  ! failed\n";
  for (const auto& each : shown.workflows)
    if (each.parent.empty())
      text += '\n' + visit_lines(shown, each, width);
  return text;
}

json to_json(const timeline& shown) {
  const auto maybe = [](const std::string& text) {
    return text.empty() ? json() : json(text);
  };
  auto written = json::object();
  written["invocation"] = shown.invocation;
  written["firstInvocation"] = shown.first_invocation;
  written["startedAt"] = to_seconds(shown.started);
  written["wall"] = shown.wall.count();
  written["work"] = shown.work.count();
  written["longestLane"] = shown.longest_lane.count();
  written["modelCalls"]
    = shown.calls_recorded ? json(shown.model_calls) : json();
  written["toolCalls"] = shown.calls_recorded ? json(shown.tool_calls) : json();
  written["tokens"] = shown.tokens;
  written["cost"] = shown.cost ? to_json(*shown.cost, shown.currency) : json();
  written["error"] = maybe(shown.error);
  written["takenBack"] = shown.is_taken_back;
  auto& lanes = written["lanes"] = json::array();
  for (const auto& lane : shown.lanes) {
    auto steps = json::array();
    for (const auto& step : lane.steps) {
      auto added = json::object();
      added["kind"] = name_of(step.kind);
      added["name"] = step.name;
      added["start"] = step.begin.count();
      added["end"] = step.end.count();
      added["event"] = step.event;
      added["detail"] = maybe(step.detail);
      added["error"] = maybe(step.error);
      steps.push_back(std::move(added));
    }
    auto added = json::object();
    added["agent"] = lane.agent;
    added["branch"] = lane.branch;
    added["steps"] = std::move(steps);
    lanes.push_back(std::move(added));
  }
  auto& workflows = written["workflows"] = json::array();
  for (const auto& each : shown.workflows)
    workflows.push_back(troupe::to_json(each));
  return written;
}

} // namespace troupe::load

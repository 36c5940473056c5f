#include "troupe/agents/turns/compaction_plan.hpp"

#include "troupe/agents/tool.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/summed_ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace troupe {

namespace {

using ids = std::unordered_set<std::string_view>;

// An event that is no summary.
struct plain_event {
  std::uint64_t number = 0;
  event_ptr said;
};

// -- sizes --------------------------------------------------------------------

std::size_t size_of(const content& said) {
  std::size_t bytes = 0;
  for (const auto& element : said.parts)
    if (const auto* words = element.text())
      bytes += words->size();
    else if (const auto* call = element.call())
      bytes += call->name.size() + to_text(call->args.data()).size();
    else if (const auto* answer = element.response())
      bytes += answer->name.size() + to_text(answer->response.data()).size();
  return bytes;
}

// Unset if the event does not tell the tokens of a prompt.
std::optional<double> prompt_tokens(const event& said) {
  if (!said.extra.data().is_object())
    return std::nullopt;
  const auto usage = said.extra->find("usageMetadata");
  if (usage == said.extra->end() || !usage->is_object())
    return std::nullopt;
  const auto count = usage->find("promptTokenCount");
  return count != usage->end() && count->is_number() ? count->get<double>()
                                                     : std::optional<double>();
}

// Compares the newest prompt with the threshold. Takes the events from the
// newest one back, until one tells the size of its prompt, or until their texts
// alone are long enough.
class prompt_check {
public:
  explicit prompt_check(std::optional<std::uint64_t> threshold)
    : threshold_(threshold) {}

  void take(const event& said) {
    if (is_decided())
      return;
    told_ = prompt_tokens(said);
    add(said.content);
  }

  void add(const content& shown) {
    if (!is_decided())
      bytes_ += size_of(shown);
  }

  bool is_due() const {
    constexpr std::size_t bytes_per_token = 4;
    const auto estimated = bytes_ / bytes_per_token;
    return threshold_
           && told_.value_or(static_cast<double>(estimated))
                >= static_cast<double>(*threshold_);
  }

  bool is_decided() const { return !threshold_ || told_ || is_due(); }

private:
  const std::optional<std::uint64_t> threshold_;
  std::optional<double> told_;
  std::size_t bytes_ = 0;
};

// Looks back from the newest event, no further than the rules need. Returns
// false if no rule wants a summary.
bool may_be_due(const event_slice& live,
                const compaction_options& chosen,
                std::uint64_t oldest) {
  prompt_check prompt(chosen.token_threshold);
  ids runs;
  for (auto index = live.size(); index > 0; --index) {
    const auto& said = *live[index - 1];
    // The events before may be covered.
    if (summary_of(said))
      return true;
    prompt.take(said);
    if (chosen.compaction_interval)
      runs.insert(said.invocation_id);
    if (prompt.is_due()
        || (chosen.compaction_interval
            && runs.size() >= *chosen.compaction_interval))
      return true;
    if (prompt.is_decided() && !chosen.compaction_interval)
      return false;
  }
  return live.first_number() > oldest;
}

// -- open calls ---------------------------------------------------------------

void remove_responses(ids& open, const event& said) {
  for (const auto& element : said.content.parts)
    if (const auto* answer = element.response())
      open.erase(answer->id);
}

// ADK names the calls whose tools ask for a confirmation by themselves.
void add_requests(ids& open, const event& said) {
  const auto& extra = said.actions.extra.data();
  for (const auto* name :
       {"requestedToolConfirmations", "requestedAuthConfigs"})
    if (extra.is_object() && extra.contains(name) && extra[name].is_object())
      for (const auto& [id, asked] : extra[name].items())
        open.insert(id);
}

// The length of the longest beginning after which no call is open, without
// those in `dead`.
std::size_t self_contained(const std::vector<plain_event>& events,
                           std::size_t count,
                           const ids& dead) {
  ids open;
  std::size_t length = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const auto& said = *events[index].said;
    remove_responses(open, said);
    for (const auto& element : said.content.parts)
      if (const auto* call = element.call())
        open.insert(call->id);
    add_requests(open, said);
    for (const auto& id : dead)
      open.erase(id);
    if (open.empty())
      length = index + 1;
  }
  return length;
}

// Calls of earlier runs that will never be answered: their program has ended.
// Calls of long-running tools stay open, as long as they have no answer;
// questions to the user do until the next run.
ids dead_calls(const std::vector<plain_event>& events) {
  ids dead;
  ids kept;
  const auto& newest = events.back().said->invocation_id;
  for (const auto& [number, said] : events) {
    const ids waits(said->long_running_tool_ids.begin(),
                    said->long_running_tool_ids.end());
    const bool is_newest = said->invocation_id == newest;
    for (const auto& element : said->content.parts)
      if (const auto* call = element.call())
        (is_newest
             || (waits.contains(call->id) && call->name != confirmation_name)
           ? kept
           : dead)
          .insert(call->id);
    remove_responses(dead, *said);
  }
  for (const auto& id : kept)
    dead.erase(id);
  return dead;
}

std::size_t safe_length(const std::vector<plain_event>& events,
                        std::size_t count) {
  const auto strict = self_contained(events, count, {});
  if (strict == count)
    return count;
  if (strict > 0
      && events[strict - 1].said->invocation_id
           != events[strict].said->invocation_id)
    return strict;
  return std::max(strict, self_contained(events, count, dead_calls(events)));
}

// The end of the events before the newest `kept`, moved back so that no kept
// result loses its call.
std::size_t split(const std::vector<plain_event>& events, std::uint64_t kept) {
  if (events.size() <= kept)
    return 0;
  ids unmatched;
  for (auto index = events.size(); index > 0; --index) {
    if (unmatched.empty() && index <= events.size() - kept)
      return index;
    const auto& said = *events[index - 1].said;
    for (const auto& element : said.content.parts)
      if (const auto* answer = element.response())
        unmatched.insert(answer->id);
    for (const auto& element : said.content.parts)
      if (const auto* call = element.call())
        unmatched.erase(call->id);
  }
  return 0;
}

// -- the plan -----------------------------------------------------------------

// The events that a plan is made from.
struct gathered {
  // No older event changes the plan.
  bool is_complete = false;
  // Older events only belong to the overlap, or are covered by no summary.
  bool has_fresh = false;
  // The summaries leave no event before the end of the newest one.
  bool covers_all = false;
  std::vector<summed_range> ranges;
  // Runs with an event behind the former summary.
  ids new_runs;
  // Events behind the former summary, oldest first.
  std::vector<plain_event> fresh;
  // Events of the overlap, and those that no summary covers, oldest first.
  std::vector<plain_event> older;

  bool is_covered(std::uint64_t number) const {
    return std::ranges::any_of(ranges, [number](const auto& each) {
      return number >= each.first && number <= each.last;
    });
  }
};

// Returns true if the summaries leave no event before the end of the newest
// one.
bool covers_all(const std::vector<summed_range>& ranges) {
  std::uint64_t next = 1;
  for (const auto& each : ranges) {
    if (each.first > next)
      return false;
    next = each.last + 1;
  }
  return !ranges.empty();
}

// Older events can move the beginning and the end of a summary that tells them
// as times.
bool has_sure_start(const summed_range& each, std::uint64_t first) {
  return first <= 1 || each.made.start_revision || !each.made.start_time
         || each.first > first;
}

bool has_sure_end(const summed_range& each, std::uint64_t first) {
  return first <= 1 || each.made.end_revision || !each.made.end_time
         || each.last >= first;
}

// Reads back to the former summary, and then for the runs of the overlap.
gathered
gather(const event_slice& live, std::uint64_t overlap, std::uint64_t oldest) {
  gathered all;
  all.ranges = summed_ranges(live, oldest);
  const auto first = live.first_number();
  all.covers_all
    = covers_all(all.ranges)
      && std::ranges::all_of(all.ranges, [first](const auto& each) {
           return has_sure_start(each, first) && has_sure_end(each, first);
         });
  const auto end = all.ranges.empty() ? 0 : all.ranges.back().last;
  ids old_runs;
  bool is_enough = false;
  for (auto index = live.size(); index > 0 && !is_enough; --index) {
    const auto number = live.number(index - 1);
    const auto& said = live[index - 1];
    if (summary_of(*said))
      continue;
    if (number > end) {
      all.new_runs.insert(said->invocation_id);
      all.fresh.push_back({number, said});
      continue;
    }
    if (!all.new_runs.contains(said->invocation_id))
      old_runs.insert(said->invocation_id);
    if (old_runs.size() <= overlap || !all.is_covered(number))
      all.older.push_back({number, said});
    is_enough = all.covers_all && old_runs.size() > overlap;
  }
  std::ranges::reverse(all.fresh);
  std::ranges::reverse(all.older);
  all.has_fresh = first <= oldest
                  || (first <= end + 1 && !all.ranges.empty()
                      && has_sure_end(all.ranges.back(), first));
  all.is_complete
    = first <= oldest || (all.covers_all && (overlap == 0 || is_enough));
  return all;
}

// The newest prompt since the former summary.
prompt_check check_prompt(const gathered& all,
                          const compaction_options& chosen) {
  prompt_check prompt(chosen.token_threshold);
  const auto former = all.ranges.empty() ? 0 : all.ranges.back().number;
  for (auto index = all.fresh.size(); index > 0; --index)
    if (const auto& each = all.fresh[index - 1]; each.number > former)
      prompt.take(*each.said);
    else
      prompt.add(each.said->content);
  for (const auto& each : all.ranges)
    prompt.add(each.made.content);
  for (const auto& each : all.older)
    if (!all.is_covered(each.number))
      prompt.add(each.said->content);
  return prompt;
}

bool is_window_due(const gathered& all, const compaction_options& chosen) {
  return chosen.compaction_interval
         && all.new_runs.size() >= *chosen.compaction_interval;
}

// Returns true if no rule wants a summary, and no older event can change that.
bool is_idle(const gathered& all, const compaction_options& chosen) {
  const auto prompt = check_prompt(all, chosen);
  return all.has_fresh && !is_window_due(all, chosen) && !prompt.is_due()
         && (prompt.is_decided() || all.covers_all);
}

// `limit` is the number of fresh events before the user turn with an open
// task.
std::size_t length_by_tokens(const gathered& all,
                             const compaction_options& chosen,
                             std::size_t limit) {
  if (!check_prompt(all, chosen).is_due())
    return 0;
  return safe_length(
    all.fresh, std::min(limit, split(all.fresh, chosen.event_retention_size)));
}

std::size_t length_by_window(const gathered& all,
                             const compaction_options& chosen,
                             std::size_t limit) {
  if (!is_window_due(all, chosen))
    return 0;
  return safe_length(all.fresh, std::min(limit, all.fresh.size()));
}

// The agents of an open task still read the events of its user turn.
std::size_t before_open_task(const gathered& all,
                             const event_slice& live,
                             const std::vector<std::string>& tasks) {
  if (tasks.empty() || live.empty() || open_task(live, tasks).empty())
    return all.fresh.size();
  const auto first = live.number(user_turn_start(live, 0));
  return static_cast<std::size_t>(
    std::ranges::count_if(all.fresh, [first](const plain_event& each) {
      return each.number < first;
    }));
}

// A summary is expected to be as long as the former one.
bool is_worth_it(const gathered& all, std::size_t length) {
  if (all.ranges.empty())
    return true;
  std::size_t bytes = 0;
  for (std::size_t index = 0; index < length; ++index)
    bytes += size_of(all.fresh[index].said->content);
  return bytes > size_of(all.ranges.back().made.content);
}

// ADK hides all events from this time on; a former summary without a time
// covers all from the first one on.
timestamp start_time(const gathered& all) {
  auto oldest = all.older.empty() ? all.fresh.front().said->timestamp
                                  : all.older.front().said->timestamp;
  for (const auto& each : all.ranges)
    oldest = std::min(oldest, each.made.start_time.value_or(timestamp{}));
  return oldest;
}

// `with_overlap` adds events that the former summary covers.
summary_request
request_for(const gathered& all, std::size_t length, bool with_overlap) {
  summary_request made;
  for (const auto& each : all.ranges)
    made.former.push_back(each.made.content);
  // The summary covers the events of delegated agents but does not have their
  // texts: the agents that read the summary do not see them.
  for (const auto& each : all.older)
    if ((with_overlap || !all.is_covered(each.number))
        && !is_isolated(*each.said, {}))
      made.events.push_back(each.said);
  for (std::size_t index = 0; index < length; ++index)
    if (!is_isolated(*all.fresh[index].said, {}))
      made.events.push_back(all.fresh[index].said);
  return made;
}

// Number of fresh events whose text fits into a request; at least 1.
std::size_t
fitting(const gathered& all, std::size_t length, std::uint64_t bytes_max) {
  auto bytes = to_text(request_for(all, 0, false)).size();
  for (std::size_t index = 0; index < length; ++index) {
    bytes += to_text({.former = {}, .events = {all.fresh[index].said}}).size();
    if (bytes > bytes_max)
      return std::max<std::size_t>(index, 1);
  }
  return length;
}

// Leaves the newer events to later summaries, if a request cannot hold them
// all. It holds more than the limit only if no shorter summary would do: one
// must end somewhere, or no later run would get past that place.
std::size_t
shorten(const gathered& all, std::size_t length, std::uint64_t bytes_max) {
  for (auto count = fitting(all, length, bytes_max); count < length; count *= 2)
    if (const auto safe = safe_length(all.fresh, count);
        safe > 0 && is_worth_it(all, safe))
      return safe;
  return length;
}

// The overlap is left out if the request cannot hold it.
summary_request bounded_request(const gathered& all,
                                std::size_t length,
                                const compaction_options& chosen) {
  auto made = request_for(all, length, true);
  return chosen.overlap_size == 0
             || to_text(made).size() <= chosen.request_bytes_max
           ? made
           : request_for(all, length, false);
}

} // namespace

compaction_plan plan_compaction(const event_slice& live,
                                const compaction_options& chosen,
                                std::uint64_t oldest,
                                const std::vector<std::string>& tasks) {
  compaction_plan plan;
  if (!may_be_due(live, chosen, oldest))
    return plan;
  const auto all = gather(
    live, chosen.compaction_interval ? chosen.overlap_size : 0, oldest);
  if (!all.is_complete) {
    plan.needs_older = !is_idle(all, chosen);
    return plan;
  }
  plan.former = all.ranges.empty() ? 0 : all.ranges.back().number;
  const auto limit = before_open_task(all, live, tasks);
  auto length = length_by_tokens(all, chosen, limit);
  const bool is_window = length == 0;
  if (is_window)
    length = length_by_window(all, chosen, limit);
  if (length == 0 || !is_worth_it(all, length))
    return plan;
  length = shorten(all, length, chosen.request_bytes_max);
  const auto& end = all.fresh[length - 1];
  plan.last = end.number;
  plan.start_time = start_time(all);
  plan.end_time = end.said->timestamp;
  plan.request = is_window ? bounded_request(all, length, chosen)
                           : request_for(all, length, false);
  return plan;
}

std::uint64_t newest_summary(const event_slice& live, std::uint64_t oldest) {
  const auto ranges = summed_ranges(live, oldest);
  return ranges.empty() ? 0 : ranges.back().number;
}

event make_compaction_event(const compaction_plan& plan, content text) {
  text.role = "model";
  auto compaction = json::object();
  compaction["startTimestamp"] = to_seconds(plan.start_time);
  compaction["endTimestamp"] = to_seconds(plan.end_time);
  compaction["startRevision"] = 1;
  compaction["endRevision"] = plan.last;
  compaction["compactedContent"] = to_json(text);
  auto actions = json::object();
  actions["compaction"] = std::move(compaction);
  event made;
  made.author = "user";
  made.actions.extra = std::move(actions);
  return made;
}

} // namespace troupe

#include "troupe/actors/runs/lanes_body.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/actors/runs/fan_out.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/contexts/lanes/recovered_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

// Suspends until the lanes of a fan-out have ended.
class lanes_await {
public:
  lanes_await(lane_actor& lane, fan_out_request& request)
    : lane_(lane),
      request_(request) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    lane_.start_lanes(request_);
  }

  void await_resume() const noexcept {}

private:
  lane_actor& lane_;
  fan_out_request& request_; // In the waiting coroutine's frame.
};

// Makes the request for the lanes of a parallel agent or a map.
template <class Options>
fan_out_request make_fan_out(const lane_actor& lane,
                             const invocation_context& context,
                             const Options& options) {
  fan_out_request request;
  request.caller = &context;
  request.lanes_max = std::min(options.lanes_max.value_or(SIZE_MAX),
                               lane.shared_run()->options.lanes_max);
  request.on_failure = options.on_failure;
  request.quorum = options.quorum;
  request.timeout = options.lane_timeout;
  return request;
}

std::string branch_below(const invocation_context& context,
                         std::string_view lane) {
  const auto& branch = context.branch();
  return fmt::format(
    "{}{}{}.{}", branch, branch.empty() ? "" : ".", context.agent_name(), lane);
}

// Emits an event for each failure that did not end the fan-out.
task<> tell_failures(invocation_context& context,
                     const fan_out_request& request) {
  for (const auto& lane : request.lanes) {
    const auto& failure = lane.failed;
    if (!failure || lane.is_told)
      continue;
    event told;
    told.author = lane.which.name();
    told.branch = lane.branch;
    auto fields = json::object();
    fields["errorCode"] = std::string(to_string(failure->code()));
    fields["errorMessage"] = failure->message();
    told.extra = std::move(fields);
    set_place(told,
              place_below(context.place(), lane.which.name(), lane.number),
              agent_step::failure);
    co_await context.emit(std::move(told));
  }
}

task<> await_lanes(lane_actor& lane,
                   invocation_context& context,
                   fan_out_request& request) {
  co_await lanes_await(lane, request);
  context.renew();
  request.outcome.value();
  if (request.is_paused)
    co_return;
  if (std::ranges::any_of(request.lanes,
                          [](const auto& each) { return each.escalated; }))
    context.mark_escalated();
  co_await tell_failures(context, request);
}

// -- pausing ------------------------------------------------------------------

// The lanes in the checkpoint that the fan-out continues from; empty if it
// begins.
const std::vector<checkpoint::lane>&
lanes_before(const invocation_context& context) {
  static const std::vector<checkpoint::lane> none;
  const auto& from = context.resumed_from();
  return from ? from->lanes : none;
}

void restore(fan_out_request::lane& lane, const checkpoint::lane& before) {
  lane.from = before.at;
  lane.is_over = before.at == nullptr;
  lane.failed = before.failed;
  lane.succeeded = lane.is_over && !before.failed;
  lane.escalated = before.escalated;
}

checkpoint::lane keep(const fan_out_request::lane& lane, std::string name) {
  checkpoint::lane kept;
  kept.name = std::move(name);
  kept.at = lane.paused;
  kept.failed = lane.failed;
  kept.escalated = lane.escalated;
  return kept;
}

agent_paused pause_at(const invocation_context& context,
                      std::vector<checkpoint::lane> lanes) {
  auto where = std::make_shared<checkpoint>();
  where->agent = context.agent_name();
  where->lanes = std::move(lanes);
  return {std::move(where)};
}

// Takes the failure of a lane that was told before the run was recovered.
void restore_failure(const lane_actor& lane,
                     const invocation_context& context,
                     fan_out_request::lane& into) {
  if (lane.recovered() == nullptr)
    return;
  const auto* left = lane.recovered()->at(
    place_below(context.place(), into.which.name(), into.number));
  if (left == nullptr)
    return;
  for (const auto& each : left->own)
    if (step_in(*each) == agent_step::failure) {
      into.failed
        = error(errc_of(each->field("errorCode")), each->field("errorMessage"));
      into.is_over = true;
      into.is_told = true;
    }
}

// Requires that each lane that waited still exists in the program.
void check_lanes(const std::vector<checkpoint::lane>& before,
                 const agent& which) {
  for (const auto& each : before)
    if (each.at
        && std::ranges::find(which.sub_agents(), each.name, &agent::name)
             == which.sub_agents().end())
      throw error(errc::conflict,
                  fmt::format("the run paused in lane '{}' of '{}', which the "
                              "program no longer has",
                              each.name,
                              which.name()));
}

// -- maps ---------------------------------------------------------------------

// The result that the element at `place` had before the run was recovered, if
// it had one.
std::optional<json> stored_result(const lane_actor& lane,
                                  const std::string& place) {
  return lane.recovered() != nullptr ? lane.recovered()->result_at(place)
                                     : std::nullopt;
}

// The `temp:` keys that an element's lane starts with.
std::shared_ptr<temp_space> temp_for(const lane_actor& lane,
                                     const std::string& place,
                                     const json& item,
                                     std::size_t index) {
  auto keys = lane.temp()->read();
  keys.set("item", value(item));
  keys.set("index", value(json(index)));
  keys.erase("result");
  if (const auto result = stored_result(lane, place))
    keys.set("result", value(*result));
  return std::make_shared<temp_space>(
    scope_state(std::move(keys)), place, lane.tells_places());
}

// The result of an element's lane: its `result` key, or else the output of a
// workflow, or its last text.
json result_of(const fan_out_request::lane& lane) {
  if (!lane.succeeded)
    return nullptr;
  const auto left = lane.temp->read();
  if (const auto* result = left.find("result"))
    return result->data();
  if (lane.output)
    return *lane.output;
  return lane.event ? json(lane.event->text()) : json();
}

// After a pause, lanes continue with the items in the checkpoint, and after a
// recovery with those that an event has recorded, since the list may have
// changed.
json items_of(const lane_actor& lane,
              const invocation_context& context,
              const map_options& options) {
  if (lane.recovered() != nullptr)
    if (const auto* left = lane.recovered()->at(context.place()))
      for (const auto& each : left->own)
        if (const auto* items = fact_in(*each, items_fact))
          return *items;
  if (const auto& before = lanes_before(context); !before.empty()) {
    auto items = json::array();
    for (const auto& each : before)
      items.push_back(each.item);
    return items;
  }
  const auto found = context.state().find(options.items_key);
  if (!found || found->is_null())
    return json::array();
  if (!found->data().is_array())
    throw error(errc::type_error,
                fmt::format("'{}' of map '{}' is not a list",
                            options.items_key,
                            options.name));
  return found->data();
}

// Records the list of a map, which may be gone when the run is recovered.
task<> record_items(const lane_actor& lane,
                    invocation_context& context,
                    const json& items) {
  const auto* left = lane.recovered() != nullptr
                       ? lane.recovered()->at(context.place())
                       : nullptr;
  if (items.empty() || (left != nullptr && left->has(agent_step::items)))
    co_return;
  event told;
  set_fact(told, items_fact, items);
  set_place(told, context.place(), agent_step::items);
  co_await context.emit(std::move(told));
}

} // namespace

task<> wait_for_lanes(lane_actor& lane, fan_out_request& request) {
  co_await lanes_await(lane, request);
}

task<> run_parallel(lane_actor& lane,
                    invocation_context& context,
                    const agent& which,
                    const parallel_options& options) {
  const auto& before = lanes_before(context);
  check_lanes(before, which);
  auto request = make_fan_out(lane, context, options);
  for (const auto& sub : which.sub_agents()) {
    auto& added = request.lanes.emplace_back(fan_out_request::lane{
      .which = sub,
      .branch = branch_below(context, sub.name()),
      .temp = options.isolate_temp ? std::make_shared<temp_space>(
                scope_state(lane.temp()->read()),
                place_below(context.place(), sub.name(), 1),
                false)
                                   : nullptr});
    const auto known
      = std::ranges::find(before, sub.name(), &checkpoint::lane::name);
    if (known != before.end())
      restore(added, *known);
    restore_failure(lane, context, added);
  }
  co_await await_lanes(lane, context, request);
  if (!request.is_paused)
    co_return;
  std::vector<checkpoint::lane> lanes;
  for (const auto& each : request.lanes)
    lanes.push_back(keep(each, each.which.name()));
  throw pause_at(context, std::move(lanes));
}

task<> run_map(lane_actor& lane,
               invocation_context& context,
               const agent& which,
               const map_options& options) {
  const auto& before = lanes_before(context);
  const auto items = items_of(lane, context, options);
  const auto& worker = which.sub_agents().front();
  if (before.empty() && lane.tells_places())
    co_await record_items(lane, context, items);
  auto request = make_fan_out(lane, context, options);
  for (std::size_t index = 0; index < items.size(); ++index) {
    auto& added = request.lanes.emplace_back(fan_out_request::lane{
      .which = worker,
      .branch = branch_below(context, std::to_string(index)),
      .number = index + 1,
      .temp = temp_for(lane,
                       place_below(context.place(), worker.name(), index + 1),
                       items[index],
                       index)});
    if (!before.empty())
      restore(added, before[index]);
    restore_failure(lane, context, added);
  }
  co_await await_lanes(lane, context, request);
  auto results = json::array();
  for (std::size_t index = 0; index < request.lanes.size(); ++index)
    results.push_back(!before.empty() && !before[index].at
                        ? before[index].result
                        : result_of(request.lanes[index]));
  if (!request.is_paused) {
    if (!options.output_key.empty())
      context.state().set(options.output_key, std::move(results));
    co_return;
  }
  std::vector<checkpoint::lane> lanes;
  for (std::size_t index = 0; index < request.lanes.size(); ++index) {
    auto& kept
      = lanes.emplace_back(keep(request.lanes[index], std::to_string(index)));
    if (kept.at)
      kept.item = items[index];
    else
      kept.result = std::move(results[index]);
  }
  throw pause_at(context, std::move(lanes));
}

} // namespace troupe::actors

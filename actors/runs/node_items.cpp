#include "troupe/actors/runs/node_items.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/actors/runs/fan_out.hpp"
#include "troupe/actors/runs/lanes_body.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

const workflow_graph::node& node_of_map(const node_visit& map) {
  return map.graph->nodes()[map.visit.node];
}

const workflow_graph::mapped& work_of_map(const node_visit& map) {
  return std::get<workflow_graph::mapped>(node_of_map(map).work);
}

// The place of the items: that of the map's visit.
workflow_place place_of_items(const node_visit& map, std::size_t count) {
  workflow_place at;
  at.run = map.at.run;
  at.path = path_of(map.at, node_of_map(map).name, map.visit.ordinal);
  at.rewound = map.at.rewound;
  at.items = count;
  return at;
}

// The name of an item in the checkpoint of the map.
std::string name_of_item(const node_visit& map, std::size_t index) {
  return fmt::format("{}@{}", node_of_map(map).name, index + 1);
}

// The checkpoint of an item that has waited; null: it begins.
checkpoint_ptr checkpoint_of(const checkpoint_ptr& from,
                             const std::string& name) {
  if (!from)
    return nullptr;
  const auto found
    = std::ranges::find(from->lanes, name, &checkpoint::lane::name);
  return found == from->lanes.end() ? nullptr : found->at;
}

// The lane of one item.
fan_out_request::lane make_lane(const lane_actor& lane,
                                const node_visit& map,
                                const workflow_place& at,
                                const json& item,
                                std::size_t index) {
  const auto& node = node_of_map(map);
  auto visit = std::make_shared<node_visit>(map);
  visit->at = at;
  visit->visit = workflow_visit();
  visit->visit.node = map.visit.node;
  visit->visit.ordinal = index + 1;
  visit->visit.input = std::make_shared<const json>(item);
  visit->key = index;
  visit->listener = nullptr;
  visit->waited = nullptr;
  fan_out_request::lane made{.which = lane.start().which, .branch = {}};
  if (const auto* place = agent_of(node))
    made.which = map.workflow->sub_agents()[*place];
  const auto& branch = lane.start().branch;
  made.branch
    = fmt::format("{}{}{}",
                  branch,
                  branch.empty() ? "" : ".",
                  item_branch(node.name, map.visit.ordinal, index + 1));
  made.number = index + 1;
  made.from = checkpoint_of(lane.start().from, name_of_item(map, index));
  made.visit_key = visit_id(at, path_of(at, node.name, index + 1));
  // As for visits of nodes: an item keeps its id over pauses.
  visit->id = made.from && !made.from->key.empty()
                ? made.from->key
                : placed_id(at.rewound, {}, made.visit_key);
  made.visit = std::move(visit);
  return made;
}

// The failure of the first item that has failed.
error failure_of(const fan_out_request& request) {
  if (!request.first_failed)
    return request.outcome.error();
  const auto& first = request.lanes[*request.first_failed];
  return {first.failed->code(),
          fmt::format("item {}: {}", first.number, first.failed->message())};
}

} // namespace

json items_in(const json& input) {
  if (input.is_array())
    return input;
  auto items = json::array();
  if (!input.is_null())
    items.push_back(input);
  return items;
}

ended_items::ended_items(const event_slice& events,
                         const node_visit& map,
                         std::size_t count)
  : outputs_(count) {
  const auto at = place_of_items(map, count);
  const auto below = at.path + "/";
  for (const auto& each : events) {
    // Most events are no items of the map, and need not be read.
    if (!path_in(*each).starts_with(below))
      continue;
    auto told = record_in(*each);
    if (!told || told->is != workflow_record::kind::end
        || told->at.run != at.run || told->at.path != at.path
        || told->node != node_of_map(map).name || told->ordinal > count)
      continue;
    outputs_[told->ordinal - 1] = std::move(told->data);
    has_escalated_ = has_escalated_ || each->actions.escalate;
  }
}

json ended_items::outputs(const node_visit& map) const {
  auto all = json::array();
  for (std::size_t index = 0; index < outputs_.size(); ++index) {
    if (!outputs_[index])
      throw error(errc::conflict,
                  fmt::format("a plugin has removed the fields of item {} of "
                              "node '{}' from its event",
                              index + 1,
                              node_of_map(map).name));
    all.push_back(*outputs_[index]);
  }
  return all;
}

task<agent_end> run_items(lane_actor& lane,
                          const node_visit& map,
                          const json& items,
                          const ended_items& before) {
  const auto at = place_of_items(map, items.size());
  fan_out_request request;
  // The workflow waits for this lane, and so for all items.
  request.caller = lane.start().caller;
  request.lanes_max = std::min(work_of_map(map).lanes_max.value_or(SIZE_MAX),
                               lane.shared_run()->options.lanes_max);
  for (std::size_t index = 0; index < items.size(); ++index)
    if (!before.has(index))
      request.lanes.push_back(make_lane(lane, map, at, items[index], index));
  co_await wait_for_lanes(lane, request);
  if (lane.cancelled())
    throw *lane.cancelled();
  if (!request.outcome)
    throw failure_of(request);
  bool has_escalated = before.has_escalated();
  for (const auto& each : request.lanes)
    has_escalated = has_escalated || each.escalated;
  if (!request.is_paused)
    co_return agent_end(has_escalated);
  auto where = std::make_shared<checkpoint>();
  where->agent = map.workflow->name();
  where->run = at.run;
  where->path = at.path;
  where->key = map.id;
  for (const auto& each : request.lanes)
    if (each.paused) {
      auto& kept = where->lanes.emplace_back();
      kept.name = name_of_item(map, each.number - 1);
      kept.at = each.paused;
    }
  co_return agent_end(has_escalated, std::move(where));
}

} // namespace troupe::actors

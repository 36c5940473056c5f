#include "troupe/agents/workflow_progress.hpp"

#include "troupe/agents/graphs/fold.hpp"

#include <array>
#include <utility>

namespace troupe {

workflow_progress::workflow_progress()
  : fold_(std::make_unique<workflow_fold>(std::nullopt, SIZE_MAX)) {}

workflow_progress::workflow_progress(agent root, std::size_t lanes_max)
  : fold_(std::make_unique<workflow_fold>(std::move(root), lanes_max)) {}

workflow_progress::~workflow_progress() = default;
workflow_progress::workflow_progress(workflow_progress&&) noexcept = default;
workflow_progress&
workflow_progress::operator=(workflow_progress&&) noexcept = default;

result<void> workflow_progress::add(const event_ptr& said) {
  return fold_->add(said);
}

std::vector<workflow_view> workflow_progress::workflows() const {
  return fold_->workflows();
}

std::string_view to_string(node_state state) noexcept {
  constexpr std::array<std::string_view, 8> names{"unreached",
                                                  "waiting",
                                                  "running",
                                                  "paused",
                                                  "done",
                                                  "skipped",
                                                  "failed",
                                                  "cancelled"};
  return names.at(static_cast<std::size_t>(state));
}

namespace {

json seconds_or_null(const std::optional<timestamp>& time) {
  return time ? json(to_seconds(*time)) : json();
}

json message_or_null(const std::optional<error>& why) {
  return why ? json(to_string(*why)) : json();
}

json routes_of(const std::vector<route>& routes) {
  auto all = json::array();
  for (const auto& each : routes)
    all.push_back(to_json(each));
  return all;
}

json to_json(const visit_progress& shown) {
  auto made = json::object();
  made["node"] = shown.node;
  made["number"] = shown.number;
  made["state"] = to_string(shown.state);
  made["attempt"] = shown.attempt;
  auto& failures = made["failures"] = json::array();
  for (const auto& each : shown.failures) {
    auto failed = json::object();
    failed["attempt"] = each.attempt;
    failed["at"] = to_seconds(each.at);
    failed["code"] = to_string(each.why.code());
    failed["message"] = each.why.message();
    failures.push_back(std::move(failed));
  }
  made["routes"] = routes_of(shown.routes);
  made["missing"] = shown.missing;
  made["began"] = seconds_or_null(shown.began);
  made["ended"] = seconds_or_null(shown.ended);
  made["due"] = seconds_or_null(shown.due);
  if (shown.is_skipped)
    made["skipped"] = true;
  if (shown.items > 0) {
    made["items"] = shown.items;
    made["itemsEnded"] = shown.items_ended;
  }
  return made;
}

} // namespace

json to_json(const workflow_view& shown) {
  auto made = json::object();
  made["name"] = shown.name;
  made["path"] = shown.path;
  made["run"] = shown.run;
  made["invocations"] = shown.invocations;
  made["parent"] = shown.parent.empty() ? json() : json(shown.parent);
  made["state"] = to_string(shown.state);
  made["failure"] = message_or_null(shown.failure);
  made["conflict"] = message_or_null(shown.conflict);
  made["began"] = to_seconds(shown.began);
  made["ended"] = seconds_or_null(shown.ended);
  auto& nodes = made["nodes"] = json::array();
  for (const auto& each : shown.nodes) {
    auto node = json::object();
    node["name"] = each.name;
    node["kind"] = each.kind;
    node["state"] = to_string(each.state);
    node["visits"] = each.visits;
    node["visit"] = each.visit ? json(*each.visit) : json();
    nodes.push_back(std::move(node));
  }
  auto& edges = made["edges"] = json::array();
  for (const auto& each : shown.edges) {
    auto edge = json::object();
    edge["from"] = each.from;
    edge["to"] = each.to;
    edge["routes"] = routes_of(each.routes);
    edge["otherwise"] = each.otherwise;
    edges.push_back(std::move(edge));
  }
  auto& visits = made["visits"] = json::array();
  for (const auto& each : shown.visits)
    visits.push_back(to_json(each));
  return made;
}

} // namespace troupe

// The events by which a workflow records its progress. Internal.
//
// All of them have the workflow as author, the path of the workflow or of the
// visit in `nodeInfo.path`, and an object `customMetadata.troupe.workflow`:
//
//   {"run": id, "begins": structure}   first event, path `workflow@n`; `n` is
//                                      the number of this workflow in the run
//   {"run": id, "input": true}         input of an agent, as a message
//   {"run": id, "missing"?: [name]}    end of a visit, path
//                                      `workflow@n/node@round`, with `output`
//                                      and `actions.route`
//   {"run": id, "question": true}      question of a visit, with the call
//   {"run": id, "attempt": number}     failure of an attempt, with `errorCode`
//   {"run": id, "attempt": number, "skipped": true}
//                                      the same, of a visit that is not tried
//                                      again, and whose joins go on without it
//   {"run": id, "ends": true}          last event, with `output`
//
// An item of a map has the events of a visit, with `"items": number` in the
// object: the number of items. Its place is below the visit of the map, with
// the name of the node and the number of the item from 1:
// `workflow@n/node@round/node@item`.
//
// `run` is the invocation in which the workflow began, also if a later one
// continues it. Paths of workflows below a node begin with the path of its
// visit. Field names are those of ADK where it has such a field.

#pragma once

#include "troupe/agents/workflow_node.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/event_log.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A workflow that runs: its place among all of them.
struct workflow_place {
  /// Id of the invocation in which it began.
  std::string run;
  /// `workflow@n`, below the path of the visit that it is part of.
  std::string path;
  /// Number of the newest rewind since its first event; 0 if there is none.
  std::uint64_t rewound = 0;
  /// If the place is that of a map's visit, and the events are those of its
  /// items: their number. 0 for a workflow.
  std::uint64_t items = 0;
};

/// Returns the path of a visit.
std::string
path_of(const workflow_place& at, std::string_view node, std::uint64_t ordinal);

/// Returns the id of the event that ends the visit at `path`. A visit that runs
/// again ends with an event of the same id.
std::string visit_id(const workflow_place& at, std::string_view path);

/// Makes the first event.
event make_begin_event(const workflow_place& at, json structure);

/// Makes the event that ends a visit.
event make_end_event(const workflow_place& at,
                     const std::string& path,
                     json output,
                     const std::vector<route>& routes,
                     const std::vector<std::string>& missing);

/// Makes the event of an attempt that has failed. `is_skipped` tells that the
/// visit has ended with it, and the joins behind it go on.
event make_failure_event(const workflow_place& at,
                         const std::string& path,
                         std::uint64_t attempt,
                         const error& why,
                         bool is_skipped = false);

/// Makes the event by which a visit asks the user. Its id is that of the call.
event make_question_event(const workflow_place& at,
                          const std::string& path,
                          function_call asked);

/// Makes the message with the input of an agent.
event make_input_event(const workflow_place& at,
                       const std::string& path,
                       const json& input);

/// Makes the last event.
event make_over_event(const workflow_place& at, json output);

/// Returns true if the event is the input of an agent.
bool is_node_input(const event& said);

/// Returns true if such an event is the input of the visit with this id.
bool is_input_of(const event& said, std::string_view visit);

/// An event of a workflow, read.
struct workflow_record {
  /// The kind of the event.
  enum class kind : std::uint8_t { begin, input, question, end, failure, over };

  kind is = kind::end;
  workflow_place at;
  /// Name of the node and number of its visit, for all but `begin` and `over`.
  std::string node;
  std::uint64_t ordinal = 0;
  /// Number of the attempt of a `failure`.
  std::uint64_t attempt = 0;
  /// True for a `failure` that ends the visit and not the workflow.
  bool is_skipped = false;
  /// Structure of `begin`, output of `end` and `over`; else null.
  json data = nullptr;
  std::vector<route> routes = {};
  /// Nodes without whose inputs a join has fired; of `end`.
  std::vector<std::string> missing = {};
};

/// Reads the event of a workflow; unset for another event, and for each event
/// by author `user`.
std::optional<workflow_record> record_in(const event& said);

/// Returns the place, the node and the number of the map's visit that an item
/// belongs to, for the record of an item; unset for another record.
std::optional<workflow_record> visit_of_item(const workflow_record& told);

/// Returns the segment of the branch of an item. The number of the visit and
/// that of the item count from 1.
std::string
item_branch(std::string_view node, std::uint64_t visit, std::uint64_t item);

/// Returns the number of the item in such a segment; 0 if it is that of no item
/// of the visit.
std::uint64_t item_in_branch(std::string_view segment,
                             std::string_view node,
                             std::uint64_t visit);

} // namespace troupe

// The order in which a workflow visits its nodes: computed from the ends of
// visits alone, in the order in which the session's log has them. So the log is
// the schedule, and another process that reads it comes to the same visits.
// Internal.
//
// A token stands for a followed edge on its way to a node. It knows its
// passages: the visits of forks, which followed several edges at once, and of
// joins that it came through. Two tokens belong to the same round unless they
// have passages of the same node from different visits. When the node of a
// passage is visited again, its token drops this passage and all that were
// added while the token had it, and gets one of the new visit. The token of a
// join keeps the passages of nodes that enclose the join.

#pragma once

#include "troupe/agents/graphs/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// One visit of a node.
struct workflow_visit {
  workflow_graph::number node = 0;
  /// Number of the visit among those of the node, from 1.
  std::uint64_t ordinal = 0;
  /// Input of the node; never null as a pointer.
  std::shared_ptr<const json> input;
  /// True if the input is the run's message, which the history has already.
  bool is_message = false;
  /// Branch of its events, below that of the workflow; may be empty.
  std::string branch;
  /// Nodes whose inputs a join fires without.
  std::vector<std::string> missing;
};

/// Not thread-safe.
class workflow_schedule {
public:
  /// Begins at START. The graph must outlive the schedule.
  /// `is_message` is true if the input is the run's message.
  workflow_schedule(const workflow_graph& graph,
                    std::shared_ptr<const json> input,
                    bool is_message);

  /// Takes the next visit that may start, if there is one. Visits of one node
  /// start one after another, in the order of their tokens.
  std::optional<workflow_visit> next();

  /// Takes the next visit of this node, if it may start. Unset if the node has
  /// none, or if one of its visits runs.
  std::optional<workflow_visit> start(workflow_graph::number node);

  /// Ends a visit that `next` or `start` has given, and follows edges. Fails
  /// with `errc::limit_exceeded` if a node would be visited too often.
  result<void> end(workflow_graph::number node,
                   std::uint64_t ordinal,
                   std::shared_ptr<const json> output,
                   const std::vector<route>& routes);

  /// Ends a visit that has failed for good, with the reason. The joins behind
  /// it go on without it. Requires `workflow_graph::skips_failure_of`. Fails as
  /// `end` does.
  result<void>
  skip(workflow_graph::number node, std::uint64_t ordinal, std::string why);

  /// Takes and ends the visit whose end the log has next. Fails as `end` does,
  /// and with `errc::conflict` if the graph does not lead to this visit.
  result<void> replay(workflow_graph::number node,
                      std::uint64_t ordinal,
                      std::shared_ptr<const json> output,
                      const std::vector<route>& routes);

  /// The same for a visit whose failure the log has next.
  result<void> replay_skip(workflow_graph::number node,
                           std::uint64_t ordinal,
                           std::string why);

  /// Decides about the joins that wait for inputs which cannot come. Requires
  /// that no visit runs or may start. Returns true if a join fires without
  /// inputs, so that `next` has a visit again; false if nothing is left to run.
  /// Fails with `errc::stuck_join`.
  result<bool> settle();

  /// Number of visits of a node that have ended, run or wait.
  std::uint64_t visits(workflow_graph::number node) const {
    return nodes_[node].visits;
  }

  /// Returns true if the node is a join that has inputs and has not fired with
  /// them.
  bool gathers(workflow_graph::number node) const;

  /// Returns true if a visit may start.
  bool has_ready() const noexcept { return !ready_.empty(); }

  /// Returns true if no visit runs or may start.
  bool is_idle() const noexcept { return running_ == 0 && ready_.empty(); }

  /// Output of the workflow, as `workflow` describes it. Requires that all
  /// paths have ended.
  json output() const;

private:
  using number = workflow_graph::number;

  struct passage {
    number node;
    std::uint64_t ordinal;
    // Branch of the visit.
    std::string branch;
    // Nodes of the passages that the token had when this one was added.
    std::vector<number> behind;
  };

  using passages = std::vector<std::shared_ptr<const passage>>;

  struct token {
    number from;
    std::shared_ptr<const json> value;
    bool is_message = false;
    passages passed;
    std::string branch;
    // Reason of a failed visit, which gives no value.
    std::optional<std::string> failure = {};
  };

  struct waiting_visit {
    workflow_visit visit;
    passages passed;
  };

  // The inputs of one round of a join.
  struct gathering {
    std::vector<token> tokens; // None after it has fired.
    std::set<number> froms;    // Nodes that the tokens came from, or failed.
    std::map<number, token> failed; // By node.
    // Visits of the passages of all tokens, by node.
    std::map<number, std::uint64_t> rounds;
    std::uint64_t fired_as = 0; // Visit of the join; 0: it has not fired.
  };

  // Lists, since most nodes have at most one visit, and an empty list has no
  // memory of its own.
  struct node_state {
    std::list<waiting_visit> queue;
    std::optional<waiting_visit> running;
    std::uint64_t visits = 0;
    std::uint64_t branches = 0;      // Branches that were opened for the node.
    std::list<gathering> gatherings; // Of a join, oldest first.
  };

  result<void> leave(number node,
                     std::uint64_t ordinal,
                     token left,
                     const std::vector<number>& targets);
  result<void> take_next(number node, std::uint64_t ordinal);
  result<waiting_visit> take_running(number node, std::uint64_t ordinal);
  result<void> follow(token value, const std::vector<number>& targets);
  result<void> arrive(number at, token arrived);
  result<void> gather(number at, token arrived);
  result<void> fire(number at, gathering& inputs);
  result<void> put(number at, workflow_visit visit, passages passed);
  static std::optional<std::string> go_back(passages& passed, number to);
  static void add_passage(passages& passed,
                          number node,
                          std::uint64_t ordinal,
                          std::string branch);
  static bool fit(number at, const gathering& inputs, const token& arrived);
  std::vector<std::string> missing_in(number at, const gathering& inputs) const;
  std::size_t wanted_by(number at, const gathering& inputs) const;
  error stuck(number at, const gathering& inputs) const;
  std::optional<number> first_stuck() const;
  bool encloses(number from, number join);

  const workflow_graph& graph_;
  std::vector<node_state> nodes_;
  std::deque<number> ready_; // Nodes with waiting visits of which none runs.
  std::map<std::pair<number, number>, bool> enclosing_; // Known answers.
  std::size_t running_ = 0;
  std::vector<std::shared_ptr<const json>> outputs_; // Of ended paths, by node.
};

} // namespace troupe

// The outcome of a run as values to compare, and processes that end between two
// commits: a store that keeps the changes of a run, and places that have only
// the first of them.

#pragma once

#include "troupe/agents/turns/recovery.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "recovery_trees.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The changes that a store has committed, in order, but for the ends of runs.
/// Thread-safe.
class change_log {
public:
  void add(std::span<const store_change> changes) {
    const std::lock_guard guard(mutex_);
    for (const auto& each : changes)
      if (each.kind != change_kind::close_runs)
        changes_.push_back(each);
  }

  std::vector<store_change> taken() const {
    const std::lock_guard guard(mutex_);
    return changes_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<store_change> changes_;
};

/// A store that keeps its changes in a log.
class recording_store final : public forwarding_store {
public:
  recording_store(std::unique_ptr<store> within,
                  std::shared_ptr<change_log> log)
    : forwarding_store(std::move(within)),
      log_(std::move(log)) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    auto outcome = forwarding_store::commit(changes);
    if (outcome && outcome->moved.empty() && outcome->kept_out.empty())
      log_->add(changes);
    return outcome;
  }

private:
  const std::shared_ptr<change_log> log_;
};

/// Makes a place that has these changes.
inline std::shared_ptr<memory_data>
place_with(const std::vector<store_change>& changes, std::size_t count) {
  auto place = make_memory_data();
  const auto into = make_memory_store(place);
  for (std::size_t index = 0; index < count; ++index) {
    auto change = changes[index];
    // The log does not have the closes of runs.
    for (auto& mark : change.runs) {
      mark.alone_after.reset();
      mark.taken_from.reset();
    }
    if (!into->commit({&change, 1}).value().moved.empty())
      throw std::runtime_error("change " + std::to_string(index)
                               + " does not fit");
  }
  // The process that made the changes has ended.
  for (std::size_t index = 0; index < count; ++index)
    for (const auto& mark : changes[index].runs)
      into->remove_holder(mark.holder).value();
  return place;
}

/// Makes the processes that have runs on a place ones that have ended, for the
/// lease.
inline void forget_holders(const std::shared_ptr<memory_data>& place) {
  const auto kept = make_memory_store(place);
  for (const auto& each : kept->list_runs({}).value())
    kept->remove_holder(each.holder).value();
}

/// One process: a runtime with a store on a place.
class process : public runtime_fixture {
public:
  explicit process(std::shared_ptr<memory_data> kept = make_memory_data(),
                   std::shared_ptr<troupe::environment> time = {},
                   std::vector<plugin> plugins = {})
    : process(std::make_shared<change_log>(),
              std::move(kept),
              std::move(time),
              std::move(plugins)) {}

  /// Runs `root` to its end. Returns the code.
  std::string go(const agent& root,
                 user_message message = "go",
                 const run_options& options = {}) {
    return end_of(runtime.run(root, key, std::move(message), options));
  }

  /// Recovers the session's only run, or the one of this id. Other processes
  /// count as ended.
  std::string recover(const agent& root,
                      const run_options& options = {},
                      const std::string& id = {}) {
    forget_holders(place);
    return end_of(
      runtime.recover(root, key, id.empty() ? run_id() : id, options));
  }

  /// The id of the first run.
  std::string run_id() { return events(key).front()->invocation_id; }

  std::string end_of(run started) {
    const auto ended = started.wait().get();
    reason = reason_of(ended);
    waits = started.waits_for();
    return code_of(ended);
  }

  bool tells(const std::string& part) const {
    return reason.find(part) != std::string::npos;
  }

  const session_key key{"press", "ann", "s"};
  const std::shared_ptr<memory_data> place;
  /// The changes that this process has committed.
  const std::shared_ptr<change_log> log;
  /// The reason of the last run that failed.
  std::string reason;
  std::vector<std::string> waits;

private:
  process(std::shared_ptr<change_log> into,
          std::shared_ptr<memory_data> kept,
          std::shared_ptr<troupe::environment> time,
          std::vector<plugin> plugins)
    : runtime_fixture(
      options_for(into, kept, std::move(time), std::move(plugins))),
      place(std::move(kept)),
      log(std::move(into)) {}

  static runtime_options options_for(const std::shared_ptr<change_log>& into,
                                     std::shared_ptr<memory_data> place,
                                     std::shared_ptr<troupe::environment> time,
                                     std::vector<plugin> plugins) {
    runtime_options chosen;
    chosen.store = std::make_shared<recording_store>(
      make_memory_store(std::move(place)), into);
    chosen.append_wait_max = {}; // A slow machine refuses nothing.
    chosen.environment = std::move(time);
    chosen.plugins = std::move(plugins);
    chosen.threads = 2;
    chosen.tool_threads = 4;
    return chosen;
  }
};

// -- outcomes ----

/// The names of calls by their ids. The ids of calls that a model makes again
/// are new.
inline std::map<std::string, std::string> calls_in(const event_slice& events) {
  std::map<std::string, std::string> names;
  for (const auto& said : events)
    for (const auto& element : said->content.parts)
      if (const auto* call = element.call();
          call != nullptr && !call->id.empty())
        names[call->id] = "<" + call->name + ">";
  return names;
}

inline std::string with_names(std::string line,
                              const std::map<std::string, std::string>& names) {
  for (const auto& [id, name] : names)
    for (auto at = line.find(id); at != line.npos; at = line.find(id, at))
      line.replace(at, id.size(), name);
  return line;
}

/// Shows an event without ids and times. With `at_once` the numbers in its
/// changes of state are left out: they depend on the order of other lanes.
inline std::string show_event(const event& said, bool at_once) {
  auto parts = json::array();
  for (const auto& element : said.content.parts) {
    if (const auto* words = element.text())
      parts.push_back(*words);
    else if (const auto* call = element.call())
      parts.push_back({{"call", call->name}, {"args", call->args.data()}});
    else if (const auto* response = element.response())
      parts.push_back(
        {{"of", response->name}, {"response", response->response.data()}});
  }
  auto delta = said.actions.state_delta.to_json();
  if (at_once)
    for (auto& each : delta)
      if (each.is_number())
        each = "number";
  json shown{{"author", said.author},
             {"branch", said.branch},
             {"path", std::string(path_in(said))},
             {"step", static_cast<int>(step_in(said))},
             {"parts", std::move(parts)},
             {"delta", std::move(delta)},
             {"output", output_of(said)},
             {"error", said.field("errorCode")},
             {"to", said.actions.transfer_to_agent},
             {"escalates", said.actions.escalate}};
  return to_text(shown);
}

/// The events of a session but for claims, one a line.
inline std::string show_events(const event_slice& events, bool at_once) {
  const auto names = calls_in(events);
  std::vector<std::string> lines;
  for (const auto& said : events)
    if (!claims_run(*said))
      lines.push_back(with_names(show_event(*said, at_once), names));
  if (at_once)
    std::ranges::sort(lines);
  std::string all;
  for (const auto& each : lines)
    all += each + "\n";
  return all;
}

/// The states of session, user and app.
inline std::string show_state(process& on) {
  return to_text(json{{"session", on.state(on.key)},
                      {"user", on.user_state()},
                      {"app", on.app_state()}});
}

/// The calls whose end an event records.
inline std::vector<std::string> completed_by(const event& said) {
  if (said.author == "user" || claims_run(said))
    return {};
  if (const auto record = record_in(said)) {
    using kind = workflow_record::kind;
    if (record->is != kind::end && record->is != kind::failure)
      return {};
    if (record->at.items > 0)
      return {"item:" + record->node};
    // The failure of a map is that of one item, which has no event of its own.
    if (record->is == kind::failure)
      return {
        "node:" + record->node, "tool:" + record->node, "item:" + record->node};
    // The node is a function or a tool.
    return {"node:" + record->node, "tool:" + record->node};
  }
  if (said.id.find("/update-") != std::string::npos)
    return {"update:" + said.author};
  std::vector<std::string> all;
  switch (step_in(said)) {
  case agent_step::before_agent:
    return {"before:" + said.author};
  case agent_step::after_agent:
    return {"after:" + said.author};
  case agent_step::body:
    // Claims and pauses have no parts.
    if (!said.content.parts.empty())
      all.push_back("model:" + said.author);
    return all;
  case agent_step::tools:
    for (const auto& element : said.content.parts)
      if (const auto* response = element.response())
        all.push_back("tool:" + response->name);
    return all;
  default:
    return {};
  }
}

inline counts completed_in(const std::vector<store_change>& changes,
                           std::size_t count) {
  counts all;
  for (std::size_t index = 0; index < count; ++index)
    if (changes[index].kind == change_kind::append)
      for (const auto& each : completed_by(*changes[index].event))
        ++all[each];
  return all;
}

inline bool is_body(const std::string& name) {
  return name.starts_with("body:");
}

/// Shows the counts but for those of bodies, which run again until a later
/// event tells that they have ended.
inline std::string show_counts(const counts& all) {
  std::string shown;
  for (const auto& [name, number] : all)
    if (!is_body(name) && number != 0)
      shown += name + "=" + std::to_string(number) + " ";
  return shown;
}

/// The calls of a whole run without those that had ended.
inline counts rest_of(counts all, const counts& ended) {
  for (auto& [name, number] : all)
    if (const auto found = ended.find(name); found != ended.end())
      number -= found->second;
  return all;
}

/// Number of changes up to the message of the first run.
inline std::size_t up_to_message(const std::vector<store_change>& changes) {
  for (std::size_t index = 0; index < changes.size(); ++index)
    if (changes[index].kind == change_kind::append
        && changes[index].event->author == "user")
      return index + 1;
  throw std::runtime_error("no message");
}

/// Number of recoveries that the session has.
inline std::size_t claims_in(process& on) {
  std::size_t count = 0;
  for (const auto& each : on.events(on.key))
    count += claims_run(*each) ? 1 : 0;
  return count;
}

/// A run that was not cut, and the changes that it has committed.
struct whole_run {
  explicit whole_run(const recovery_tree& of) {
    process on;
    on.open();
    const auto count = make_counter();
    code = on.go(of.make(count), {"go", of.delta});
    reason = on.reason;
    state = show_state(on);
    events = show_events(on.events(on.key), of.at_once);
    calls = count->taken();
    changes = on.log->taken();
  }

  /// A place where the run has ended behind its first `count` changes.
  std::shared_ptr<memory_data> cut(std::size_t count) const {
    return place_with(changes, count);
  }

  std::size_t message() const { return up_to_message(changes); }

  std::string code;
  std::string reason;
  std::string state;
  std::string events;
  counts calls;
  std::vector<store_change> changes;
};

} // namespace troupe::testing

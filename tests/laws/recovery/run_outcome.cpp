#include "run_outcome.hpp"

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/workflow.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

namespace troupe::testing {

namespace {

// Steps that take no time.
class quiet_world final : public outside_world {
public:
  void note(const std::string& step,
            const std::string& key,
            const std::string&) override {
    const std::lock_guard guard(mutex_);
    calls_[step].insert(key);
  }

  void work() override {}

  std::chrono::nanoseconds delay() override { return {}; }

  outside_calls calls() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }

private:
  mutable std::mutex mutex_;
  outside_calls calls_;
};

std::string line_of(const event& said) {
  auto parts = json::array();
  for (const auto& element : said.content.parts) {
    auto shown = json::object();
    if (const auto* words = element.text()) {
      shown["text"] = *words;
    } else if (const auto* call = element.call()) {
      shown["call"] = call->name;
    } else if (const auto* response = element.response()) {
      shown["of"] = response->name;
      shown["response"] = response->response.data();
    }
    parts.push_back(std::move(shown));
  }
  auto changes = said.actions.state_delta.to_json();
  for (auto& each : changes)
    if (each.is_number())
      each = "number";
  auto shown = json::object();
  shown["author"] = said.author;
  shown["branch"] = said.branch;
  shown["path"] = std::string(path_in(said));
  shown["step"] = static_cast<int>(step_in(said));
  shown["parts"] = std::move(parts);
  shown["changes"] = std::move(changes);
  shown["output"] = output_of(said);
  shown["error"] = said.field("errorCode");
  shown["escalates"] = said.actions.escalate;
  return shown.dump();
}

std::vector<std::string> lines_of(const event_slice& events) {
  std::vector<std::string> lines;
  for (const auto& said : events)
    if (!claims_run(*said))
      lines.push_back(line_of(*said));
  std::ranges::sort(lines);
  return lines;
}

// The keys of tools and nodes as the events that record their ends tell them.
outside_calls keys_in(const event_slice& events) {
  outside_calls told;
  for (const auto& said : events) {
    for (const auto& element : said->content.parts)
      if (const auto* response = element.response())
        told["tool:" + response->name].insert(response->id);
    if (const auto record = record_in(*said);
        record && record->is == workflow_record::kind::end)
      told["node:" + record->node].insert(said->id);
  }
  return told;
}

run_outcome run_undisturbed(const counted_tree& tree) {
  runtime_options options;
  options.threads = 1;
  // Events tell the places of their agents only over a store.
  options.store = std::shared_ptr<store>(make_memory_store());
  auto on = runtime::open(std::move(options)).value();
  const session_key key{"press", "ann", "s"};
  on.sessions().create(create_request(key)).get().value();
  const auto outside = std::make_shared<quiet_world>();
  const auto root = tree.make(outside);
  user_message message("go", tree.delta);
  auto started = on.run(root, key, std::move(message));
  started.wait().get().value();
  const auto held = on.sessions().get(key).get().value();
  run_outcome made;
  made.state = json(held.state().all());
  made.events = lines_of(held.events());
  for (const auto& [step, keys] : outside->calls())
    made.calls[step] = keys.size();
  return made;
}

std::string listed(const std::set<std::string>& names) {
  std::string all;
  for (const auto& each : names)
    all += (all.empty() ? "" : ", ") + each;
  return all;
}

} // namespace

const std::vector<run_outcome>& undisturbed_outcomes() {
  static const auto all = [] {
    std::vector<run_outcome> made;
    for (const auto& each : counted_trees())
      made.push_back(run_undisturbed(each));
    return made;
  }();
  return all;
}

std::vector<std::string> compare_events(std::size_t tree,
                                        const session& found) {
  std::vector<std::string> wrong;
  const auto& expected = undisturbed_outcomes()[tree].events;
  const auto lines = lines_of(found.events());
  std::vector<std::string> different;
  std::ranges::set_difference(expected, lines, std::back_inserter(different));
  for (const auto& each : different)
    wrong.push_back("an event is missing: " + each);
  different.clear();
  std::ranges::set_difference(lines, expected, std::back_inserter(different));
  for (const auto& each : different)
    wrong.push_back("an event is there too often: " + each);
  std::set<std::string> ids;
  std::uint64_t claims = 0;
  for (const auto& said : found.events()) {
    if (!ids.insert(said->id).second)
      wrong.push_back("two events have the id " + said->id);
    if (claims_run(*said)
        && fact_in(*said, recovers_fact)->get<std::uint64_t>() != ++claims)
      wrong.push_back(fmt::format("claim {} of the run is not number {}",
                                  fact_in(*said, recovers_fact)->dump(),
                                  claims));
  }
  return wrong;
}

std::vector<std::string> compare_calls(std::size_t tree,
                                       const session& found,
                                       const outside_calls& calls) {
  std::vector<std::string> wrong;
  const auto told = keys_in(found.events());
  for (const auto& [step, count] : undisturbed_outcomes()[tree].calls) {
    const auto made = calls.find(step);
    if (made == calls.end() || made->second.size() != count) {
      wrong.push_back(
        fmt::format("{} was begun with {} keys instead of {}: {}",
                    step,
                    made == calls.end() ? 0 : made->second.size(),
                    count,
                    made == calls.end() ? "" : listed(made->second)));
      continue;
    }
    const auto recorded = told.find(step);
    if (recorded != told.end() && recorded->second != made->second)
      wrong.push_back(fmt::format("{} was begun with the keys {}, but its "
                                  "events have {}",
                                  step,
                                  listed(made->second),
                                  listed(recorded->second)));
  }
  return wrong;
}

} // namespace troupe::testing

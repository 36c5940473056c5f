#include "troupe/actors/runs/nested_session.hpp"

#include "troupe/agents/turns/node_event.hpp"

#include <utility>

namespace troupe::actors {

namespace {

constexpr std::array nested_scopes{scope::session, scope::user, scope::app};

void complete(event& said, const run_facts& facts) {
  if (said.id.empty())
    said.id = facts.environment->new_id();
  if (said.timestamp == timestamp())
    said.timestamp = facts.environment->now();
  said.invocation_id = facts.invocation_id;
}

} // namespace

nested_session::nested_session(agent root,
                               const state_snapshot& seen,
                               event message,
                               const run_facts& facts)
  : root_(std::move(root)),
    tree_(root_.transfers() ? std::make_unique<const agent_tree>(root_)
                            : nullptr),
    facts_(facts),
    scopes_{
      scope_state(seen.session), scope_state(seen.user), scope_state(seen.app)},
    published_(seen) {
  published_.temp = state_map();
  message.author = "user";
  complete(message, facts_);
  events_.push_back(std::make_shared<const event>(std::move(message)));
}

step_view nested_session::read() const {
  const std::lock_guard guard(mutex_);
  return {published_, events_.slice()};
}

// All scopes accept the event, or none does.
result<void> nested_session::judge(const delta& changes,
                                   basis_check* basis,
                                   std::vector<resolution>& resolved) {
  for (const auto where : nested_scopes) {
    auto& owned = scopes_[static_cast<std::size_t>(where)];
    result<void> judged;
    if (basis != nullptr)
      judged = basis->compare(where, changes, owned.keys());
    if (judged)
      judged
        = owned.judge(changes.share(where), resolved, false, facts_.limits);
    if (judged)
      continue;
    for (auto& each : scopes_)
      each.abandon();
    return judged;
  }
  for (auto& each : scopes_)
    each.install();
  return {};
}

result<event_ptr> nested_session::append(event said, basis_check* basis) {
  if (auto checked = check_event(said, facts_.limits); !checked)
    return checked.error();
  complete(said, facts_);
  said.actions.state_delta.drop(scope::temp);
  const auto done = said.actions.state_delta;
  std::vector<resolution> resolved;
  if (auto judged = judge(done, basis, resolved); !judged)
    return judged.error();
  // Later values of a key are based on the changes that are collected already.
  if (basis != nullptr)
    for (const auto& each : basis->bases())
      if (each.where != scope::temp
          && changes_.state_delta.find_last(each.where, each.name) == nullptr)
        bases_.push_back(each);
  changes_.state_delta.merge(done);
  for (const auto& [name, version] : said.actions.artifact_delta)
    changes_.artifact_delta[name] = version;
  if (!resolved.empty())
    said.actions.state_delta.resolve(resolved);
  auto kept = std::make_shared<const event>(std::move(said));
  if (!kept->content.parts.empty() && !is_node_input(*kept))
    last_said_ = kept;
  const std::lock_guard guard(mutex_);
  events_.push_back(kept);
  published_.session = scopes_[0].keys();
  published_.user = scopes_[1].keys();
  published_.app = scopes_[2].keys();
  return kept;
}

} // namespace troupe::actors

#include "verdict.hpp"

#include "troupe/core/rewind.hpp"
#include "troupe/core/support/recent_writes.hpp"

#include <algorithm>
#include <utility>

namespace troupe::testing {

session_key key_of(const owner_name& owner) {
  return {owner.app, owner.user, owner.session};
}

result<shared_write> write_in(session_model& model, const call_record& call) {
  const auto& wanted = call.write;
  return model.write(call.key.app,
                     wanted.of_user ? std::optional(call.key.user)
                                    : std::nullopt,
                     as_delta({wanted.change}),
                     wanted.id,
                     wanted.expected_revision);
}

verdict::verdict(const plan& chosen, const history& told)
  : plan_(chosen),
    told_(told) {
  for (const auto& call : told_.calls) {
    if (call.kind == call_kind::append)
      calls_by_id_.emplace(call.event.id, &call);
    if (call.kind == call_kind::write)
      writes_by_id_.emplace(call.write.id, &call);
    if (call.kind == call_kind::create)
      created_by_token_.emplace(
        call.created.state.at("born").get<std::string>(), &call);
  }
  replay();
}

// -- stored changes ----

void verdict::replay() {
  model_options options;
  options.limits = plan_.options.limits;
  at_.emplace_back(options);
  births_.emplace_back();
  for (const auto& change : told_.written) {
    if (const auto lost = told_.losses.find(at_.size() - 1);
        lost != told_.losses.end()) {
      at_.push_back(at_[lost->second]);
      births_.push_back(births_[lost->second]);
      continue;
    }
    auto model = at_.back();
    births_.push_back(births_.back());
    const auto key = key_of(change.owner);
    switch (change.kind) {
    case change_kind::create:
      births_.back()[key] = at_.size() - 1;
      if (change.past)
        replay_fork(change, model);
      else
        replay_create(change, model);
      break;
    case change_kind::append:
      events_[{key, change.event->id}].push_back(
        {at_.size() - 1, *change.session_revision, change.event});
      note_losses(change, model);
      replay_append(change, model);
      break;
    case change_kind::remove:
      if (!model.remove(key).value())
        find("a session was removed that does not exist: " + to_string(key));
      break;
    case change_kind::remove_user:
      // The removed user may be one that does not exist.
      static_cast<void>(model.remove_user(key.app, key.user));
      break;
    case change_kind::write:
      replay_write(change, model);
      break;
    case change_kind::trim:
      find("a session was trimmed, which no client asked for: "
           + to_string(key));
      break;
    case change_kind::close_runs:
      break; // Touches no scope.
    }
    check_revisions(change, model);
    at_.push_back(std::move(model));
  }
}

void verdict::replay_create(const store_change& change, session_model& model) {
  const auto& changed = change.event->actions.state_delta;
  const auto key = key_of(change.owner);
  const auto* token = changed.find_last(scope::session, "born");
  const auto found
    = token == nullptr
        ? created_by_token_.end()
        : created_by_token_.find(token->operand.data().get<std::string>());
  if (found == created_by_token_.end()) {
    find("a session was created without a call: " + to_string(key));
    return;
  }
  auto wanted = delta::from_json(found->second->created.state).value();
  wanted.drop(scope::temp);
  if (found->second->key != key || !(wanted.to_json() == changed.to_json()))
    find("created with another state: " + to_string(key));
  model.now = change.event->timestamp;
  create_request request(key);
  request.state = wanted.to_json();
  if (auto made = model.create(std::move(request)); !made)
    find("should not have been created: " + to_string(key) + ", "
         + to_string(made.error()));
}

// Returns the event as it was sent to the runtime, as far as it is known.
event verdict::expect(const store_change& change) {
  const auto& stored = *change.event;
  const auto key = key_of(change.owner);
  const auto [first, last] = calls_by_id_.equal_range(stored.id);
  bool is_known = false;
  for (auto each = first; each != last; ++each) {
    const auto& call = *each->second;
    const auto& revision = call.how.expected_revision;
    if (call.key != key || call.event.content != stored.content)
      continue;
    is_known = true;
    if ((call.code == "ok" || call.code == "store_failed" || call.was_dead)
        && (!revision || *revision + 1 == *change.session_revision)) {
      auto expected = call.event;
      expected.invocation_id = stored.invocation_id;
      if (expected.timestamp == timestamp())
        expected.timestamp = stored.timestamp;
      return expected;
    }
  }
  if (is_known)
    find("was refused, but is stored: " + stored.id + " in " + to_string(key));
  auto expected = stored;
  auto changed = delta();
  bool is_recorded = false;
  if (const auto found = told_.recorded.find(stored.text());
      found != told_.recorded.end()) {
    changed = found->second;
    is_recorded = true;
  }
  for (const auto& part : stored.content.parts)
    if (const auto* response = part.response();
        response != nullptr && response->response->contains("token")) {
      changed.merge(told_.recorded.at(response->response->at("token")));
      is_recorded = true;
    }
  if (is_recorded)
    expected.actions.state_delta = std::move(changed);
  return expected;
}

void verdict::replay_append(const store_change& change, session_model& model) {
  const auto& stored = *change.event;
  const auto key = key_of(change.owner);
  if (!stored.actions.state_delta.share(scope::temp).empty())
    find("temp: keys are stored in " + stored.id);
  auto again = taken_back_by(stored) ? model.rewind(key, stored)
                                     : model.append(key, expect(change));
  if (!again) {
    find("should have been refused: " + stored.id + " in " + to_string(key)
         + ", " + to_string(again.error()));
    return;
  }
  if (model.get(key, {.num_recent_events = 0}).value().revision
      == at_.back().get(key, {.num_recent_events = 0}).value().revision) {
    find("is stored twice: " + stored.id + " in " + to_string(key));
    return;
  }
  const auto expected = without_records(**again);
  const auto found = without_records(stored);
  if (!(expected == found))
    find("has another result: " + stored.id + " in " + to_string(key) + " is "
         + found.dump() + ", expected " + expected.dump());
}

// The id of a write is stored with it, in a reserved key. One of the calls with
// this id and key must have the same effect in the model. (Two calls may give
// one id to writes of different keys.)
void verdict::replay_write(const store_change& change, session_model& model) {
  const auto where = change.owner.where();
  const auto share = change.event->actions.state_delta.share(where);
  const auto remembered
    = std::ranges::find_if(share, is_recent_write, &operation::name);
  if (share.size() != 2 || remembered == share.end()) {
    find("a write without its id: " + to_string(change.owner));
    return;
  }
  const auto id = remembered->operand->at("id").get<std::string>();
  const auto& written = share.front();
  const auto [first, last] = writes_by_id_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    const auto& call = *each->second;
    if (call.code != "ok" && call.code != "store_failed" && !call.was_dead)
      continue;
    if (call.write.change.key != std::string(prefix_of(where)) + written.name)
      continue;
    auto after = model;
    const auto answer = write_in(after, call);
    if (!answer || !(*answer->value == written.operand)
        || answer->revision
             != change.user_revision.value_or(change.app_revision.value_or(0)))
      continue;
    writes_.emplace(id, std::pair(at_.size() - 1, *answer));
    static_cast<void>(write_in(model, call));
    return;
  }
  find("a write has another result: " + id + " in " + to_string(change.owner));
}

void verdict::check_revisions(const store_change& change,
                              const session_model& model) {
  const auto key = key_of(change.owner);
  const auto check = [&](scope where,
                         const std::optional<std::uint64_t>& stored,
                         std::uint64_t expected) {
    if (stored && *stored != expected)
      find("a revision is wrong: " + std::string(prefix_of(where)) + " of "
           + to_string(change.owner) + " is " + std::to_string(*stored)
           + ", expected " + std::to_string(expected));
  };
  if (change.kind == change_kind::write) {
    check(scope::user,
          change.user_revision,
          model.user_revision(key.app, key.user));
    check(scope::app, change.app_revision, model.app_revision(key.app));
  }
  if (change.kind == change_kind::append || change.kind == change_kind::create)
    if (const auto held = model.get(key, {.num_recent_events = 0}); held) {
      check(scope::session, change.session_revision, held->revision);
      check(scope::user,
            change.user_revision,
            model.user_revision(key.app, key.user));
      check(scope::app, change.app_revision, model.app_revision(key.app));
    }
}

// -- the state at the end ----

namespace {

void compare_session(const session& found,
                     const session_view& expected,
                     const std::string& when,
                     std::vector<std::string>& wrong) {
  const auto name = to_string(expected.key);
  if (!(found.state().all() == expected.state))
    wrong.push_back("the state of " + name + " is " + found.state().all().dump()
                    + when + ", expected " + expected.state.dump());
  if (found.revision() != expected.revision
      || found.last_update_time() != expected.last_update_time)
    wrong.push_back("revision or time of " + name + " are others" + when);
  if (!std::ranges::equal(found.events(),
                          expected.events,
                          [](const event_ptr& one, const event_ptr& other) {
                            return without_records(*one)
                                   == without_records(*other);
                          }))
    wrong.push_back("the events of " + name + " are others" + when);
}

} // namespace

std::vector<std::string>
verdict::compare(const std::map<session_key, session>& found) const {
  std::vector<std::string> wrong;
  for (const auto& [key, fetched] : found) {
    const auto expected = at_.back().get(key).value();
    compare_session(fetched, expected, " at the end", wrong);
    if (const auto live = fetched.events().live();
        !std::ranges::equal(live,
                            live_events(expected.events),
                            [](const event_ptr& one, const event_ptr& other) {
                              return one->id == other->id;
                            }))
      wrong.push_back("the live events of " + to_string(key)
                      + " are others at the end");
  }
  return wrong;
}

std::vector<std::string> verdict::compare_earlier(const session& found) const {
  std::vector<std::string> wrong;
  const auto expected
    = at_.back().get(found.key(), {.at = found.revision()}).value();
  compare_session(
    found, expected, " at revision " + std::to_string(found.revision()), wrong);
  if (found.is_earlier() != expected.is_earlier)
    wrong.push_back("another revision of " + to_string(found.key())
                    + " is the newest one");
  return wrong;
}

} // namespace troupe::testing

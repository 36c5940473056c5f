#include "troupe/stores/postgres/plan.hpp"

#include "troupe/stores/shared/owner_names.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe {

namespace {

// Makes an id from the number of the row that first names the scope. So ids
// grow, are never used again, and need no sequence. A server that lost rows
// assigns their numbers again; the random bits keep the ids different.
std::int64_t scope_id(std::int64_t row, std::int64_t stamp, scope where) {
  constexpr std::uint64_t random_bits = 20;
  constexpr std::uint64_t random_mask = (1ULL << random_bits) - 1;
  constexpr std::uint64_t id_mask = ~std::uint64_t{0} >> 1U;
  const auto random = static_cast<std::uint64_t>(stamp) & random_mask;
  auto id = (static_cast<std::uint64_t>(row) << random_bits) | random;
  id = (id << 2U) | static_cast<std::uint64_t>(where);
  return static_cast<std::int64_t>(id & id_mask);
}

} // namespace

postgres_plan::postgres_plan(std::span<const store_change> changes,
                             postgres_known known,
                             std::int64_t last_id,
                             std::int64_t stamp,
                             std::vector<owner_name> moved)
  : known_(std::move(known)),
    last_id_(last_id),
    stamp_(stamp),
    moved_(std::move(moved)) {
  for (const auto& change : changes) {
    switch (change.kind) {
    case change_kind::create:
    case change_kind::append:
    case change_kind::write:
      add(change);
      break;
    case change_kind::remove:
      judge_removal(change);
      break;
    case change_kind::remove_user:
      remove_user(change.owner);
      break;
    case change_kind::trim:
      trim(change);
      break;
    case change_kind::close_runs:
      mark_runs(change);
      break;
    }
  }
}

void postgres_plan::add(const store_change& change) {
  const auto& owner = change.owner;
  planned_row row{++last_id_, &change};
  if (change.kind == change_kind::create) {
    const auto parent = change.past ? judge_past(change) : 0;
    expect(owner, !known_.scopes[owner]);
    known_.scopes[owner].reset();
    make(app_of(owner));
    make(user_of(owner));
    auto& head = make(owner);
    head->revision = change.session_revision.value_or(0);
    row.session = head->id;
    if (parent != 0) {
      auto& made = step_for_rows().scopes.back();
      made.past = parent;
      made.first = static_cast<std::int64_t>(head->revision);
      made.microseconds = change.event->timestamp.time_since_epoch().count();
      made.keys = &change.event->actions.state_delta;
    }
  } else if (change.session_revision) {
    const bool is_there = known_.scopes[owner].has_value();
    expect(owner, is_there);
    if (is_there)
      row.session = touch(owner, *change.session_revision);
  }
  if (change.user_revision)
    row.user = touch(user_of(owner), *change.user_revision);
  if (change.app_revision)
    row.app = touch(app_of(owner), *change.app_revision);
  step_for_rows().rows.push_back(row);
  if (!change.runs.empty())
    mark_runs(change);
}

// Behind the row of the change, so that both are in one step.
void postgres_plan::mark_runs(const store_change& change) {
  const auto& found = known_.scopes[change.owner];
  if (!found)
    return;
  for (const auto& mark : change.runs)
    step_for_rows().runs.push_back({found->id, &mark});
}

// Returns the id of the session that is forked; 0 if it has moved. The id of a
// session that this commit creates is not known to any change.
std::int64_t postgres_plan::judge_past(const store_change& change) {
  const auto& past = *change.past;
  const owner_name parent{change.owner.app, change.owner.user, past.session};
  const auto& found = known_.scopes[parent];
  const bool fits
    = found && found->revision >= past.revision
      && (past.incarnation == 0
          || found->id == static_cast<std::int64_t>(past.incarnation));
  expect(parent, fits);
  return fits ? found->id : 0;
}

std::int64_t postgres_plan::touch(const owner_name& owner,
                                  std::uint64_t revision) {
  auto& found = make(owner);
  expect(owner, found->revision + 1 == revision);
  found->revision = revision;
  return found->id;
}

postgres_plan::found_head& postgres_plan::make(const owner_name& owner) {
  auto& found = known_.scopes[owner];
  if (!found) {
    found = postgres_head{scope_id(last_id_, stamp_, owner.where()), 0};
    step_for_rows().scopes.push_back({found->id, owner});
  }
  return found;
}

// The rows to delete are written in this step or before it.
void postgres_plan::trim(const store_change& change) {
  const auto& kept = *change.kept;
  const auto& found = known_.scopes[change.owner];
  const bool fits
    = found && found->revision >= kept.revision
      && (kept.incarnation == 0
          || found->id == static_cast<std::int64_t>(kept.incarnation));
  expect(change.owner, fits);
  if (!fits || kept.revision == 0)
    return;
  if (steps_.empty() || !steps_.back().removals.empty())
    steps_.emplace_back();
  steps_.back().trims.push_back({found->id, &change});
}

void postgres_plan::judge_removal(const store_change& change) {
  const auto& found = known_.scopes[change.owner];
  expect(change.owner,
         !change.session_revision
           || (found && found->revision + 1 == *change.session_revision));
  remove(change.owner);
}

void postgres_plan::remove(const owner_name& owner) {
  auto& found = known_.scopes[owner];
  if (owner.where() == scope::session)
    expect(owner, found.has_value());
  if (!found)
    return;
  if (steps_.empty())
    steps_.emplace_back();
  steps_.back().removals.push_back({++last_id_, found->id, owner});
  found.reset();
}

void postgres_plan::remove_user(const owner_name& user) {
  std::vector<owner_name> removed;
  for (const auto& [owner, found] : known_.scopes)
    if (found && !owner.user.empty() && user_of(owner) == user)
      removed.push_back(owner);
  // Sessions first: their rows keep the user's part, which the removal of the
  // user then deletes.
  std::ranges::sort(removed, std::greater());
  for (const auto& owner : removed)
    remove(owner);
}

void postgres_plan::expect(const owner_name& owner, bool holds) {
  if (!holds && std::ranges::find(moved_, owner) == moved_.end())
    moved_.push_back(owner);
}

planned_step& postgres_plan::step_for_rows() {
  if (steps_.empty() || !steps_.back().trims.empty()
      || !steps_.back().removals.empty())
    steps_.emplace_back();
  return steps_.back();
}

} // namespace troupe

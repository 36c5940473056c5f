#include "troupe/stores/shared/run_gate.hpp"

#include "troupe/stores/shared/owner_names.hpp"

#include <algorithm>

namespace troupe {

std::vector<owner_name>
sessions_to_gate(std::span<const store_change> changes) {
  std::vector<owner_name> found;
  for (const auto& change : changes)
    if (std::ranges::any_of(change.runs,
                            [](const run_mark& mark) {
                              return mark.opens
                                     && (mark.alone_after || mark.taken_from);
                            })
        && std::ranges::find(found, change.owner) == found.end())
      found.push_back(change.owner);
  return found;
}

void run_gate::add(const owner_name& session,
                   std::string invocation_id,
                   std::string holder,
                   std::optional<std::chrono::microseconds> silent) {
  if (silent)
    silences_[holder] = *silent;
  runs_.emplace(std::pair(session, std::move(invocation_id)),
                std::move(holder));
}

std::vector<kept_out_run>
run_gate::judge(std::span<const store_change> changes) && {
  std::vector<kept_out_run> kept_out;
  for (const auto& change : changes) {
    if (change.kind == change_kind::remove)
      std::erase_if(runs_, [&](const auto& run) {
        return run.first.first == change.owner;
      });
    else if (change.kind == change_kind::remove_user)
      erase_user(change.owner);
    for (const auto& mark : change.runs)
      if (auto other = find_other(change.owner, mark))
        kept_out.push_back(
          {change.owner, mark.invocation_id, *std::move(other)});
      else
        apply(change.owner, mark);
  }
  return kept_out;
}

void run_gate::apply(const owner_name& session, const run_mark& mark) {
  const auto found = runs_.find({session, mark.invocation_id});
  if (mark.opens) {
    silences_[mark.holder] = std::chrono::microseconds(0);
    if (!mark.held_by
        || (found != runs_.end() && found->second == *mark.held_by))
      runs_[{session, mark.invocation_id}] = mark.holder;
    return;
  }
  if (found != runs_.end()
      && (mark.holder.empty() || found->second == mark.holder))
    runs_.erase(found);
}

void run_gate::erase_user(const owner_name& user) {
  std::erase_if(
    runs_, [&](const auto& run) { return user_of(run.first.first) == user; });
}

bool run_gate::is_silent(const std::string& holder,
                         std::chrono::microseconds longer_than) const {
  const auto silent = silences_.find(holder);
  return silent == silences_.end() || silent->second > longer_than;
}

bool run_gate::can_be_taken(const owner_name& session,
                            const run_mark& mark) const {
  const auto& from = *mark.taken_from;
  const auto found = runs_.find({session, mark.invocation_id});
  return found != runs_.end() && found->second == from.id
         && (!from.silent_for || is_silent(from.id, *from.silent_for));
}

std::optional<std::string> run_gate::find_other(const owner_name& session,
                                                const run_mark& mark) const {
  if (mark.opens && mark.taken_from && !can_be_taken(session, mark))
    return mark.invocation_id;
  if (!mark.opens || !mark.alone_after)
    return std::nullopt;
  for (auto next = runs_.lower_bound({session, std::string()});
       next != runs_.end() && next->first.first == session;
       ++next) {
    const auto& id = next->first.second;
    const auto& holder = next->second;
    if (id == mark.invocation_id || holder == mark.holder)
      continue;
    if (!is_silent(holder, *mark.alone_after))
      return id;
  }
  return std::nullopt;
}

} // namespace troupe

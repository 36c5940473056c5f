#include "troupe/stores/shared/run_table.hpp"

#include <algorithm>
#include <tuple>

namespace troupe {

namespace {

auto order_of(const run_position& place) {
  const auto& key = place.key;
  return std::tuple(place.opened,
                    std::string_view(place.invocation_id),
                    std::string_view(key.app),
                    std::string_view(key.user),
                    std::string_view(key.id));
}

bool is_asked(const run_query& query, const owner_name& session) {
  if (query.session)
    return session.app == query.session->app
           && session.user == query.session->user
           && session.session == query.session->id;
  return query.app.empty() || session.app == query.app;
}

} // namespace

void run_table::apply(const owner_name& session,
                      std::span<const run_mark> marks,
                      timestamp now) {
  for (const auto& mark : marks) {
    const auto found = runs_.find({session, mark.invocation_id});
    if (!mark.opens) {
      if (found != runs_.end()
          && (mark.holder.empty() || found->second.holder == mark.holder))
        runs_.erase(found);
      continue;
    }
    holders_[mark.holder] = now;
    if (mark.held_by
        && (found == runs_.end() || found->second.holder != *mark.held_by))
      continue;
    if (found == runs_.end()) {
      runs_.emplace(std::pair(session, mark.invocation_id),
                    kept_run{mark.agent, mark.holder, now});
    } else {
      found->second.agent = mark.agent;
      found->second.holder = mark.holder;
    }
  }
}

void run_table::erase(const owner_name& session) {
  std::erase_if(runs_,
                [&](const auto& run) { return run.first.first == session; });
}

void run_table::renew(const std::string& holder, timestamp now) {
  holders_[holder] = now;
  std::erase_if(holders_, [&](const auto& each) {
    return each.second < now - silent_holder_kept
           && std::ranges::none_of(runs_, [&](const auto& run) {
                return run.second.holder == each.first;
              });
  });
}

std::vector<open_run> run_table::list(const run_query& query,
                                      timestamp now) const {
  std::vector<open_run> found;
  for (const auto& [name, kept] : runs_) {
    const auto& [session, id] = name;
    open_run listed{{session.app, session.user, session.session},
                    id,
                    kept.agent,
                    kept.holder,
                    kept.opened,
                    silence_of(kept.holder, now)};
    if (!is_asked(query, session)
        || (query.behind
            && order_of(position_of(listed)) <= order_of(*query.behind)))
      continue;
    found.push_back(std::move(listed));
  }
  std::ranges::sort(found, [](const open_run& left, const open_run& right) {
    return order_of(position_of(left)) < order_of(position_of(right));
  });
  if (found.size() > query.limit)
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(query.limit),
                found.end());
  return found;
}

void run_table::add_to(run_gate& gate,
                       const owner_name& session,
                       timestamp now) const {
  for (auto next = runs_.lower_bound({session, std::string()});
       next != runs_.end() && next->first.first == session;
       ++next) {
    const auto& holder = next->second.holder;
    gate.add(session, next->first.second, holder, silence_of(holder, now));
  }
}

std::optional<std::chrono::microseconds>
run_table::silence_of(const std::string& holder, timestamp now) const {
  const auto found = holders_.find(holder);
  if (found == holders_.end())
    return std::nullopt;
  // In the future if the clock was set back; a process that lives renews it.
  return std::chrono::abs(
    std::chrono::duration_cast<std::chrono::microseconds>(now - found->second));
}

std::vector<owner_name> run_table::sessions() const {
  std::vector<owner_name> names;
  names.reserve(runs_.size());
  for (const auto& [name, kept] : runs_)
    names.push_back(name.first);
  return names;
}

} // namespace troupe

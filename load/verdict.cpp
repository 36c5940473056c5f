#include "troupe/load/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::load {

namespace {

// Findings that are told in words; the rest is counted.
constexpr std::size_t findings_max = 20;

} // namespace

std::string to_string(const verdict& found) {
  auto text = fmt::format("verdict: {} acknowledged, {} lost, {} doubled",
                          found.acknowledged,
                          found.lost,
                          found.doubled);
  if (found.ghosts > 0)
    text += fmt::format(", {} ghosts", found.ghosts);
  if (found.torn > 0)
    text += fmt::format(", {} torn", found.torn);
  text += found.reordered == 0
            ? ", order ok"
            : fmt::format(", {} out of order", found.reordered);
  text += found.wrong_totals == 0
            ? ", totals ok"
            : fmt::format(", {} totals wrong", found.wrong_totals);
  return text;
}

inspection::inspection(const workload& plan, const ledger& told)
  : plan_(plan),
    told_(told),
    seen_(told.size()),
    user_totals_(plan.chosen().users),
    app_totals_(plan.chosen().apps) {
  for (std::size_t caller = 0; caller < told.size(); ++caller)
    seen_[caller].resize(told[caller].size());
}

void inspection::note(std::uint64_t& count, std::string finding) {
  ++count;
  if (found_.findings.size() < findings_max)
    found_.findings.push_back(std::move(finding));
}

void inspection::look_at_session(std::size_t index, const session& held) {
  newest_.assign(told_.size(), 0);
  state_map state;
  for (const auto& said : held.events()) {
    look_at_event(index, said);
    for (const auto& done : said.actions.state_delta.share(scope::session)) {
      if (done.kind == operation_kind::erase)
        state.erase(done.name);
      else
        state.set(done.name, done.operand);
    }
  }
  const auto where = fmt::format("session {}", index);
  // The log leads to the state.
  auto replayed = json::object();
  state.for_each([&replayed](std::string_view name, const value& kept) {
    replayed[std::string(name)] = kept.data();
  });
  auto shown = json::object();
  const auto all = held.state().all();
  for (const auto& [name, kept] : all.items())
    if (split_key(name).where == scope::session)
      shown[name] = kept;
  if (!equal(replayed, shown))
    note(found_.wrong_totals,
         fmt::format("the log of {} does not lead to its state", where));
  if (held.revision() != held.events().size())
    note(found_.wrong_totals,
         fmt::format("{} is at revision {} with {} events",
                     where,
                     held.revision(),
                     held.events().size()));
}

void inspection::look_at_event(std::size_t index, const event& said) {
  const auto id = workload::identity_of(said.id);
  if (!id || id->caller >= told_.size()
      || id->number >= told_[id->caller].size()
      || told_[id->caller].session_of(id->number) != index)
    return note(found_.ghosts,
                fmt::format("event '{}' in session {} was never sent there",
                            said.id,
                            index));
  if (told_[id->caller].told_of(id->number) == fate::refused)
    note(found_.ghosts,
         fmt::format("event '{}' was refused and is there", said.id));
  if (seen_[id->caller][id->number])
    return note(found_.doubled,
                fmt::format("event '{}' is there more than once", said.id));
  seen_[id->caller][id->number] = true;
  auto& newest = newest_[id->caller];
  if (id->number + 1 < newest)
    note(found_.reordered,
         fmt::format("event '{}' stands behind a later one", said.id));
  newest = std::max(newest, id->number + 1);

  const auto planned = plan_.plan(id->caller, id->number);
  const auto& changes = said.actions.state_delta;
  for (const auto where : scopes_of(*planned.what)) {
    const auto key = workload::key_of(planned, where);
    const auto share = changes.share(where);
    if (std::ranges::none_of(share, [&key](const auto& done) {
          return done.name == split_key(key).name;
        }))
      note(found_.torn,
           fmt::format("event '{}' lacks its change of '{}'", said.id, key));
    else if (planned.what->kind == append_kind::add && where == scope::user)
      ++user_totals_[plan_.user_of(index)];
    else if (planned.what->kind == append_kind::add && where == scope::app)
      ++app_totals_[plan_.app_of(plan_.user_of(index))];
  }
}

void inspection::look_at_total(std::string what,
                               std::uint64_t expected,
                               const json& state) {
  const auto found = state.value(std::string(counter_key), json(0));
  if (!found.is_number() || found != json(expected))
    note(found_.wrong_totals,
         fmt::format("{} counts {} appends, its sessions have {}",
                     std::move(what),
                     found.dump(),
                     expected));
}

void inspection::look_at_user(std::size_t user, const json& state) {
  look_at_total(fmt::format("user {}", user), user_totals_[user], state);
}

void inspection::look_at_app(std::size_t app, const json& state) {
  look_at_total(fmt::format("app {}", app), app_totals_[app], state);
}

verdict inspection::finish() {
  for (std::size_t caller = 0; caller < told_.size(); ++caller)
    for (std::uint64_t number = 0; number < told_[caller].size(); ++number) {
      if (told_[caller].told_of(number) != fate::stored)
        continue;
      ++found_.acknowledged;
      if (!seen_[caller][number])
        note(found_.lost,
             fmt::format(
               "event '{}' was acknowledged and is not there",
               workload::id_of(static_cast<std::uint32_t>(caller), number)));
    }
  return std::move(found_);
}

} // namespace troupe::load

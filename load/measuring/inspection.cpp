#include "troupe/load/measuring/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::load {

namespace {

// Number of findings that are described; all are counted.
constexpr std::size_t findings_max = 20;

} // namespace

inspection::inspection(const workload& plan, const ledger& told)
  : plan_(plan),
    told_(told),
    seen_(told.size()),
    users_(plan.chosen().users),
    apps_(plan.chosen().apps) {
  for (std::size_t caller = 0; caller < told.size(); ++caller) {
    seen_[caller].resize(told[caller].size());
    sent_ += told[caller].size();
  }
}

void inspection::note(std::uint64_t& count, std::string finding) {
  ++count;
  if (found_.findings.size() < findings_max)
    found_.findings.push_back(std::move(finding));
}

void inspection::look_at_session(std::size_t index, const session& held) {
  newest_.assign(told_.size(), 0);
  session_count_ = 0;
  state_map state;
  for (const auto& said : held.events()) {
    look_at_event(index, *said);
    for (const auto& done : said->actions.state_delta.share(scope::session)) {
      if (done.kind == operation_kind::erase)
        state.erase(done.name);
      else
        state.set(done.name, done.operand);
    }
  }
  const auto where = fmt::format("session {}", index);
  // The replay of the log must give the state.
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
    note(
      found_.wrong_totals,
      fmt::format("the state of {} differs from the replay of its log", where));
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
         fmt::format("event '{}' was refused, but is stored", said.id));
  if (seen_[id->caller][id->number])
    return note(found_.doubled,
                fmt::format("event '{}' is stored more than once", said.id));
  seen_[id->caller][id->number] = true;
  auto& newest = newest_[id->caller];
  if (id->number + 1 < newest)
    note(found_.reordered,
         fmt::format("event '{}' is stored after a later one", said.id));
  newest = std::max(newest, id->number + 1);

  if (said.author != workload::author || said.text() != plan_.payload())
    note(found_.torn,
         fmt::format("event '{}' has other content than was sent", said.id));
  const auto planned = plan_.plan(id->caller, id->number);
  std::size_t expected = 0;
  for (const auto where : scopes_of(*planned.what)) {
    const auto key = workload::key_of(planned, where);
    const auto share = said.actions.state_delta.share(where);
    const auto found = std::ranges::find_if(share, [&key](const auto& done) {
      return done.name == split_key(key).name;
    });
    ++expected;
    if (found == share.end())
      note(found_.torn,
           fmt::format(
             "event '{}' is stored without its change of '{}'", said.id, key));
    else
      look_at_change(index, said, planned, where, found->operand.data());
  }
  const auto& changes = said.actions.state_delta;
  if (changes.share(scope::session).size() + changes.share(scope::user).size()
        + changes.share(scope::app).size()
      > expected)
    note(found_.torn,
         fmt::format("event '{}' has more changes than were sent", said.id));
}

// Checks that the stored value is the result of the change.
void inspection::look_at_change(std::size_t index,
                                const event& said,
                                const planned_append& planned,
                                scope where,
                                const json& changed) {
  const auto key = workload::key_of(planned, where);
  const auto wrong = [&] {
    note(found_.torn,
         fmt::format(
           "event '{}' sets '{}' to {}",
           said.id,
           key,
           changed.dump(-1, ' ', false, json::error_handler_t::replace)));
  };
  switch (planned.what->kind) {
  case append_kind::set:
  case append_kind::compare_and_set:
    if (!equal(changed, json(planned.number)))
      wrong();
    return;
  case append_kind::append:
    if (!changed.is_array() || changed.empty()
        || !equal(changed.back(), json(planned.number)))
      wrong();
    return;
  case append_kind::add:
    break;
  }
  if (where == scope::session) {
    ++session_count_;
    if (!equal(changed, json(session_count_)))
      note(found_.wrong_totals,
           fmt::format(
             "event '{}' is number {} to count in session {}, but "
             "counts {}",
             said.id,
             session_count_,
             index,
             changed.dump(-1, ' ', false, json::error_handler_t::replace)));
    return;
  }
  auto& told = wide(where, index);
  ++told.count;
  // Each sum must occur once; with a lost update one occurs twice.
  const auto sum
    = changed.is_number_integer() && changed.get<std::int64_t>() > 0
        ? changed.get<std::uint64_t>()
        : 0;
  if (sum == 0 || sum > sent_)
    return wrong();
  if (told.sums.size() <= sum)
    told.sums.resize(sum + 1);
  if (told.sums[sum])
    note(found_.wrong_totals,
         fmt::format("event '{}' counts {} under '{}', as another event does",
                     said.id,
                     sum,
                     key));
  told.sums[sum] = true;
}

inspection::wide_scope& inspection::wide(scope where, std::size_t session) {
  const auto user = plan_.user_of(session);
  return where == scope::user ? users_[user] : apps_[plan_.app_of(user)];
}

// Computes the expected values of callers' own keys: the newest stored append
// counts. Only for closed arrival, where a caller waits before its next append;
// open appends may overtake each other.
void inspection::replay_wide() {
  if (std::exchange(is_replayed_, true)
      || plan_.chosen().arrival == arrival::open)
    return;
  for (std::uint32_t caller = 0; caller < told_.size(); ++caller)
    for (std::uint64_t number = 0; number < told_[caller].size(); ++number) {
      if (!seen_[caller][number])
        continue;
      const auto planned = plan_.plan(caller, number);
      if (planned.what->kind == append_kind::add)
        continue;
      for (const auto where : scopes_of(*planned.what)) {
        if (where == scope::session)
          continue; // Its log has given its state.
        auto& expected = wide(where, planned.session).expected;
        auto& held = expected[std::string(
          split_key(workload::key_of(planned, where)).name)];
        if (planned.what->kind != append_kind::append)
          held = number;
        else if (number % workload::list_length == 0 || held.is_null())
          held = json::array({number});
        else
          held.push_back(number);
      }
    }
}

void inspection::look_at_wide(std::string what,
                              wide_scope& told,
                              const json& state) {
  replay_wide();
  const auto found = state.value(std::string(counter_key), json(0));
  if (!found.is_number() || found != json(told.count)
      || told.sums.size() > told.count + 1)
    note(found_.wrong_totals,
         fmt::format("{} counts {} appends, its sessions have {}",
                     what,
                     found.dump(),
                     told.count));
  for (const auto& [name, expected] : told.expected.items()) {
    const auto held = state.value(name, json());
    if (!equal(held, expected))
      note(
        found_.wrong_totals,
        fmt::format("{} has {} under '{}', the logs of its sessions give {}",
                    what,
                    held.dump(-1, ' ', false, json::error_handler_t::replace),
                    name,
                    expected.dump()));
  }
}

void inspection::miss_session(std::size_t index) {
  note(found_.wrong_totals, fmt::format("session {} is missing", index));
}

void inspection::look_at_user(std::size_t user, const json& state) {
  look_at_wide(fmt::format("user {}", user), users_[user], state);
}

void inspection::look_at_app(std::size_t app, const json& state) {
  look_at_wide(fmt::format("app {}", app), apps_[app], state);
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
               "event '{}' was acknowledged, but is not stored",
               workload::id_of(static_cast<std::uint32_t>(caller), number)));
    }
  return std::move(found_);
}

} // namespace troupe::load

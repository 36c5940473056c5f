#include "recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace troupe::testing {

recording::recording(std::vector<session_service*> services,
                     std::string name,
                     const workload& chosen)
  : sessions(std::move(services)),
    app(std::move(name)),
    wanted(chosen),
    session_count(chosen.users * chosen.sessions_per_user),
    owners(1 + chosen.users + session_count),
    last_seen(owners.size() * registers_each) {
  owners[0].where = scope::app;
  owners[0].label = app;
  for (std::size_t user = 0; user < wanted.users; ++user) {
    owners[1 + user].where = scope::user;
    owners[1 + user].label = fmt::format("{}/u{}", app, user);
  }
  for (std::size_t index = 0; index < session_count; ++index) {
    auto& own = owners[owner_of(index)];
    own.where = scope::session;
    own.label = to_string(key_of(index));
    json state{{"text", "t"}, {"user:text", "t"}, {"app:text", "t"}};
    for (const auto* key : account_keys)
      state[account(key, index)] = balance_start;
    const auto key = key_of(index);
    sessions.front()->create(key, state).value();
  }
}

// -- names ----

std::size_t recording::user_of(std::size_t session) const {
  return session / wanted.sessions_per_user;
}

session_key recording::key_of(std::size_t session) const {
  return {
    app, fmt::format("u{}", user_of(session)), fmt::format("s{}", session)};
}

std::size_t recording::owner_of(std::size_t session) const {
  return 1 + wanted.users + session;
}

std::array<std::size_t, 3> recording::owners_of(std::size_t session) const {
  return {0, 1 + user_of(session), owner_of(session)};
}

std::string recording::list_key(std::size_t at, std::uint32_t part) const {
  return join_key(owners[at].where, fmt::format("l{}", part));
}

std::string recording::register_key(std::size_t at, std::size_t number) const {
  return join_key(owners[at].where, fmt::format("r{}", number));
}

std::string recording::account(const char* key, std::size_t session) const {
  return fmt::format("{}{}", key, session);
}

std::uint32_t recording::segment(std::uint32_t sent) const {
  return sent / static_cast<std::uint32_t>(wanted.list_length);
}

std::uint32_t recording::list_id(std::size_t at, std::uint32_t part) {
  return static_cast<std::uint32_t>(at) * segments_max + part;
}

std::uint64_t recording::tick() {
  return ++clock;
}

// -- answers ----

void recording::read_list(recorded_call& on,
                          std::size_t at,
                          std::uint32_t part,
                          const key_finder& find) {
  auto list = tokens_of(find(list_key(at, part)));
  on.list_calls.push_back({list_id(at, part), {.seen = digest_of(list)}});
  on.lists.reads.push_back({list_id(at, part), std::move(list)});
}

void recording::read_registers(recorded_call& on,
                               std::size_t at,
                               const key_finder& find) {
  for (std::size_t number = 0; number < registers_each; ++number) {
    const auto id = at * registers_each + number;
    const auto seen = number_of(find(register_key(at, number)));
    last_seen[id] = seen.value_or(-1);
    on.registers.push_back(
      {id, {.what = register_spec::kind::read, .seen = seen}});
  }
}

void recording::read_accounts(recorded_call& on,
                              std::size_t session,
                              const key_finder& find) {
  on.group = session;
  on.balances.emplace();
  for (const auto* key : account_keys)
    on.balances->accounts[account(key, session)]
      = find(account(key, session))->get<std::int64_t>();
}

void recording::look_at_stored(recorded_call& on, const event& stored) {
  look_at_results(on, find_in(stored));
}

void recording::look_at_results(recorded_call& on, const key_finder& find) {
  auto& appends = on.lists.appends;
  for (auto& each : appends) {
    const auto list = tokens_of(
      find(list_key(each.key / segments_max, each.key % segments_max)));
    // The token is near the end of the list. The tokens before it were there
    // when it was appended.
    const auto found = std::ranges::find(list.rbegin(), list.rend(), each.what);
    each.place = static_cast<std::size_t>(list.rend() - found);
    on.list_calls.push_back(
      {each.key,
       {.appended = each.what,
        .seen = digest_of(std::span(list).first(each.place))}});
  }
  for (auto& [id, done] : on.registers) {
    done.seen
      = number_of(find(register_key(id / registers_each, id % registers_each)));
    last_seen[id] = done.seen.value_or(-1);
  }
}

void recording::look(recorded_call& on, const result<event_ptr>& answer) {
  on.code = recorded_code(answer);
  if (answer)
    return look_at_stored(on, **answer);
  const bool refused = answer.error().code() == errc::conflict
                       || answer.error().code() == errc::type_error;
  on.lists.came_to = refused ? fate::refused : fate::unknown;
  for (auto& [id, done] : on.registers)
    done.refused = refused;
  on.moved.reset();
}

void recording::look(recorded_call& on, const result<shared_write>& answer) {
  on.code = recorded_code(answer);
  if (!answer) {
    // Of all refusals, only that of a comparison is expected.
    on.lists.came_to = fate::refused;
    for (auto& [id, done] : on.registers)
      done.refused = true;
    return;
  }
  on.revision = answer->revision;
  if (answer->value)
    return look_at_results(on,
                           [&](const std::string&) { return *answer->value; });
  // The answer to a retry leaves out a long list.
  for (const auto& each : on.lists.appends)
    on.list_calls.push_back({each.key, {.appended = each.what}});
}

} // namespace troupe::testing

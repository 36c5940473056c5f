#include "ledger_work.hpp"

#include <random>

namespace troupe::testing {

namespace {

// Keeps lists below 200 elements: each list takes the tokens of so many events
// per thread.
constexpr std::uint32_t events_per_list = 64;

// A small generator, because a checker seeds one for every event.
std::minstd_rand dice_for(const work_plan& plan, const job_name& name) {
  std::seed_seq seeds{static_cast<std::uint32_t>(plan.seed),
                      static_cast<std::uint32_t>(plan.seed >> 32U),
                      name.run,
                      name.thread,
                      name.number};
  return std::minstd_rand(seeds);
}

} // namespace

job job_of(const work_plan& plan, const job_name& name) {
  auto dice = dice_for(plan, name);
  const auto below = [&dice](std::uint32_t bound) {
    return static_cast<std::uint32_t>(dice() % bound);
  };
  job made;
  made.name = name;
  made.session = below(plan.sessions);
  made.scopes[static_cast<std::size_t>(scope::session)].emplace();
  if (below(2) == 0)
    made.scopes[static_cast<std::size_t>(scope::user)].emplace();
  if (below(3) == 0)
    made.scopes[static_cast<std::size_t>(scope::app)].emplace();
  for (auto& each : made.scopes) {
    if (!each)
      continue;
    each->added = static_cast<int>(1 + below(9));
    if (below(6) == 0)
      each->list = "tokens." + std::to_string(name.run) + "."
                   + std::to_string(name.number / events_per_list);
  }
  if (below(8) == 0)
    made.sets["flip"] = below(2) == 0 ? json(nullptr) : json(name.number);
  if (below(24) == 0)
    made.sets["blob"]
      = std::string(100 + below(12'000), static_cast<char>('a' + below(26)));
  return made;
}

event event_of(const job& wanted) {
  const auto id = to_string(wanted.name);
  event said(text("{}", id));
  said.id = id;
  said.invocation_id = "work";
  said.author = "user";
  // Independent of the clock: a retried event must be identical.
  said.timestamp = timestamp(std::chrono::seconds(1'700'000'000)
                             + std::chrono::milliseconds(wanted.name.number));
  auto& target = said.actions.state_delta;
  for (const auto where : {scope::session, scope::user, scope::app}) {
    const auto& each = wanted.scopes[static_cast<std::size_t>(where)];
    if (!each)
      continue;
    const auto prefix = std::string(prefix_of(where));
    target.record(prefix + "seen", operation_kind::set, json(id)).value();
    target.record(prefix + "total", operation_kind::add, json(each->added))
      .value();
    if (!each->list.empty())
      target.record(prefix + each->list, operation_kind::append, json(id))
        .value();
  }
  for (const auto& [key, data] : wanted.sets.items())
    target.record(key, operation_kind::set, data).value();
  target.record("temp:canary", operation_kind::set, json("canary " + id))
    .value();
  return said;
}

session_key session_of(const work_plan& plan, std::uint32_t number) {
  return {work_app,
          "u" + std::to_string(number % plan.users),
          "s" + std::to_string(number)};
}

json birth_of(std::uint32_t number) {
  const auto own = "born." + std::to_string(number);
  return {{"born", number}, {"user:" + own, number}, {"app:" + own, number}};
}

} // namespace troupe::testing

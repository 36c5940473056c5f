#include "overwriter.hpp"

#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

using namespace std::chrono_literals;
using pipeline_setup_ptr = std::shared_ptr<pipeline_setup>;

// Other agents and clients set and compare these keys as well.
constexpr std::array keys = {"any", "user:any", "app:any", "total"};

std::vector<based_write> read_some(invocation_context& context, dice& chance) {
  std::vector<based_write> made;
  for (const auto* key : keys)
    if (made.empty() || chance.one_in(2))
      made.push_back({key, context.state().find(key).value_or(value()).data()});
  return made;
}

agent_run overwrite(invocation_context& context,
                    pipeline_setup_ptr with,
                    std::size_t events) {
  auto& chance = with->overwriting;
  auto& told = with->told;
  for (; events > 0; --events) {
    auto writes = read_some(context, chance);
    if (chance.one_in(2))
      co_await context.sleep(chance.time(30ms));
    const auto token = told.new_token();
    for (const auto& each : writes)
      if (chance.one_in(6))
        context.state().erase(each.key);
      else
        context.state().set(each.key, token);
    told.recorded[token] = context.state().recorded();
    auto& made = told.overwriting[token];
    made.invocation_id = context.invocation_id();
    made.writes = std::move(writes);
    made.before = told.written.size();
    bool is_refused = false;
    try {
      co_await context.emit(text("{}", token));
    } catch (const error& why) {
      if (why.code() != errc::conflict)
        throw;
      is_refused = true;
    }
    made.after = told.written.size();
    made.came_to
      = is_refused ? based_event::end::refused : based_event::end::kept;
  }
}

} // namespace

agent make_overwriter(const std::string& name, const pipeline_setup_ptr& with) {
  const auto events = 1 + with->overwriting.below(3);
  return custom(name, [with, events](invocation_context& context) -> agent_run {
    return overwrite(context, with, events);
  });
}

} // namespace troupe::testing

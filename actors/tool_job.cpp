#include "troupe/actors/tool_job.hpp"

#include "troupe/actors/user_failure.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

void tool_job::work() {
  auto expected = phase::waiting;
  if (!where_.compare_exchange_strong(expected, phase::running))
    return;
  perform();
  if (where_.exchange(phase::returned) == phase::abandoned)
    run->shared->tools.take_back();
}

tool_job::phase tool_job::abandon() {
  const auto was = where_.exchange(phase::abandoned);
  if (was == phase::running)
    run->shared->tools.give_up();
  return was;
}

void tool_job::perform() {
  if (context->stop().stop_requested())
    return;
  const run_scope here(run.get());
  try {
    outcome = which->function()(call.args.data(), *context);
    if (auto fits = check_json(*outcome, "the result"); !fits)
      throw fits.error();
    recorded = context->state().take();
    actions = std::move(context->actions());
    staged->add(recorded);
  } catch (...) {
    outcome = current_failure(errc::tool_failed,
                              fmt::format("tool '{}' failed", call.name));
  }
}

} // namespace troupe::actors

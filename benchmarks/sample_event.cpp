#include "sample_event.hpp"

#include <fmt/format.h>

namespace bench {

troupe::event build_event(std::size_t number) {
  troupe::event said(
    troupe::text("step {} of the pipeline has finished", number));
  said.author = "worker";
  said.id = fmt::format("event-{:016}", number);
  said.invocation_id = "e-benchmark";
  said.timestamp = troupe::timestamp(std::chrono::microseconds(
    1'700'000'000'000'000 + static_cast<std::int64_t>(number)));
  auto& changed = said.actions.state_delta;
  using troupe::operation_kind;
  changed.record("app:total", operation_kind::set, troupe::json(number))
    .value();
  changed.record("user:last", operation_kind::set, troupe::json(number))
    .value();
  changed.record("step", operation_kind::set, troupe::json(number)).value();
  changed
    .record("progress",
            operation_kind::set,
            troupe::json{{"done", number}, {"stage", "review"}})
    .value();
  return said;
}

std::vector<troupe::session_key> make_keys(std::size_t count) {
  std::vector<troupe::session_key> keys;
  for (std::size_t index = 0; index < count; ++index)
    keys.push_back({"app",
                    fmt::format("user-{}", index % 1000),
                    fmt::format("session-{}", index)});
  return keys;
}

} // namespace bench

// A runtime that keeps its warnings, and parallel agents with one body.

#pragma once

#include "agent_fixture.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

inline constexpr std::size_t lanes = 64;

using body = std::function<agent_run(invocation_context&)>;

inline agent side_by_side(const body& each, std::size_t count = lanes) {
  std::vector<agent> all;
  for (std::size_t number = 0; number < count; ++number)
    all.push_back(custom("lane" + std::to_string(number), each));
  return parallel("all", std::move(all));
}

/// A runtime that keeps its warnings.
struct warned_fixture : agent_fixture {
  explicit warned_fixture(std::shared_ptr<std::vector<std::string>> told
                          = std::make_shared<std::vector<std::string>>(),
                          runtime_options options = {})
    : agent_fixture(keeping(std::move(options), told)),
      warnings(std::move(told)) {}

  static runtime_options
  keeping(runtime_options options,
          const std::shared_ptr<std::vector<std::string>>& told) {
    options.on_warning
      = [told, mutex = std::make_shared<std::mutex>()](const auto& warning) {
          const std::lock_guard guard(*mutex);
          told->push_back(warning);
        };
    return options;
  }

  /// The number of lost updates of one run.
  std::size_t lost_in(const agent& root, run_options options = {}) {
    auto started = runtime.run(root, key, "go", options);
    BOOST_TEST(code_of(started.wait().get()) == "ok");
    return started.lost_updates_count();
  }

  std::shared_ptr<std::vector<std::string>> warnings;
};

inline json value_in(agent_fixture& on, const std::string& key) {
  return on.state_now().value(key, json());
}

} // namespace troupe::testing

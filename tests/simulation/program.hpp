// The runtimes of a simulation, which come and go over one place.

#pragma once

#include "troupe/runtime/actors.hpp"

#include "plan.hpp"
#include "shared_place.hpp"
#include "unsteady_store.hpp"
#include "world.hpp"
#include <caf/actor_system_config.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::testing {

/// One program: a runtime on a store on the place that all share.
class program {
public:
  program(world& in,
          history& told,
          const plan& chosen,
          shared_place& place,
          std::uint64_t seed);
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Null while it is closed.
  runtime* open_runtime() noexcept {
    return is_closing_ ? nullptr : &*runtime_;
  }

  bool is_closing() const noexcept { return is_closing_; }

  bool is_dead() const noexcept { return store_->is_dead(); }

  void recover() noexcept { store_->recover(); }

  /// Keeps a run for as long as the runtime.
  std::shared_ptr<run> keep(run started);

  /// Ends it in good order, or as if the process had died. Says what is left of
  /// it that should not be.
  std::vector<std::string> end(bool dies);

private:
  const shared_place& place_;
  std::shared_ptr<unsteady_store> store_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::optional<runtime> runtime_;
  std::vector<std::shared_ptr<run>> runs_;
  bool is_closing_ = false;
};

} // namespace troupe::testing

// A program of a simulation. Programs start and end on one shared place.

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

/// One program: a runtime with a store on the shared place.
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

  /// Null while it is shutting down.
  runtime* open_runtime() noexcept {
    return is_closing_ ? nullptr : &*runtime_;
  }

  bool is_closing() const noexcept { return is_closing_; }

  bool is_dead() const noexcept { return store_->is_dead(); }

  void recover() noexcept { store_->recover(); }

  /// Keeps the run alive as long as the runtime.
  std::shared_ptr<run> keep(run started);
  std::shared_ptr<follower> keep(follower started);

  /// Ends the program in good order, or as if the process had died. Returns a
  /// finding for everything that should be gone and is not.
  std::vector<std::string> end(bool dies);

private:
  const shared_place& place_;
  std::shared_ptr<unsteady_store> store_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::optional<runtime> runtime_;
  std::vector<std::shared_ptr<run>> runs_;
  std::vector<std::shared_ptr<follower>> followers_;
  bool is_closing_ = false;
};

} // namespace troupe::testing

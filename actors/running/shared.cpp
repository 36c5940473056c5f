#include "troupe/actors/running/shared.hpp"

namespace troupe::actors {

namespace {

thread_local const run_shared* run_here = nullptr;

} // namespace

const run_shared* current_run() noexcept {
  return run_here;
}

run_scope::run_scope(const run_shared* entered) noexcept
  : before_(std::exchange(run_here, entered)) {}

run_scope::~run_scope() {
  run_here = before_;
}

} // namespace troupe::actors

// A program's way to a place in memory that may go back to an earlier moment.
// It notices that as the stores on disk do.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <memory>

namespace troupe::testing {

class shared_place;

/// `on` outlives it. A place on disk has stores that notice by themselves.
std::unique_ptr<store> make_lossy_store(const shared_place& on);

} // namespace troupe::testing

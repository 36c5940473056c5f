// The store of one program on a memory place that may go back to an earlier
// moment. It notices the loss as the stores on disk do.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <memory>

namespace troupe::testing {

class shared_place;

/// `on` must outlive the store. A place on disk gets its own kind of store,
/// which notices losses by itself.
std::unique_ptr<store> make_lossy_store(const shared_place& on);

} // namespace troupe::testing

// A store in this process' memory: for tests, and as the shortest example of a
// store of one's own.

#pragma once

#include "troupe/stores/store.hpp"

#include <memory>

namespace troupe {

/// What memory stores keep. Several may share one place, as processes share a
/// file; it lasts as long as somebody holds it.
class memory_place;

std::shared_ptr<memory_place> make_memory_place();

/// A store on a place of its own.
std::unique_ptr<store> make_memory_store();

/// A store on `place`, beside all others there.
std::unique_ptr<store> make_memory_store(std::shared_ptr<memory_place> place);

} // namespace troupe

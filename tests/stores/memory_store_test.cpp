// The memory store keeps every promise of a store, alone and with other stores
// on one place.

#include "troupe/stores/shared/memory_store.hpp"

#include "conformance.hpp"

using namespace troupe;

namespace {

store_opener make_memory_place() {
  return [place = make_memory_data()] { return make_memory_store(place); };
}

const testing::conformance_suite in_memory("memory_store",
                                           {.make_place = make_memory_place});

} // namespace

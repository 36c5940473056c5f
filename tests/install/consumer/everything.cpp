// All public headers compile together, and the conformance suite links.

#include "troupe/stores/conformance/suite.hpp"
#include "troupe/troupe.hpp"

int main() {
  const troupe::store_factory factory{.make_place = [] {
    return [place = troupe::make_memory_data()] {
      return troupe::make_memory_store(place);
    };
  }};
  return troupe::conformance_lockstep(factory, 1).empty() ? 0 : 1;
}

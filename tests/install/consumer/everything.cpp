// All public headers compile together, and the conformance suite links.

#include "troupe/stores/conformance/suite.hpp"
#include "troupe/troupe.hpp"

#include <cstdio>
#include <string>

int main() {
  int number = 0;
  const troupe::store_factory factory{.make_place = [&number] {
    const auto file = "everything" + std::to_string(number++) + ".db";
    std::remove(file.c_str());
    return [file] {
      return troupe::open_store("sqlite:" + file,
                                {.durability = troupe::durability::none});
    };
  }};
  return troupe::conformance_lockstep(factory, 1).empty() ? 0 : 1;
}

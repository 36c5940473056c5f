// Steps of tests about rewinds, each over memory alone and over a store.

#pragma once

#include "troupe/runtime/rewind.hpp"

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace troupe::testing {

/// Whether the sessions are over a store.
inline const auto both = boost::unit_test::data::make({false, true});

inline runtime_options options_of(const staged_place& place,
                                  bool over_a_store) {
  auto options = over_a_store ? place.options() : runtime_options();
  options.events_kept = 4; // The store has to be asked for most events.
  return options;
}

inline event says_so(const std::string& words, json changes = json::object()) {
  auto said = change(std::move(changes));
  said.content = user_text(words);
  return said;
}

inline rewound_session back_to(runtime_fixture& on, std::uint64_t revision) {
  return on.sessions().rewind(here, rewind_target::to(revision)).value();
}

} // namespace troupe::testing

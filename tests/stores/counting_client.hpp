// A client of a store that increments a counter in all three scopes, as a
// runtime would.

#pragma once

#include "troupe/stores/store.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace troupe::testing {

/// Owners whose keys a counting client changes.
namespace counted {

inline const owner_name app{"press"};
inline const owner_name user{"press", "ann"};
inline const owner_name session{"press", "ann", "s1"};
inline const session_key key{"press", "ann", "s1"};

} // namespace counted

inline event_ptr event_with(std::string id, const json& state) {
  auto said = std::make_shared<event>();
  said->id = std::move(id);
  said->author = "ann";
  said->timestamp = timestamp(std::chrono::seconds(1'700'000'000));
  said->actions.state_delta = delta::from_json(state).value();
  return said;
}

inline store_change create_session(const owner_name& owner) {
  return {.kind = change_kind::create,
          .owner = owner,
          .event = event_with("", json::object()),
          .session_revision = 0,
          .user_revision = {},
          .app_revision = {}};
}

inline std::int64_t count_in(const state_map& keys) {
  const auto* const found = keys.find("count");
  return found ? (*found)->get<std::int64_t>() : 0;
}

// Commits one counting event at a time until it is written. Like a runtime, it
// loads owners again when they have moved.
class counting_client {
public:
  explicit counting_client(store& target) : target_(target) { (void)load(); }

  /// Returns the outcome; retries `moved` itself.
  result<void> count(const std::string& id) {
    for (;;) {
      const auto change = next(id);
      auto outcome = target_.commit({&change, 1});
      if (!outcome)
        return outcome.error();
      if (outcome->moved.empty()) {
        for (std::size_t i = 0; i < 3; ++i) {
          ++counts_[i];
          ++revisions_[i];
        }
        return {};
      }
      if (auto loaded = load(); !loaded)
        return loaded;
    }
  }

  result<void> load() {
    auto kept = target_.load_session(counted::key, {});
    if (!kept)
      return kept.error();
    keep(0, (*kept)->scope);
    for (const auto& [place, owner] :
         {std::pair(1U, counted::user), std::pair(2U, counted::app)}) {
      auto wider = target_.load_scope(owner);
      if (!wider)
        return wider.error();
      keep(place, **wider);
    }
    return {};
  }

  std::array<std::int64_t, 3> counts() const { return counts_; }

  /// The session's revision that this client knows.
  std::uint64_t revision() const { return revisions_[0]; }

  /// Makes the next event, on the revisions that this client knows.
  store_change next(const std::string& id) const {
    return {.kind = change_kind::append,
            .owner = counted::session,
            .event = event_with(id,
                                {{"count", counts_[0] + 1},
                                 {"user:count", counts_[1] + 1},
                                 {"app:count", counts_[2] + 1}}),
            .session_revision = revisions_[0] + 1,
            .user_revision = revisions_[1] + 1,
            .app_revision = revisions_[2] + 1};
  }

private:
  void keep(std::size_t place, const stored_scope& scope) {
    counts_[place] = count_in(scope.keys);
    revisions_[place] = scope.revision;
  }

  store& target_;
  std::array<std::int64_t, 3> counts_{};
  std::array<std::uint64_t, 3> revisions_{};
};

} // namespace troupe::testing

// What a store should answer: the same promises, kept in the plainest way.

#pragma once

#include "troupe/stores/conformance_run.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe::conformance {

/// Answers are JSON as `shown` makes it.
class store_model {
public:
  struct kept_owner {
    json keys = json::object();
    std::uint64_t revision = 0;
    std::int64_t time = 0;
    /// By number.
    std::map<std::uint64_t, event_ptr> events;
  };

  using kept_owners = std::map<owner_name, kept_owner>;

  /// Applies all of it or nothing; returns who has moved. `by` is the store
  /// that commits, from 0 to `store_count - 1`.
  std::vector<owner_name> commit(const std::vector<store_change>& changes,
                                 std::size_t by);

  /// What store `by` is to be told, `{owner: revision or null}`.
  json changed_elsewhere(std::size_t by);

  json load_scope(const owner_name& owner) const;
  json load_session(const session_key& key, const load_options& options) const;
  json load_events(const session_key& key,
                   std::uint64_t first,
                   std::uint64_t last) const;
  json list(const row_query& query) const;

  const kept_owners& owners() const { return owners_; }

  static constexpr std::size_t store_count = 2;

private:
  kept_owners owners_;
  std::set<owner_name> untold_[store_count];
  std::set<owner_name> removed_[store_count]; // Of those.
};

/// The state that changes are tried out on, one after the other.
class trial {
public:
  explicit trial(store_model::kept_owners owners)
    : owners_(std::move(owners)) {}

  void apply(const store_change& change);

  store_model::kept_owners& owners() { return owners_; }

  const std::set<owner_name>& changed() const { return changed_; }

  const std::set<owner_name>& removed() const { return removed_; }

  const std::set<owner_name>& moved() const { return moved_; }

private:
  void advance(const owner_name& owner,
               const store_change& change,
               const std::optional<std::uint64_t>& revision);

  store_model::kept_owners owners_;
  std::set<owner_name> changed_;
  std::set<owner_name> removed_;
  std::set<owner_name> moved_;
};

} // namespace troupe::conformance

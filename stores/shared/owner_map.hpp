// The map of one owner, as a composed store keeps it.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The map of one owner. Throws `json::exception` if it does not have the form
/// that `compose_store` describes.
class owner_map {
public:
  /// Makes an empty map.
  owner_map();

  explicit owner_map(json map);

  json map() const;

  stored_scope scope() const;

  std::uint64_t revision() const {
    return header_.value("revision", std::uint64_t{0});
  }

  timestamp updated() const;

  /// `field` is `users` or `sessions`.
  std::set<std::string> names(const char* field) const;
  void add_name(const char* field, const std::string& name);
  void drop_name(const char* field, const std::string& name);

  void apply(const event& said, troupe::scope where, std::uint64_t revision);
  void update(timestamp time, bool is_new);
  void append(const event& said, std::uint64_t number);
  /// Adds the events of another map up to number `last`.
  void copy_events(const owner_map& from, std::uint64_t last);

  /// Lists the entries of the events, oldest first.
  std::vector<const json*> events() const;

private:
  json header_;
  json keys_;
};

/// Reads the event of an entry. Also throws `troupe::error`.
event_ptr event_from(const json& entry);

} // namespace troupe

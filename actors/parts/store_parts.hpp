// The databases of a store, each of which is written, looked at and lost by
// itself.
//
// A `routed_store` has several, and all other stores are one. An app is in one
// of them, and so are all owners of one commit.

#pragma once

#include "troupe/stores/routed/store.hpp"

#include <cstddef>
#include <string_view>

namespace troupe::actors {

class store_parts {
public:
  /// `kept` outlives this object.
  explicit store_parts(store& kept)
    : kept_(kept),
      routed_(dynamic_cast<routed_store*>(&kept)) {}

  std::size_t count() const noexcept {
    return routed_ == nullptr ? 1 : routed_->part_count();
  }

  /// The index of the database of an app.
  std::size_t of(std::string_view app) const {
    return routed_ == nullptr ? 0 : routed_->part_of(app);
  }

  /// The store in one database. The threading rules are those of `store`.
  store& at(std::size_t index) noexcept {
    return routed_ == nullptr ? kept_ : routed_->part(index);
  }

  /// Returns the failure with the name of its database, if there are several.
  error named(const error& failure, std::size_t index) const {
    return routed_ == nullptr ? failure : routed_->named(failure, index);
  }

private:
  store& kept_;
  routed_store* const routed_; // Null if the store is one database.
};

} // namespace troupe::actors

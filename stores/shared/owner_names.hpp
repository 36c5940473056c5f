// Names of the owners of a session or a user.

#pragma once

#include "troupe/stores/store.hpp"

namespace troupe {

/// Returns the session as an owner.
inline owner_name owner_of(const session_key& key) {
  return {key.app, key.user, key.id};
}

/// Returns the user of a session or a user; an app gives the app.
inline owner_name user_of(const owner_name& owner) {
  return {owner.app, owner.user};
}

/// Returns the app of any owner.
inline owner_name app_of(const owner_name& owner) {
  return {owner.app};
}

} // namespace troupe

// The common part of the letters that go down from an app to a session.

#pragma once

#include "troupe/actors/letters/view.hpp"
#include "troupe/core/key.hpp"

namespace troupe::actors {

struct letter;

/// A letter that enters at the app. Each owner on its way down adds its keys.
struct look_up {
  session_key key;
  scope_version app;
  scope_version user;
};

/// The letter as a look-up; null if it is none.
look_up* look_up_of(letter& sent) noexcept;

} // namespace troupe::actors

// The protocol of the actors: all letters that they send to each other.
//
// An owner waits only for owners above it: invocation → session → user → app →
// store. An append goes up to the widest owner that its delta touches (a
// "climb") and comes back as the same letter. A look-up goes down from the app:
// each owner adds its keys (a "scope version"), and the last owner answers.
// Over a store, decided changes enter the store's queue in the owner's order,
// and are answered when they are durable.

#pragma once

#include "troupe/actors/letters/call.hpp"
#include "troupe/actors/letters/dispatch.hpp"
#include "troupe/actors/letters/follow.hpp"
#include "troupe/actors/letters/follow_state.hpp"
#include "troupe/actors/letters/kind.hpp"
#include "troupe/actors/letters/look_up.hpp"
#include "troupe/actors/letters/run.hpp"
#include "troupe/actors/letters/state.hpp"
#include "troupe/actors/letters/store.hpp"
#include "troupe/actors/letters/view.hpp"

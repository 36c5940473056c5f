#include "linearizability.hpp"

#include <functional>

namespace troupe::testing {

// -- a register ----

bool register_spec::step(state& held, const operation& done, bool answered) {
  switch (done.what) {
  case kind::read:
    break;
  case kind::set:
    held = done.operand;
    break;
  case kind::erase:
    held.reset();
    break;
  case kind::add:
    held = held.value_or(0) + done.operand.value_or(0);
    break;
  case kind::compare_and_set:
    if (answered && done.refused)
      return held != done.expected;
    if (held != done.expected)
      return false; // The call has no answer and may have had no effect.
    held = done.operand;
    break;
  }
  return !answered || held == done.seen;
}

bool register_spec::only_looks(const operation& done) noexcept {
  return done.what == kind::read || done.refused;
}

std::size_t register_spec::hash(const state& held) noexcept {
  return std::hash<state>()(held) * 0x9e3779b97f4a7c15U;
}

std::string register_spec::text(const state& held) {
  return held ? std::to_string(*held) : "absent";
}

std::string register_spec::text(const operation& done) {
  switch (done.what) {
  case kind::read:
    return fmt::format("read gave {}", text(done.seen));
  case kind::set:
    return fmt::format("set {}", text(done.operand));
  case kind::erase:
    return "erase";
  case kind::add:
    return fmt::format("add {} gave {}", text(done.operand), text(done.seen));
  case kind::compare_and_set:
    break;
  }
  return fmt::format("cas from {} to {} {}",
                     text(done.expected),
                     text(done.operand),
                     done.refused ? "was refused" : "was done");
}

// -- a session that comes and goes ----

bool lifetime_spec::step(state& held, const operation& done, bool answered) {
  // The call needs a session to exist; `create` needs that none exists.
  const bool fits = held.exists == (done.what != kind::create);
  if (answered && fits != done.done)
    return false;
  if (!fits)
    return true;
  switch (done.what) {
  case kind::create:
    held = {true, 0};
    break;
  case kind::remove:
    held = {};
    break;
  case kind::append:
    ++held.revision;
    break;
  case kind::get:
    return !answered || held.revision == done.seen;
  }
  return true;
}

bool lifetime_spec::only_looks(const operation& done) noexcept {
  return done.what == kind::get;
}

std::size_t lifetime_spec::hash(const state& held) noexcept {
  return held.revision * 2 + (held.exists ? 1 : 0);
}

std::string lifetime_spec::text(const state& held) {
  return held.exists ? fmt::format("at revision {}", held.revision) : "absent";
}

std::string lifetime_spec::text(const operation& done) {
  switch (done.what) {
  case kind::create:
    return done.done ? "created" : "create found one";
  case kind::remove:
    return done.done ? "removed" : "remove found none";
  case kind::append:
    return done.done ? "appended" : "append found none";
  case kind::get:
    break;
  }
  return done.done ? fmt::format("get found revision {}", done.seen)
                   : "get found none";
}

// -- a list ----

void list_spec::append(state& held, std::uint64_t element) noexcept {
  ++held.length;
  held.digest = (held.digest + element + 1) * 0x9e3779b97f4a7c15U;
  held.digest ^= held.digest >> 29U;
}

bool list_spec::step(state& held, const operation& done, bool answered) {
  if (done.appended)
    append(held, *done.appended);
  return !answered || !done.seen || held == *done.seen;
}

bool list_spec::only_looks(const operation& done) noexcept {
  return !done.appended;
}

std::size_t list_spec::hash(const state& held) noexcept {
  return held.digest;
}

std::string list_spec::text(const state& held) {
  return fmt::format(
    "a list of {} ({:08x})", held.length, held.digest & 0xffffffffU);
}

std::string list_spec::text(const operation& done) {
  const auto seen = done.seen ? " gave " + text(*done.seen) : std::string();
  return done.appended ? fmt::format("append {}{}", *done.appended, seen)
                       : "read" + seen;
}

} // namespace troupe::testing

#include "troupe/actors/owners/append_letter.hpp"

#include "troupe/actors/failure.hpp"
#include "troupe/core/rewind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace troupe::actors {

namespace {

// A rewind may restore as many keys as many events have changed.
constexpr std::size_t rewind_events = 64;

result<std::size_t> check(const event& said, const setup& shared) {
  if (!said.id.empty())
    if (auto id = trim_id(said.id, "event id"); !id)
      return id.error();
  auto limits = shared.options.limits;
  if (is_rewind(said))
    limits.event_bytes_max *= rewind_events;
  return check_event(said, limits);
}

bool has_temp(const event& said) {
  return !said.actions.state_delta.share(scope::temp).empty();
}

// Wire names of the records of operations, which only owners may write. A
// sender could put such a field into `extra`. When the stored event was read
// again, the field would count as a record.
constexpr std::array record_fields = {"appliedOps", "applied_ops"};

// Returns true if the sender has set records.
bool has_records(const event& said) {
  const auto& extra = said.actions.extra.data();
  return !said.actions.applied.empty()
         || (extra.is_object()
             && std::ranges::any_of(record_fields, [&](const char* name) {
                  return extra.contains(name);
                }));
}

void drop_records(event& said) {
  if (!has_records(said))
    return;
  said.actions.applied.clear();
  auto extra = said.actions.extra.data();
  if (extra.is_object())
    for (const auto* name : record_fields)
      extra.erase(name);
  said.actions.extra = extra.empty() ? value() : value(std::move(extra));
}

bool is_complete(const event& said) {
  return !said.id.empty() && !said.invocation_id.empty()
         && said.timestamp != timestamp() && !has_temp(said)
         && !has_records(said);
}

void complete(event& said, environment& environment) {
  if (said.id.empty())
    said.id = environment.new_id();
  if (said.invocation_id.empty())
    said.invocation_id = "e-" + environment.new_id();
  if (said.timestamp == timestamp())
    said.timestamp = environment.now();
  if (has_temp(said))
    said.actions.state_delta.drop(scope::temp);
}

result<void> check_wait(const setup& shared) {
  if (!shared.store || shared.waits.admits(shared.appends.held()))
    return {};
  return error(
    errc::busy,
    fmt::format("the append would probably wait for the store for more than {} "
                "ms; try again later, or send less at a time",
                std::chrono::duration_cast<std::chrono::milliseconds>(
                  shared.options.append_wait_max)
                  .count()));
}

result<void> check_no_rewind(const event& said) {
  if (!is_rewind(said))
    return {};
  return error(errc::invalid_argument,
               "a rewind cannot be appended like another event: use "
               "sessions().rewind or `troupe sessions rewind`");
}

result<std::unique_ptr<append>>
make_letter(event&& said, const append_options& options, setup& shared) {
  drop_records(said);
  auto bytes = check(said, shared);
  if (!bytes)
    return bytes.error();
  auto letter = std::make_unique<append>();
  letter->bytes = *bytes;
  letter->expected_revision = options.expected_revision;
  letter->makes_id = said.id.empty();
  complete(said, *shared.environment);
  letter->own = std::make_shared<event>(std::move(said));
  letter->event = letter->own;
  return letter;
}

} // namespace

result<std::unique_ptr<append>>
make_append(event&& said, const append_options& options, setup& shared) {
  if (auto plain = check_no_rewind(said); !plain)
    return plain.error();
  return make_letter(std::move(said), options, shared);
}

result<std::unique_ptr<append>> make_past_append(event&& said, setup& shared) {
  return make_letter(std::move(said), {}, shared);
}

result<std::unique_ptr<append>>
make_rewind(event&& said, rewind_basis from, setup& shared) {
  if (auto checked = check(said, shared); !checked)
    return checked.error();
  auto applied = std::move(said.actions.applied);
  auto letter = make_letter(
    std::move(said), {.expected_revision = from.revision}, shared);
  if (!letter)
    return letter;
  (*letter)->own->actions.applied = std::move(applied);
  (*letter)->rewound_from
    = std::make_unique<const std::string>(std::move(from.newest_id));
  return letter;
}

result<std::unique_ptr<append>>
make_append(event_ptr&& said, const append_options& options, setup& shared) {
  if (!said)
    return error(errc::invalid_argument, "there is no event to append");
  if (!is_complete(*said))
    return make_append(event(*said), options, shared);
  if (auto plain = check_no_rewind(*said); !plain)
    return plain.error();
  auto bytes = check(*said, shared);
  if (!bytes)
    return bytes.error();
  auto letter = std::make_unique<append>();
  letter->bytes = *bytes;
  letter->expected_revision = options.expected_revision;
  letter->event = std::move(said);
  return letter;
}

result<void>
admit(append& letter, session_actor& session, const setup& shared) {
  if (auto soon = check_wait(shared); !soon)
    return soon;
  if (!session.enter(letter.bytes))
    return error(errc::busy,
                 fmt::format("too much is under way on session {} or in the "
                             "runtime; try again when some of it is done",
                             to_string(session.key())));
  letter.admitted_by = ref(session);
  // Read after the letter was counted: shutting down sets `closing` first, and
  // then waits for all that is counted.
  if (shared.closing) {
    letter.release();
    return closed();
  }
  return {};
}

template <class Letter>
result<void> admit(Letter& letter, setup& shared) {
  if (auto soon = check_wait(shared); !soon)
    return soon;
  if (!shared.appends.enter(letter.bytes))
    return error(errc::busy,
                 "too much is under way in the runtime; try again when some "
                 "of it is done");
  letter.admitted_to = &shared.appends;
  if (shared.closing) {
    letter.release();
    return closed();
  }
  return {};
}

template result<void> admit(append&, setup&);
template result<void> admit(write_state&, setup&);

} // namespace troupe::actors

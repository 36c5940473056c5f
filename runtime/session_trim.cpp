// Trims sessions: deletes their oldest events.
//
// Over a store the session's owner takes no part. The trim is refused if the
// session was removed and created again meanwhile.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/sessions/list_gather.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace troupe {

namespace {

using actors::make_pending;
using backend_ptr = std::shared_ptr<detail::session_backend>;

// Number of events that are read at a time.
constexpr std::uint64_t trim_page_size = 1'024;

// Attempts while the session is removed and made again, or its store loses
// events.
constexpr int trim_attempts_max = 3;

// The events to delete: up to a revision, or those before a time.
struct trim_wish {
  std::optional<std::uint64_t> to;
  timestamp before{};
};

// A trim that has been read from the store, and not written yet.
struct trim_plan {
  trimmed_session outcome;
  // Unset if there is nothing to delete.
  std::unique_ptr<actors::trim> letter;
};

result<bool> check_support(store& kept) {
  if (!kept.can_trim())
    return error(errc::invalid_argument,
                 "this store cannot trim sessions: it does not override "
                 "store::can_trim");
  return true;
}

// Number of the last old event at the beginning of the session: it and all
// events before it are older than `before`. Events are in the order of their
// appends, and not of their times: the first one that is not old ends the
// search.
result<std::uint64_t> find_last_before(store& kept,
                                       const session_key& key,
                                       const stored_session& now,
                                       timestamp before) {
  const auto newest = now.scope.revision;
  if (now.last_update_time < before)
    return newest;
  auto last = now.first_revision;
  while (last < newest) {
    const auto page = kept.load_events(
      key, last + 1, std::min(newest, last + trim_page_size));
    if (!page)
      return page.error();
    const auto young
      = std::ranges::find_if(*page, [before](const event_ptr& said) {
          return said->timestamp >= before;
        });
    last += static_cast<std::uint64_t>(young - page->begin());
    if (young != page->end() || page->empty())
      return last;
  }
  return last;
}

store_change
make_change(const session_key& key, std::uint64_t to, stored_session past) {
  event carrier;
  carrier.timestamp = past.last_update_time;
  std::vector<resolution> keys;
  past.scope.keys.for_each([&keys](std::string_view name, const value& data) {
    keys.push_back({scope::session, std::string(name), data});
  });
  carrier.actions.state_delta.resolve(keys);
  store_change change;
  change.kind = change_kind::trim;
  change.owner = {key.app, key.user, key.id};
  change.event = std::make_shared<const event>(std::move(carrier));
  change.kept = kept_past{to, past.incarnation};
  return change;
}

result<bool> plan_trim(store& kept,
                       const session_key& key,
                       const trim_wish& wish,
                       trim_plan& plan) {
  if (auto able = check_support(kept); !able)
    return able;
  auto now = kept.load_session(key, {.events_max = 0, .ids_max = 0});
  if (!now)
    return now.error();
  if (!*now)
    return actors::unknown_session(key);
  auto& found = **now;
  const auto newest = found.scope.revision;
  const auto to = wish.to ? result<std::uint64_t>(*wish.to)
                          : find_last_before(kept, key, found, wish.before);
  if (!to)
    return to.error();
  if (*to > newest)
    return detail::no_revision(key, *to, newest);
  plan.outcome.first_revision = std::max(*to, found.first_revision);
  plan.outcome.removed = plan.outcome.first_revision - found.first_revision;
  if (plan.outcome.removed == 0)
    return true;
  const auto incarnation = found.incarnation;
  if (*to < newest) {
    auto past = kept.load_session_at(key, *to, 0);
    if (!past)
      return past.error();
    if (!*past)
      return actors::unknown_session(key);
    found = std::move(**past);
  }
  found.incarnation = incarnation;
  plan.letter = std::make_unique<actors::trim>();
  plan.letter->change = make_change(key, *to, std::move(found));
  return true;
}

pending<bool> read_plan(const backend_ptr& backend,
                        const session_key& key,
                        const trim_wish& wish,
                        const std::shared_ptr<trim_plan>& plan) {
  return make_pending<bool>(
    backend->shared(), [backend, key, wish, plan](completion<bool> done) {
      auto wanted = std::make_unique<actors::answered<bool>>();
      wanted->done = std::move(done);
      auto& shared = backend->shared();
      if (admit_call(*wanted, shared))
        actors::read_then_complete<bool>(
          shared, std::move(wanted), [backend, key, wish, plan](store& kept) {
            const auto losses = backend->shared().store->losses();
            auto planned = plan_trim(kept, key, wish, *plan);
            if (plan->letter)
              plan->letter->losses = losses;
            return planned;
          });
    });
}

pending<bool> write_plan(const backend_ptr& backend,
                         const std::shared_ptr<trim_plan>& plan) {
  return make_pending<bool>(backend->shared(),
                            [backend, plan](completion<bool> done) {
                              auto& shared = backend->shared();
                              plan->letter->done = std::move(done);
                              if (admit_call(*plan->letter, shared))
                                shared.store->push(std::move(plan->letter));
                            });
}

error changed_while_trimmed(const session_key& key) {
  return {
    errc::conflict,
    fmt::format("session {} changed while it was trimmed: it was removed, "
                "or its store lost events; try again",
                to_string(key))};
}

task<result<trimmed_session>>
trim_in_store(backend_ptr backend, session_key key, trim_wish wish) {
  for (int attempt = 0; attempt < trim_attempts_max; ++attempt) {
    const auto plan = std::make_shared<trim_plan>();
    const auto planned = co_await read_plan(backend, key, wish, plan);
    // Another trim came first.
    if (!planned && planned.error().code() == errc::gone)
      continue;
    if (!planned)
      co_return planned.error();
    const auto outcome = plan->outcome;
    if (!plan->letter)
      co_return outcome;
    const auto written = co_await write_plan(backend, plan);
    if (!written)
      co_return written.error();
    if (*written)
      co_return outcome;
  }
  co_return changed_while_trimmed(key);
}

// -- without a store ----

std::uint64_t last_before(const session& now, timestamp before) {
  const auto& events = now.events();
  const auto young
    = std::ranges::find_if(events, [before](const event_ptr& said) {
        return said->timestamp >= before;
      });
  return now.first_revision()
         + static_cast<std::uint64_t>(
           std::ranges::distance(events.begin(), young));
}

pending<session> trim_owner(const backend_ptr& backend,
                            const session_key& key,
                            const actors::wanted_trim& wish) {
  return make_pending<session>(
    backend->shared(), [backend, key, wish](completion<session> done) {
      auto wanted = actors::make_get(key, {.num_recent_events = 0});
      if (!wanted)
        return done(wanted.error());
      (*wanted)->trim = wish;
      (*wanted)->done = std::move(done);
      actors::send_get(backend->shared(), std::move(*wanted));
    });
}

// Sends the id of the event at the revision: the owner ignores the trim if the
// session was removed and created again.
task<result<trimmed_session>>
trim_in_memory(backend_ptr backend, session_key key, trim_wish wish) {
  session_service sessions(backend);
  for (int attempt = 0; attempt < trim_attempts_max; ++attempt) {
    const auto before = co_await sessions.get(key);
    if (!before)
      co_return before.error();
    const auto to = wish.to.value_or(last_before(*before, wish.before));
    if (to > before->revision())
      co_return detail::no_revision(key, to, before->revision());
    trimmed_session outcome;
    outcome.first_revision = std::max(to, before->first_revision());
    outcome.removed = outcome.first_revision - before->first_revision();
    if (outcome.removed == 0)
      co_return outcome;
    const auto events = before->events();
    const actors::wanted_trim wanted{
      to, events[to - before->first_revision() - 1]->id};
    const auto now = co_await trim_owner(backend, key, wanted);
    if (!now)
      co_return now.error();
    if (now->first_revision() >= to)
      co_return outcome;
  }
  co_return changed_while_trimmed(key);
}

task<result<trimmed_session>>
trim_session(backend_ptr backend, session_key key, trim_wish wish) {
  const auto checked = check_key(key);
  if (!checked)
    co_return checked.error();
  if (backend->shared().store)
    co_return co_await trim_in_store(backend, *checked, wish);
  co_return co_await trim_in_memory(backend, *checked, wish);
}

// A session that others remove or trim meanwhile is left for the next call.
task<result<std::uint64_t>> trim_all(backend_ptr backend,
                                     expiry_request wanted) {
  if (wanted.before <= timestamp())
    co_return error(errc::invalid_argument,
                    "an expiry needs a time; events before it are deleted");
  session_service sessions(backend);
  list_request request(std::move(wanted.app), std::move(wanted.user), 1'000);
  std::uint64_t removed = 0;
  do {
    const auto page = co_await sessions.list(request);
    if (!page)
      co_return page.error();
    for (const auto& listed : page->sessions) {
      const auto trimmed = co_await trim_session(
        backend, listed.key(), trim_wish{std::nullopt, wanted.before});
      if (!trimmed && trimmed.error().code() != errc::not_found
          && trimmed.error().code() != errc::conflict)
        co_return trimmed.error();
      removed += trimmed ? trimmed->removed : 0;
    }
    request.cursor = page->next_cursor;
  } while (!request.cursor.empty());
  co_return removed;
}

} // namespace

pending<trimmed_session> session_service::trim(session_key key,
                                               std::uint64_t revision) {
  return actors::make_stepwise(
    trim_session(backend_, std::move(key), trim_wish{revision, {}}));
}

pending<std::uint64_t> session_service::expire_events(expiry_request request) {
  return actors::make_stepwise(trim_all(backend_, std::move(request)));
}

} // namespace troupe

// A stress run of many threads has the same result as one caller that appends
// the events one by one.

#include "replay.hpp"

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../../forwarding_store.hpp"
#include "../../outcome.hpp"
#include "random_changes.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <mutex>
#include <semaphore>
#include <set>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(replays, *boost::unit_test::timeout(300))

namespace {

constexpr std::size_t users = 2;
constexpr std::size_t sessions_each = 3;
constexpr std::size_t threads = 4;
constexpr size_limits limits{300, 2'000};

session_key key_of(std::size_t session) {
  return {"press",
          fmt::format("u{}", session / sessions_each),
          fmt::format("s{}", session)};
}

// Forwards every call, and records the revisions that each event made.
class listening_store : public forwarding_store {
public:
  struct revisions {
    std::uint64_t user = 0;
    std::uint64_t app = 0;
  };

  listening_store() : forwarding_store(make_memory_store()) {}

  revisions of(const std::string& id) const {
    const std::lock_guard guard(mutex_);
    const auto found = heard_.find(id);
    return found == heard_.end() ? revisions() : found->second;
  }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    auto outcome = forwarding_store::commit(changes);
    const std::lock_guard guard(mutex_);
    if (outcome && outcome->moved.empty() && outcome->kept_out.empty())
      for (const auto& each : changes)
        if (each.kind == change_kind::append)
          heard_[each.event->id]
            = {each.user_revision.value_or(0), each.app_revision.value_or(0)};
    return outcome;
  }

private:
  mutable std::mutex mutex_;
  std::map<std::string, revisions> heard_;
};

// Random appends of many threads, and their results.
class stress {
public:
  // With `counts`, each event increments a counter in every wide scope that it
  // touches. The counter tells its place in the order of that scope.
  stress(std::uint64_t seed,
         std::size_t appends,
         runtime_options options,
         bool counts)
    : counts_(counts),
      runtime_(runtime::open(limited(std::move(options))).value()),
      model_({.limits = limits}) {
    for (std::size_t session = 0; session < users * sessions_each; ++session) {
      const auto key = key_of(session);
      runtime_.sessions().create(key).value();
      model_.create(key).value();
    }
    plan(seed, appends);
    std::vector<std::thread> all;
    for (std::size_t index = 0; index < threads; ++index)
      all.emplace_back([this, index] { send(index); });
    for (auto& each : all)
      each.join();
  }

  /// Returns the first difference as text, or nothing. `heard` supplies the
  /// revisions if events do not count.
  std::string difference(const listening_store* heard = nullptr) {
    auto placed = collect();
    if (!wrong_.empty())
      return wrong_;
    for (auto& each : placed) {
      const auto told
        = heard != nullptr ? heard->of(each.stored->id) : counted(*each.stored);
      each.user_revision = told.user;
      each.app_revision = told.app;
    }
    if (auto found = replay(model_, placed); !found.empty())
      return found;
    return compare_state();
  }

  /// Returns the collected events, for tests that change them.
  std::vector<placed_event> placed() {
    auto all = collect();
    for (auto& each : all) {
      const auto told = counted(*each.stored);
      each.user_revision = told.user;
      each.app_revision = told.app;
    }
    return all;
  }

  const session_model& model() const { return model_; }

  const std::map<std::string, std::size_t>& codes() const { return codes_; }

private:
  struct planned {
    std::size_t session = 0;
    troupe::event event;
    append_options how;
    bool blocks = false;
    std::string code;
  };

  static runtime_options limited(runtime_options options) {
    options.limits = limits;
    return options;
  }

  void plan(std::uint64_t seed, std::size_t appends) {
    for (std::size_t index = 0; index < threads; ++index) {
      random_source random(seed * threads + index);
      auto& own = plans_.emplace_back();
      while (own.size() < appends / threads) {
        planned next;
        next.session
          = random.one_in(2) ? 0 : random.below(users * sessions_each);
        next.blocks = random.one_in(10);
        next.event.id = fmt::format("t{}-{}", index, own.size());
        next.event.author = "writer";
        if (random.one_in(20))
          next.how.expected_revision = random.below(own.size() + 2);
        for (auto left = random.below(4); left > 0; --left)
          record_any(random, next.event);
        if (counts_)
          count_itself(next.event);
        own.push_back(next);
        // Sends the same event again, sometimes with another author.
        if (random.one_in(20)) {
          if (random.one_in(3))
            next.event.author = "somebody else";
          next.how = {};
          own.push_back(std::move(next));
        }
      }
    }
  }

  static void record_any(random_source& random, event& said) {
    const auto key = std::string(random.pick(std::array{"", "user:", "app:"}))
                     + random.pick(change_names);
    const auto kind = any_kind(random, key);
    auto expected = random.one_in(2) ? json() : random.data(1);
    said.actions.state_delta
      .record(key, kind, any_operand(random, kind), std::move(expected))
      .value();
  }

  static void count_itself(event& said) {
    auto& changes = said.actions.state_delta;
    for (const auto where : {scope::user, scope::app})
      if (!changes.share(where).empty())
        changes.record(join_key(where, "count"), operation_kind::add, json(1))
          .value();
  }

  void send(std::size_t index) {
    constexpr std::ptrdiff_t in_flight = 32;
    std::counting_semaphore<> slots(in_flight);
    auto& sessions = runtime_.sessions();
    for (auto& next : plans_[index]) {
      if (next.blocks) {
        next.code = code_of(
          sessions.append_event(key_of(next.session), next.event, next.how)
            .get());
        continue;
      }
      slots.acquire();
      sessions.append_event(key_of(next.session), next.event, next.how)
        .then([&next, &slots](const result<event_ptr>& answer) {
          next.code = code_of(answer);
          slots.release();
        });
    }
    for (std::ptrdiff_t slot = 0; slot < in_flight; ++slot)
      slots.acquire();
  }

  // Pairs the events of the logs with the events sent. The logs must hold
  // exactly the acknowledged ones.
  std::vector<placed_event> collect() {
    codes_.clear();
    std::map<std::string, const planned*> acknowledged;
    for (const auto& own : plans_)
      for (const auto& next : own) {
        ++codes_[next.code];
        if (next.code != "ok")
          continue;
        const auto [first, is_first]
          = acknowledged.emplace(next.event.id, &next);
        if (!is_first && first->second->event.author != next.event.author)
          wrong_ = "a retry with another author: event " + next.event.id;
      }
    std::vector<placed_event> all;
    for (std::size_t session = 0; session < users * sessions_each; ++session) {
      const auto held = runtime_.sessions().get(key_of(session)).value();
      for (std::size_t at = 0; at < held.events().size(); ++at) {
        const auto& stored = held.events()[at];
        const auto sent = acknowledged.find(stored->id);
        if (sent == acknowledged.end()) {
          wrong_ = "a ghost: event " + stored->id;
          return all;
        }
        all.push_back({key_of(session),
                       sent->second->event,
                       sent->second->how,
                       stored,
                       at + 1});
        acknowledged.erase(sent);
      }
    }
    if (!acknowledged.empty())
      wrong_ = "lost: event " + acknowledged.begin()->first;
    return all;
  }

  static listening_store::revisions counted(const event& stored) {
    const auto in = [&stored](scope where) {
      const auto* found = stored.actions.state_delta.find_last(where, "count");
      return found == nullptr ? 0 : found->operand->get<std::uint64_t>();
    };
    return {in(scope::user), in(scope::app)};
  }

  std::string compare_state() {
    for (std::size_t session = 0; session < users * sessions_each; ++session) {
      const auto key = key_of(session);
      const auto real = runtime_.sessions().get(key).value();
      const auto same = model_.get(key).value();
      if (real.state().all().dump() != same.state.dump()
          || real.revision() != same.revision)
        return fmt::format("{} is at {} with {}\n  model: at {} with {}",
                           to_string(key),
                           real.revision(),
                           real.state().all().dump(),
                           same.revision,
                           same.state.dump());
    }
    return {};
  }

  const bool counts_;
  runtime runtime_;
  session_model model_;
  std::vector<std::vector<planned>> plans_;
  std::map<std::string, std::size_t> codes_;
  std::string wrong_;
};

} // namespace

BOOST_DATA_TEST_CASE(a_stress_run_in_memory_comes_to_what_the_model_does,
                     data::xrange(1U, 4U),
                     seed) {
  stress on(seed, 8'000, {}, true);
  BOOST_TEST(on.difference() == "");
  for (const auto* code : {"ok", "conflict", "type_error", "too_large"})
    BOOST_TEST(on.codes().contains(code), code);
}

BOOST_DATA_TEST_CASE(a_stress_run_over_a_store_comes_to_what_the_model_does,
                     data::xrange(1U, 4U),
                     seed) {
  const auto heard = std::make_shared<listening_store>();
  runtime_options options;
  options.store = heard;
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.live_sessions_max = 2;
  stress on(seed, 6'000, std::move(options), false);
  BOOST_TEST(on.difference(heard.get()) == "");
  // The revision of an owner is the number of changes made to it.
  BOOST_TEST(heard->load_scope({"press"}).value()->revision
             == on.model().app_revision("press"));
  for (const auto* user : {"u0", "u1"})
    BOOST_TEST(heard->load_scope({"press", user}).value()->revision
               == on.model().user_revision("press", user));
}

BOOST_AUTO_TEST_CASE(what_does_not_replay_is_found) {
  stress on(9, 400, {}, true);
  const auto real = on.placed();
  const auto replay_of = [&on](std::vector<placed_event> events) {
    auto model = on.model();
    return replay(model, std::move(events));
  };
  BOOST_REQUIRE(replay_of(real) == "");
  {
    auto lost = real;
    lost.erase(lost.begin() + 3);
    BOOST_TEST(replay_of(lost).starts_with("no order fits"));
  }
  {
    auto twice = real;
    twice.push_back(twice[2]);
    BOOST_TEST(replay_of(twice).starts_with("no order fits"));
  }
  {
    // Stores a value that the operations do not produce.
    auto torn = real;
    const auto typed = std::ranges::find_if(
      torn, [](const auto& each) { return each.app_revision > 1; });
    auto stored = *typed->stored;
    stored.actions.state_delta.record("app:count", operation_kind::set, json(1))
      .value();
    typed->stored = std::make_shared<const event>(stored);
    BOOST_TEST(replay_of(torn).starts_with("event '" + stored.id + "'"));
  }
  {
    // Swaps the places of two events in the app, against the order of their
    // session.
    auto swapped = real;
    std::vector<placed_event*> wide;
    for (auto& each : swapped)
      if (each.key == key_of(0) && each.app_revision != 0)
        wide.push_back(&each);
    std::swap(wide[0]->app_revision, wide[1]->app_revision);
    BOOST_TEST(replay_of(swapped) != "");
  }
}

BOOST_AUTO_TEST_SUITE_END()

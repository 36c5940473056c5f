// A stress run of many threads comes to what one caller after the other would
// have come to.

#include "replay.hpp"

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/memory_store.hpp"

#include "../outcome.hpp"
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

// Passes everything on, and remembers which revisions an event has made.
class listening_store : public store {
public:
  struct revisions {
    std::uint64_t user = 0;
    std::uint64_t app = 0;
  };

  listening_store() : kept_(make_memory_store()) {}

  revisions of(const std::string& id) const {
    const std::lock_guard guard(mutex_);
    const auto found = heard_.find(id);
    return found == heard_.end() ? revisions() : found->second;
  }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    auto outcome = kept_->commit(changes);
    const std::lock_guard guard(mutex_);
    if (outcome && outcome->moved.empty())
      for (const auto& each : changes)
        if (each.kind == change_kind::append)
          heard_[each.said->id]
            = {each.user_revision.value_or(0), each.app_revision.value_or(0)};
    return outcome;
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    return kept_->changed_elsewhere();
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return kept_->load_scope(owner);
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return kept_->load_session(key, options);
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return kept_->load_events(key, first, last);
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    return kept_->find_events(key, ids);
  }

  std::optional<lost_history> take_lost_history() override {
    return kept_->take_lost_history();
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return kept_->list(query);
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    return kept_->check(on_progress);
  }

  result<void> close() override { return kept_->close(); }

private:
  const std::unique_ptr<store> kept_;
  mutable std::mutex mutex_;
  std::map<std::string, revisions> heard_;
};

// Random appends of many threads, and what came of them.
class stress {
public:
  // With `counts`, events count themselves in the wide scopes that they touch,
  // which tells their order there.
  stress(std::uint64_t seed,
         std::size_t appends,
         runtime_options options,
         bool counts)
    : counts_(counts),
      runtime_(runtime::open(limited(std::move(options))).value()),
      model_({.limits = limits}) {
    for (std::size_t session = 0; session < users * sessions_each; ++session) {
      const auto key = key_of(session);
      runtime_.sessions().create({key.app, key.user, key.id}).value();
      model_.create({key.app, key.user, key.id}).value();
    }
    plan(seed, appends);
    std::vector<std::thread> all;
    for (std::size_t index = 0; index < threads; ++index)
      all.emplace_back([this, index] { send(index); });
    for (auto& each : all)
      each.join();
  }

  /// What does not fit, or nothing. `heard` knows revisions if events do not
  /// count.
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

  /// As it is collected, to be tampered with.
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
    event said;
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
        next.said.id = fmt::format("t{}-{}", index, own.size());
        next.said.author = "writer";
        if (random.one_in(20))
          next.how.expected_revision = random.below(own.size() + 2);
        for (auto left = random.below(4); left > 0; --left)
          record_any(random, next.said);
        if (counts_)
          count_itself(next.said);
        own.push_back(next);
        // The same once more, or with other content.
        if (random.one_in(20)) {
          if (random.one_in(3))
            next.said.author = "somebody else";
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
          sessions.append_event(key_of(next.session), next.said, next.how));
        continue;
      }
      slots.acquire();
      sessions.append_event(key_of(next.session),
                            next.said,
                            next.how,
                            [&next, &slots](const result<event_ptr>& answer) {
                              next.code = code_of(answer);
                              slots.release();
                            });
    }
    for (std::ptrdiff_t slot = 0; slot < in_flight; ++slot)
      slots.acquire();
  }

  // What is in the logs, with what was sent: no more and no less than was
  // acknowledged.
  std::vector<placed_event> collect() {
    codes_.clear();
    std::map<std::string, const planned*> acknowledged;
    for (const auto& own : plans_)
      for (const auto& next : own) {
        ++codes_[next.code];
        if (next.code != "ok")
          continue;
        const auto [first, is_first]
          = acknowledged.emplace(next.said.id, &next);
        if (!is_first && first->second->said.author != next.said.author)
          wrong_ = "a retry with another author: event " + next.said.id;
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
                       sent->second->said,
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

BOOST_AUTO_TEST_SUITE(replays, *boost::unit_test::timeout(300))

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
  options.custom_store = heard;
  options.append_wait_max = {}; // A slow machine is not the matter here.
  options.live_sessions_max = 2;
  stress on(seed, 6'000, std::move(options), false);
  BOOST_TEST(on.difference(heard.get()) == "");
  // The owners' revisions are the numbers of the changes that they have seen.
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
    // A value that the operations do not come to.
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
    // Two that the app has seen in another order than their session.
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

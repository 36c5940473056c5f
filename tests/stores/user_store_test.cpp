// User-defined stores over the memory store. With the default methods of the
// interface they pass the conformance checks; with deliberate mistakes they
// fail.

#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "conformance.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(user_stores)

namespace {

// Overrides nothing that it need not.
class user_store : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    auto loaded = forwarding_store::load_events(key, first, last);
    at_once_ = std::max(at_once_, loaded->size());
    loaded_ += loaded->size();
    return loaded;
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    return store::find_events(key, ids);
  }

  std::optional<lost_history> take_lost_history() override {
    return store::take_lost_history();
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    return store::list_users(query);
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    return store::list_apps(query);
  }

  std::size_t at_once() const noexcept { return at_once_; }

  std::size_t loaded() const noexcept { return loaded_; }

private:
  std::size_t at_once_ = 0;
  std::size_t loaded_ = 0;
};

enum class mistake : std::uint8_t {
  few_results,
  hash_alone,
  removed_sessions,
  other_sessions,
  few_ids,
  always_lost,
  lost_holders,
};

class wrong_store : public user_store {
public:
  wrong_store(std::unique_ptr<store> kept, mistake made)
    : user_store(std::move(kept)),
      made_(made) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    if (made_ == mistake::lost_holders)
      return user_store::commit(only_closing(changes));
    auto outcome = user_store::commit(changes);
    if (outcome && outcome->moved.empty())
      for (const auto& change : changes)
        if (change.kind == change_kind::append)
          said_.emplace_back(change.owner, change.event);
    return outcome;
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    auto events = user_store::find_events(key, ids).value();
    for (std::size_t index = 0; index < ids.size(); ++index)
      for (const auto& [owner, said] : said_)
        if (!events[index] && matches(owner, *said, key, ids[index]))
          events[index] = said;
    if (made_ == mistake::few_results)
      std::erase(events, nullptr);
    return events;
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    auto bounded = options;
    if (made_ == mistake::few_ids)
      bounded.ids_max = std::min<std::size_t>(bounded.ids_max, 4'096);
    return user_store::load_session(key, bounded);
  }

  std::optional<lost_history> take_lost_history() override {
    if (made_ != mistake::always_lost)
      return std::nullopt;
    return lost_history{1, "lost"};
  }

private:
  // Takes changes of kind `close_runs` for ones that close, whatever their
  // marks say.
  static std::vector<store_change>
  only_closing(std::span<const store_change> changes) {
    std::vector<store_change> made(changes.begin(), changes.end());
    for (auto& change : made)
      if (change.kind == change_kind::close_runs)
        for (auto& mark : change.runs)
          mark.opens = false;
    return made;
  }

  bool matches(const owner_name& owner,
               const event& said,
               const session_key& key,
               const std::string& id) const {
    const owner_name asked{key.app, key.user, key.id};
    switch (made_) {
    case mistake::hash_alone:
      return owner == asked && id_hash(said.id) == id_hash(id);
    case mistake::removed_sessions:
      return owner == asked && said.id == id;
    case mistake::other_sessions:
      return owner.app == key.app && said.id == id;
    default:
      return false;
    }
  }

  mistake made_;
  std::vector<std::pair<owner_name, event_ptr>> said_;
};

store_factory
factory_of(std::function<std::unique_ptr<store>(std::unique_ptr<store>)> make) {
  return {.make_place = [make]() -> store_opener {
    return
      [place = make_memory_data(), make]() -> result<std::unique_ptr<store>> {
        return make(make_memory_store(place));
      };
  }};
}

const testing::conformance_suite suite("user_store",
                                       factory_of([](auto kept) {
                                         return std::make_unique<user_store>(
                                           std::move(kept));
                                       }),
                                       2);

// Returns the names of the failed checks.
std::vector<std::string> noticed_by(mistake made) {
  const auto factory = factory_of([made](auto kept) {
    return std::make_unique<wrong_store>(std::move(kept), made);
  });
  std::vector<std::string> names;
  for (const auto& check : conformance_checks(factory))
    if (!check.run(factory).empty())
      names.push_back(check.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

} // namespace

BOOST_AUTO_TEST_CASE(mistakes_are_noticed) {
  BOOST_TEST(
    has(noticed_by(mistake::few_results), "events_are_found_by_their_ids"));
  BOOST_TEST(
    has(noticed_by(mistake::hash_alone), "ids_of_equal_hashes_are_told_apart"));
  BOOST_TEST(
    has(noticed_by(mistake::removed_sessions), "ids_go_with_their_session"));
  BOOST_TEST(has(noticed_by(mistake::other_sessions),
                 "ids_are_found_in_their_own_session_alone"));
  BOOST_TEST(
    has(noticed_by(mistake::few_ids), "all_ids_of_a_long_session_load"));
  BOOST_TEST(
    has(noticed_by(mistake::always_lost), "nothing_is_lost_while_all_is_kept"));
  BOOST_TEST(has(noticed_by(mistake::lost_holders),
                 "a_change_without_an_event_hands_a_run_over"));
}

// An event may have a megabyte, so the default method must not load all events
// at once.
BOOST_AUTO_TEST_CASE(events_are_found_a_few_at_once) {
  user_store on(make_memory_store());
  const session_key key{"press", "ann", "s1"};
  std::vector<store_change> changes;
  for (std::uint64_t revision = 0; revision <= 1'000; ++revision) {
    event said;
    said.id = "e" + std::to_string(revision);
    auto& change = changes.emplace_back();
    change.kind = revision == 0 ? change_kind::create : change_kind::append;
    change.owner = {key.app, key.user, key.id};
    change.event = std::make_shared<const event>(std::move(said));
    change.session_revision = revision;
  }
  BOOST_REQUIRE(on.commit(changes).value().moved.empty());
  BOOST_TEST(
    on.find_events(key, std::vector<std::string>{"e3", "e7"}).value().at(1)->id
    == "e7");
  BOOST_TEST(on.loaded() < 100U);
  BOOST_TEST(
    !on.find_events(key, std::vector<std::string>{"none"}).value().at(0));
  BOOST_TEST(on.at_once() < 100U);
}

BOOST_AUTO_TEST_SUITE_END()

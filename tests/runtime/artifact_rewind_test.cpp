// Artifacts of sessions that are rewound and forked.

#include "troupe/stores/artifact_view.hpp"

#include "agent_fixture.hpp"
#include "rewind_steps.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(artifact_rewinds, *boost::unit_test::timeout(120))

namespace {

/// Runs an agent that saves a version of each name, with the text `words`.
void save_in_a_run(agent_fixture& on,
                   const std::vector<std::string>& names,
                   const std::string& words) {
  const auto saves
    = custom("saves", [&](invocation_context& context) -> agent_run {
        for (const auto& name : names)
          (co_await context.artifacts().save(name, part(words))).value();
        co_await context.emit(text("saved"));
      });
  on.runtime.run(saves, here, "go").wait().value();
}

void remove_in_a_run(agent_fixture& on, const std::string& name) {
  const auto removes
    = custom("removes", [&name](invocation_context& context) -> agent_run {
        (co_await context.artifacts().remove(name)).value();
        co_await context.emit(text("removed"));
      });
  on.runtime.run(removes, here, "go").wait().value();
}

/// The artifacts as an agent sees them: `a=one b=two `.
std::string files_in_a_run(agent_fixture& on, const session_key& key = here) {
  std::string seen;
  const auto looks
    = custom("looks", [&](invocation_context& context) -> agent_run {
        auto files = context.artifacts();
        for (const auto& name : (co_await files.list()).value()) {
          const auto held = (co_await files.load(name)).value();
          seen += name + '=' + (held ? *held->text() : "nothing") + ' ';
        }
        co_await context.emit(text("looked"));
      });
  on.runtime.run(looks, key, "go").wait().value();
  return seen;
}

std::string files_at(agent_fixture& on, std::uint64_t revision) {
  const auto fetched = on.sessions().get(here, {.at = revision}).value();
  const artifact_view shown(*on.runtime.artifacts(), fetched);
  std::string seen;
  for (const auto& name : shown.list().value())
    seen += name + '=' + *shown.load(name).value()->text() + ' ';
  return seen;
}

/// Artifacts in memory, which are not copied while `fails` is set.
class failing_copies final : public artifact_store {
public:
  bool fails = true;
  bool vanishes = false; // Removes the artifact before it is copied.

protected:
  result<std::int64_t> do_save(const artifact_key& key,
                               const part& content) override {
    auto& versions = kept_[{key.owner, key.name}];
    versions.push_back(content);
    return static_cast<std::int64_t>(versions.size()) - 1;
  }

  result<std::optional<part>>
  do_load(const artifact_key& key,
          std::optional<std::int64_t> version) override {
    const auto& versions = kept_[{key.owner, key.name}];
    if (versions.empty())
      return std::optional<part>();
    return versions.at(version ? static_cast<std::size_t>(*version)
                               : versions.size() - 1);
  }

  result<std::vector<std::string>> do_list(const owner_name& owner) override {
    std::vector<std::string> names;
    for (const auto& [key, versions] : kept_)
      if (key.first == owner && !versions.empty())
        names.push_back(key.second);
    return names;
  }

  result<std::vector<std::int64_t>>
  do_versions(const artifact_key& key) override {
    std::vector<std::int64_t> numbers;
    for (std::size_t next = 0; next < kept_[{key.owner, key.name}].size();
         ++next)
      numbers.push_back(static_cast<std::int64_t>(next));
    return numbers;
  }

  result<void> do_copy(const artifact_key& from,
                       const artifact_key& to,
                       std::size_t count) override {
    if (fails)
      return error(errc::store_failed, "the disk is full");
    if (vanishes)
      kept_.clear();
    return artifact_store::do_copy(from, to, count);
  }

  result<bool> do_remove(const artifact_key& key) override {
    return kept_.erase({key.owner, key.name}) > 0;
  }

  result<void> do_remove_owner(const owner_name& owner) override {
    std::erase_if(
      kept_, [&owner](const auto& each) { return each.first.first == owner; });
    return {};
  }

private:
  std::map<std::pair<owner_name, std::string>, std::vector<part>> kept_;
};

runtime_options with_files(const staged_place& place, bool over_a_store) {
  auto options = options_of(place, over_a_store);
  options.artifacts = "memory:";
  return options;
}

} // namespace

BOOST_DATA_TEST_CASE(artifacts_go_back_with_their_session, both, over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a", "user:u"}, "one");
  const auto first = on.fetch(here).revision();
  save_in_a_run(on, {"a", "a", "b", "user:u"}, "two");
  const auto second = on.fetch(here).revision();
  save_in_a_run(on, {"a", "c"}, "three");
  BOOST_TEST(files_in_a_run(on) == "a=three b=two c=three user:u=two ");

  back_to(on, second);
  BOOST_TEST(files_in_a_run(on) == "a=two b=two user:u=two ");
  const auto after_second = on.fetch(here).revision();
  back_to(on, first);
  BOOST_TEST(files_in_a_run(on) == "a=one user:u=two ");
  back_to(on, 0);
  BOOST_TEST(files_in_a_run(on) == "user:u=two ");
  // Forward again, to a place among events that were taken back.
  back_to(on, after_second);
  BOOST_TEST(files_in_a_run(on) == "a=two b=two user:u=two ");
  back_to(on, second + 1);
  BOOST_TEST(files_in_a_run(on) == "a=two b=two user:u=two ");
  BOOST_TEST(files_at(on, after_second) == "a=two b=two user:u=two ");
  // No version is lost, and numbers go on.
  const auto kept = on.runtime.artifacts();
  BOOST_TEST(kept->versions(here, "a").value().size() == 4U);
  BOOST_TEST(*kept->load(here, "a", 3).value()->text() == "three");
  save_in_a_run(on, {"a", "b"}, "four");
  BOOST_TEST(files_in_a_run(on) == "a=four b=four user:u=two ");
  BOOST_TEST(kept->versions(here, "a").value().back() == 4);
}

BOOST_DATA_TEST_CASE(an_artifact_that_was_removed_after_a_rewind_begins_anew,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a"}, "one");
  const auto first = on.fetch(here).revision();
  save_in_a_run(on, {"a", "a"}, "two");
  back_to(on, first);
  on.runtime.artifacts()->remove(here, "a").value();
  BOOST_TEST(files_in_a_run(on) == "");
  save_in_a_run(on, {"a"}, "three"); // Version 0 again.
  BOOST_TEST(files_in_a_run(on) == "a=three ");
}

BOOST_DATA_TEST_CASE(an_agent_that_removes_an_artifact_ends_its_place,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a", "a"}, "one"); // One event names version 1.
  back_to(on, 0);
  BOOST_TEST(files_in_a_run(on) == ""); // Not version 0.
  remove_in_a_run(on, "a");
  on.runtime.artifacts()->save(here, "a", part("uploaded")).value();
  BOOST_TEST(files_in_a_run(on) == "a=uploaded ");
}

BOOST_DATA_TEST_CASE(a_version_that_no_event_names_is_set_aside,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a"}, "one");
  const auto first = on.fetch(here).revision();
  save_in_a_run(on, {"a"}, "two");
  on.runtime.artifacts()->save(here, "a", part("of a failed step")).value();
  back_to(on, first);
  BOOST_TEST(files_in_a_run(on) == "a=one ");
}

// Lanes may commit their events in another order than they have saved.
BOOST_DATA_TEST_CASE(the_highest_version_before_the_place_counts,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  const auto kept = on.runtime.artifacts();
  for (const auto version : {1, 0, 2}) {
    kept->save(here, "a", part("x" + std::to_string(version))).value();
    auto said = says_so("saved");
    said.actions.artifact_delta = {{"a", version}};
    on.append(here, said);
  }
  // No store can hold these.
  auto odd = says_so("odd");
  odd.actions.artifact_delta = {{"a", -1}, {"", 0}};
  on.append(here, odd);
  back_to(on, 2);
  BOOST_TEST(files_in_a_run(on) == "a=x0 "); // Saved second: version 1.
}

BOOST_DATA_TEST_CASE(a_fork_shares_the_artifacts_up_to_its_revision,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a", "user:u"}, "one");
  const auto first = on.fetch(here).revision();
  save_in_a_run(on, {"a", "b"}, "two");
  const auto second = on.fetch(here).revision();
  back_to(on, first);
  const session_key early(here.app, here.user, "early");
  const session_key late(here.app, here.user, "late");
  const session_key rewound(here.app, here.user, "rewound");
  on.sessions().fork(here, {.at = first}, early.id).value();
  on.sessions().fork(here, {.at = second}, late.id).value();
  on.sessions().fork(here, {}, rewound.id).value();
  BOOST_TEST(on.sessions().remove(here).value());
  BOOST_TEST(files_in_a_run(on, early) == "a=one user:u=one ");
  BOOST_TEST(files_in_a_run(on, late) == "a=two b=two user:u=one ");
  BOOST_TEST(files_in_a_run(on, rewound) == "a=one user:u=one ");
  const auto kept = on.runtime.artifacts();
  BOOST_TEST(kept->versions(early, "a").value().size() == 1U);
  BOOST_TEST(kept->versions(rewound, "a").value().size() == 2U);
}

BOOST_DATA_TEST_CASE(a_fork_does_not_touch_the_artifacts_of_its_id,
                     both,
                     over_a_store) {
  const staged_place place;
  agent_fixture on(with_files(place, over_a_store));
  save_in_a_run(on, {"a"}, "one");
  const session_key fork(here.app, here.user, "fork");
  const auto kept = on.runtime.artifacts();
  kept->save(fork, "b", part("saved before")).value();
  BOOST_TEST(code_of(on.sessions().fork(here, {}, "fork").get())
             == "already_exists");
  BOOST_TEST(code_of(on.sessions().get(fork).get()) == "not_found");
  BOOST_TEST(*kept->load(fork, "b").value()->text() == "saved before");
}

// A store of artifacts that fails to copy.
BOOST_DATA_TEST_CASE(a_fork_that_gets_no_artifacts_is_not_made,
                     both,
                     over_a_store) {
  const staged_place place;
  auto options = options_of(place, over_a_store);
  auto failing = std::make_shared<failing_copies>();
  options.artifacts = failing;
  agent_fixture on(options);
  save_in_a_run(on, {"a"}, "one");
  const session_key fork(here.app, here.user, "fork");
  BOOST_TEST(code_of(on.sessions().fork(here, {}, "fork").get())
             == "store_failed");
  BOOST_TEST(code_of(on.sessions().get(fork).get()) == "not_found");
  failing->fails = false;
  BOOST_TEST(code_of(on.sessions().fork(here, {}, "fork").get()) == "ok");
  BOOST_TEST(files_in_a_run(on, fork) == "a=one ");
}

BOOST_DATA_TEST_CASE(a_fork_notices_that_its_artifacts_were_removed,
                     both,
                     over_a_store) {
  const staged_place place;
  auto options = options_of(place, over_a_store);
  auto failing = std::make_shared<failing_copies>();
  failing->fails = false;
  failing->vanishes = true;
  options.artifacts = failing;
  agent_fixture on(options);
  save_in_a_run(on, {"a"}, "one");
  const session_key fork(here.app, here.user, "fork");
  BOOST_TEST(code_of(on.sessions().fork(here, {}, "fork").get())
             == "not_found");
  BOOST_TEST(code_of(on.sessions().get(fork).get()) == "not_found");
}

BOOST_AUTO_TEST_SUITE_END()

// The maps that a store offers, and a store made of maps.

#include "troupe/stores/map_stores.hpp"

#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "../outcome.hpp"
#include "conformance.hpp"
#include <boost/test/unit_test.hpp>

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

using namespace troupe;
using namespace troupe::testing;

namespace {

const session_key ann_session{"press", "ann", "s1"};

// The three stores of a user: JSON text by name, and a switch that makes them
// fail.
struct own_maps final : app_state_store, user_state_store, session_store {
  using name = std::tuple<std::string, std::string, std::string>;

  result<std::optional<json>> load(const std::string& app) override {
    return read({app, "", ""});
  }

  result<void> save(const std::string& app, const json& map) override {
    return write({app, "", ""}, map);
  }

  result<void> remove(const std::string& app) override {
    return drop({app, "", ""});
  }

  result<std::optional<json>> load(const std::string& app,
                                   const std::string& user) override {
    return read({app, user, ""});
  }

  result<void> save(const std::string& app,
                    const std::string& user,
                    const json& map) override {
    return write({app, user, ""}, map);
  }

  result<void> remove(const std::string& app,
                      const std::string& user) override {
    return drop({app, user, ""});
  }

  result<std::optional<json>> load(const session_key& of) override {
    return read({of.app, of.user, of.id});
  }

  result<void> save(const session_key& of, const json& map) override {
    return write({of.app, of.user, of.id}, map);
  }

  result<void> remove(const session_key& of) override {
    return drop({of.app, of.user, of.id});
  }

  std::unique_ptr<store> compose() {
    return compose_store(*this, *this, *this);
  }

  std::map<name, std::string> texts;
  /// Number of saves before they fail; unset: they never fail.
  std::optional<int> saves_left;

private:
  result<std::optional<json>> read(const name& of) {
    const auto found = texts.find(of);
    if (found == texts.end())
      return std::nullopt;
    return parse_json(found->second).value();
  }

  result<void> write(const name& of, const json& map) {
    if (saves_left && (*saves_left)-- <= 0)
      return error(errc::store_failed, "the disk is full");
    texts[of] = to_text(map);
    return {};
  }

  result<void> drop(const name& of) {
    texts.erase(of);
    return {};
  }
};

struct held_maps {
  std::shared_ptr<own_maps> maps;
};

// A store on maps that live as long as it may be opened.
class store_on_maps : held_maps, public forwarding_store {
public:
  explicit store_on_maps(std::shared_ptr<own_maps> on)
    : held_maps{std::move(on)},
      forwarding_store(maps->compose()) {}
};

store_opener make_maps() {
  return [maps = std::make_shared<own_maps>()]() {
    return std::make_unique<store_on_maps>(maps);
  };
}

const conformance_suite maps_suite("composed_store",
                                   {.make_place = make_maps,
                                    .without = {store_promise::shared,
                                                store_promise::revisions,
                                                store_promise::trims,
                                                store_promise::runs}},
                                   2,
                                   1'500);

struct offered {
  std::shared_ptr<memory_data> place = make_memory_data();
  std::unique_ptr<store> kept = make_memory_store(place);
  simulated_environment clock{1};
  map_stores maps = make_map_stores(*kept, clock);
};

template <class Loaded>
std::string text_of_map(const Loaded& loaded) {
  if (!loaded)
    return code_of(loaded);
  return *loaded ? to_text(**loaded) : "nothing";
}

store_change creation_in_all_scopes() {
  event said;
  said.actions.state_delta
    = delta::from_json({{"a", 1}, {"user:b", 2}, {"app:c", 3}}).value();
  store_change made;
  made.kind = change_kind::create;
  made.owner = {ann_session.app, ann_session.user, ann_session.id};
  made.event = std::make_shared<const event>(said);
  made.session_revision = 0;
  made.user_revision = 1;
  made.app_revision = 1;
  return made;
}

store_change append(std::uint64_t revision, const json& state) {
  event said(user_text("hi"));
  said.id = "e" + std::to_string(revision);
  said.actions.state_delta = delta::from_json(state).value();
  store_change made;
  made.owner = {ann_session.app, ann_session.user, ann_session.id};
  made.event = std::make_shared<const event>(said);
  made.session_revision = revision;
  if (!said.actions.state_delta.share(scope::app).empty())
    made.app_revision = revision + 1;
  return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(offered_maps)

BOOST_FIXTURE_TEST_CASE(a_map_loads_as_it_was_saved, offered) {
  const json map = {{"n", 1.0}, {"list", {1, nullptr}}, {"app", "x"}};
  maps.apps->save("press", map).value();
  maps.users->save("press", "ann", map).value();
  maps.sessions->save(ann_session, map).value();
  for (const auto& next : {map, json{{"n", 1}}, json{{"other", "雪"}}}) {
    maps.apps->save("press", next).value();
    maps.users->save("press", "ann", next).value();
    maps.sessions->save(ann_session, next).value();
    BOOST_TEST(text_of_map(maps.apps->load("press")) == to_text(next));
    BOOST_TEST(text_of_map(maps.users->load("press", "ann")) == to_text(next));
    BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == to_text(next));
  }
}

BOOST_FIXTURE_TEST_CASE(what_was_never_saved_loads_as_nothing, offered) {
  BOOST_TEST(text_of_map(maps.apps->load("press")) == "nothing");
  BOOST_TEST(text_of_map(maps.users->load("press", "ann")) == "nothing");
  BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == "nothing");
  maps.sessions->save(ann_session, json::object()).value();
  BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == "{}");
  BOOST_TEST(text_of_map(maps.apps->load("press")) == "nothing");
}

BOOST_FIXTURE_TEST_CASE(removing_leaves_the_other_maps, offered) {
  for (const auto* id : {"s1", "s2"})
    maps.sessions->save({"press", "ann", id}, {{"id", id}}).value();
  maps.users->save("press", "ann", {{"n", 1}}).value();
  maps.apps->save("press", {{"n", 1}}).value();
  for (int times = 0; times < 2; ++times) {
    maps.sessions->remove(ann_session).value();
    maps.users->remove("press", "ann").value();
    maps.apps->remove("press").value();
  }
  BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == "nothing");
  BOOST_TEST(text_of_map(maps.users->load("press", "ann")) == "nothing");
  BOOST_TEST(text_of_map(maps.apps->load("press")) == "nothing");
  BOOST_TEST(text_of_map(maps.sessions->load({"press", "ann", "s2"}))
             == R"({"id":"s2"})");
}

BOOST_FIXTURE_TEST_CASE(they_are_the_scopes_of_the_sessions, offered) {
  kept->commit(std::vector{creation_in_all_scopes(), append(1, {{"a", 2}})})
    .value();
  BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == R"({"a":2})");
  BOOST_TEST(text_of_map(maps.users->load("press", "ann")) == R"({"b":2})");
  maps.sessions->save(ann_session, {{"z", 1}}).value();
  maps.apps->save("press", {{"c", 3}}).value();
  const auto session = kept->load_session(ann_session, {}).value().value();
  BOOST_TEST(session.scope.revision == 2U);
  BOOST_TEST(session.events.size() == 2U);
  BOOST_TEST(session.events.back()->author == "system");
  const auto app = kept->load_scope({"press"}).value().value();
  BOOST_TEST(app.revision == 1U, "what is the same already is not written");
}

BOOST_FIXTURE_TEST_CASE(names_and_values_follow_the_rules, offered) {
  const auto save = [this](const json& map) {
    return code_of(maps.sessions->save(ann_session, map));
  };
  BOOST_TEST(save({{"__reserved", 1}}) == "invalid_argument");
  BOOST_TEST(save({{"", 1}}) == "invalid_argument");
  BOOST_TEST(save({{"app:n", 1}}) == "invalid_argument");
  BOOST_TEST(save({{"temp:n", 1}}) == "invalid_argument");
  BOOST_TEST(save({{std::string(257, 'k'), 1}}) == "invalid_argument");
  BOOST_TEST(save({{"n", "\xff"}}) == "invalid_argument");
  BOOST_TEST(save({{"n", std::string(300'000, 'x')}}) == "too_large");
  BOOST_TEST(save(json::array()) == "invalid_argument");
  BOOST_TEST(save({{"n", nullptr}, {"m", 1}}) == "ok");
  BOOST_TEST(text_of_map(maps.sessions->load(ann_session)) == R"({"m":1})");
  BOOST_TEST(code_of(maps.apps->save("press", {{"__n", 1}}))
             == "invalid_argument");
  BOOST_TEST(code_of(maps.apps->save("press", {{"user:n", 1}})) == "ok");
  BOOST_TEST(code_of(maps.apps->save(" ", json::object()))
             == "invalid_argument");
  BOOST_TEST(code_of(maps.users->load("press", "")) == "invalid_argument");
  BOOST_TEST(code_of(maps.sessions->remove({"press", "ann", ""}))
             == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(a_save_that_others_overtake_is_tried_again, offered) {
  // Each writer has a store of its own, like a process.
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 2; ++writer)
    writers.emplace_back([this, writer] {
      const auto own = make_memory_store(place);
      simulated_environment time(2);
      const auto own_maps = make_map_stores(*own, time);
      for (int number = 0; number < 200; ++number)
        own_maps.apps->save("press", {{"writer", writer}, {"number", number}})
          .value();
    });
  writers.clear();
  const auto found = maps.apps->load("press").value().value();
  BOOST_TEST(found["number"] == 199);
  BOOST_TEST(kept->load_scope({"press"}).value().value().revision == 400U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(composed_maps)

BOOST_AUTO_TEST_CASE(maps_look_as_documented) {
  own_maps maps;
  const auto kept = maps.compose();
  kept->commit(std::vector{creation_in_all_scopes(), append(1, {{"a", 2}})})
    .value();
  const auto text = [&maps](const char* user, const char* session) {
    return maps.texts.at({"press", user, session});
  };
  BOOST_TEST(text("", "")
             == R"({"__troupe":{"revision":1,"users":["ann"]},"c":3})");
  BOOST_TEST(text("ann", "")
             == R"({"__troupe":{"revision":1,"sessions":["s1"]},"b":2})");
  const auto session = parse_json(text("ann", "s1")).value();
  BOOST_TEST(session["a"] == 2);
  BOOST_TEST(session["__troupe"]["revision"] == 1);
  BOOST_TEST(session["__troupe"]["updated"] == 0);
  BOOST_TEST(session["__troupe"]["events"][0]["number"] == 1);
  BOOST_TEST(session["__troupe"]["events"][0]["event"]["id"] == "e1");
}

BOOST_AUTO_TEST_CASE(maps_from_before_are_scopes_at_revision_0) {
  own_maps maps;
  maps.texts[{"press", "", ""}] = R"({"theme":"dark","__own":1})";
  const auto kept = maps.compose();
  const auto app = kept->load_scope({"press"}).value().value();
  BOOST_TEST(app.revision == 0U);
  BOOST_TEST(app.keys.size() == 1U);
  kept->commit(std::vector{creation_in_all_scopes()}).value();
  const auto after = kept->load_scope({"press"}).value().value();
  BOOST_TEST(text_of(after.keys.find("theme")) == R"("dark")");
  BOOST_TEST(parse_json(maps.texts[{"press", "", ""}]).value()["__own"] == 1);
}

BOOST_AUTO_TEST_CASE(what_is_no_map_is_corrupt) {
  for (const auto* text : {"[]",
                           R"({"__troupe":1})",
                           R"({"__troupe":{"revision":"x"}})",
                           R"({"__troupe":{"events":[{}]}})",
                           R"({"__troupe":{"events":7}})"}) {
    own_maps maps;
    maps.texts[{"press", "ann", "s1"}] = text;
    const auto kept = maps.compose();
    BOOST_TEST(code_of(kept->load_session(ann_session, {})) == "corrupt", text);
  }
}

// The commit is not atomic, as documented. Still, no event shows without its
// share, and the failed commit can be retried.
BOOST_AUTO_TEST_CASE(a_save_that_fails_leaves_the_wider_maps_ahead) {
  own_maps maps;
  const auto kept = maps.compose();
  kept->commit(std::vector{creation_in_all_scopes()}).value();
  maps.saves_left = 1;
  const std::vector changes = {append(1, {{"a", 2}, {"app:c", 4}})};
  BOOST_TEST(code_of(kept->commit(changes)) == "store_failed");
  maps.saves_left.reset();
  BOOST_TEST(kept->load_scope({"press"}).value()->revision == 2U);
  BOOST_TEST(kept->load_session(ann_session, {}).value()->scope.revision == 0U);
  const auto moved = kept->commit(changes).value().moved;
  BOOST_REQUIRE(moved.size() == 1U);
  BOOST_TEST(to_string(moved.front()) == "press");
}

BOOST_AUTO_TEST_SUITE_END()

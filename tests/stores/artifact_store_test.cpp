// The promises of every artifact store, checked on each implementation.

#include "troupe/stores/artifact_store.hpp"

#include "troupe/core/content.hpp"
#include "troupe/stores/artifacts/in_files.hpp"
#include "troupe/stores/artifacts/in_memory.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include "temporary_folder.hpp"
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(artifact_stores)

namespace {

const session_key ann_1{"press", "ann", "s1"};
const session_key ann_2{"press", "ann", "s2"};
const session_key bob_1{"press", "bob", "s1"};

constexpr artifact_options small{.bytes_max = 1'000};

part other_part(const json& body) {
  part made;
  made.body = value(body);
  return made;
}

std::string shown(const part& said) {
  return to_text(to_json(content("", {said})));
}

std::string text_of(const result<std::optional<part>>& loaded) {
  if (!loaded)
    return code_of(loaded);
  if (!*loaded)
    return "nothing";
  const auto* text = (*loaded)->text();
  return text != nullptr ? *text : "no text";
}

template <class T>
std::string joined(const result<std::vector<T>>& elements) {
  return elements ? to_text(json(*elements)) : code_of(elements);
}

// A store with the calls of its users.
class place {
public:
  std::string
  save(const session_key& key, std::string_view name, const part& content) {
    const auto version = kept->save(key, name, content);
    return version ? std::to_string(*version) : code_of(version);
  }

  std::string load(const session_key& key,
                   std::string_view name,
                   std::optional<std::int64_t> version = {}) {
    return text_of(kept->load(key, name, version));
  }

  std::string list(const session_key& key) { return joined(kept->list(key)); }

  std::string versions(const session_key& key, std::string_view name) {
    return joined(kept->versions(key, name));
  }

  std::unique_ptr<artifact_store> kept;
};

struct in_memory : place {
  in_memory() { kept = make_memory_artifacts(small); }
};

struct in_files : place {
  in_files() { kept = open_file_artifacts(folder.path(), small).value(); }

  ~in_files() { kept.reset(); }

  temporary_folder folder;
};

// A store of the user's own, which copies by loading and saving.
class forwarding final : public artifact_store {
public:
  using artifact_store::artifact_store;

protected:
  result<std::int64_t> do_save(const artifact_key& key,
                               const part& content) override {
    return to_->save(session_of(key), key.name, content);
  }

  result<std::optional<part>>
  do_load(const artifact_key& key,
          std::optional<std::int64_t> version) override {
    return to_->load(session_of(key), key.name, version);
  }

  result<std::vector<std::string>> do_list(const owner_name& owner) override {
    return to_->list(session_of({owner, {}}));
  }

  result<std::vector<std::int64_t>>
  do_versions(const artifact_key& key) override {
    return to_->versions(session_of(key), key.name);
  }

  result<bool> do_remove(const artifact_key& key) override {
    return to_->remove(session_of(key), key.name);
  }

  result<void> do_remove_owner(const owner_name& owner) override {
    if (owner.session.empty())
      return owner.user.empty() ? to_->remove_app(owner.app)
                                : to_->remove_user(owner.app, owner.user);
    return to_->remove_session(session_of({owner, {}}));
  }

private:
  // Artifacts of a user are kept as those of a session.
  static session_key session_of(const artifact_key& key) {
    const auto& owner = key.owner;
    return {owner.app,
            owner.user,
            owner.session.empty() ? "artifacts of the user" : owner.session};
  }

  std::unique_ptr<artifact_store> to_ = make_memory_artifacts(small);
};

struct in_a_store_of_ones_own : place {
  in_a_store_of_ones_own() { kept = std::make_unique<forwarding>(small); }
};

using places = boost::mpl::list<in_memory, in_files, in_a_store_of_ones_own>;

void check_comes_back(place& at, const part& content) {
  const auto version = at.kept->save(ann_1, "file", content);
  BOOST_TEST_REQUIRE(code_of(version) == "ok", reason_of(version));
  const auto loaded = at.kept->load(ann_1, "file");
  BOOST_TEST_REQUIRE(code_of(loaded) == "ok", reason_of(loaded));
  BOOST_TEST_REQUIRE(loaded->has_value());
  BOOST_TEST((**loaded == content),
             shown(**loaded) << " is not " << shown(content));
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(versions_count_from_0, Place, places) {
  Place at;
  BOOST_TEST(at.save(ann_1, "a", "one") == "0");
  BOOST_TEST(at.save(ann_1, "a", "two") == "1");
  BOOST_TEST(at.save(ann_1, "a", "three") == "2");
  BOOST_TEST(at.versions(ann_1, "a") == "[0,1,2]");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_newest_version_is_loaded_unless_one_is_named,
                              Place,
                              places) {
  Place at;
  for (int version = 0; version < 12; ++version)
    at.save(ann_1, "a", "text " + std::to_string(version));
  BOOST_TEST(at.load(ann_1, "a") == "text 11");
  BOOST_TEST(at.load(ann_1, "a", 0) == "text 0");
  BOOST_TEST(at.load(ann_1, "a", 9) == "text 9");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_copy_has_the_first_versions_and_its_own_way,
                              Place,
                              places) {
  Place at;
  for (const auto* text : {"one", "two", "three"})
    at.save(ann_1, "a", text);
  BOOST_TEST(code_of(at.kept->copy(ann_1, ann_2, "a", 2)) == "ok");
  BOOST_TEST(at.versions(ann_2, "a") == "[0,1]");
  BOOST_TEST(at.load(ann_2, "a") == "two");
  // Each goes on by itself, and stays when the other is removed.
  BOOST_TEST(at.save(ann_2, "a", "other") == "2");
  BOOST_TEST(at.load(ann_1, "a", 2) == "three");
  BOOST_TEST(code_of(at.kept->remove_session(ann_1)) == "ok");
  BOOST_TEST(at.load(ann_2, "a", 0) == "one");
  BOOST_TEST(at.load(ann_2, "a") == "other");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_is_copied_over_an_artifact,
                              Place,
                              places) {
  Place at;
  at.save(ann_1, "a", "one");
  at.save(ann_2, "a", "mine");
  BOOST_TEST(code_of(at.kept->copy(ann_1, ann_2, "a", 1)) == "already_exists");
  BOOST_TEST(at.load(ann_2, "a") == "mine");
  BOOST_TEST(at.versions(ann_2, "a") == "[0]");
  BOOST_TEST(code_of(at.kept->copy(ann_1, bob_1, "user:a", 1))
             == "invalid_argument");
  BOOST_TEST(code_of(at.kept->copy(ann_1, ann_2, "a/b", 1))
             == "invalid_argument");
  // Without a version there is no artifact.
  BOOST_TEST(code_of(at.kept->copy(ann_1, bob_1, "a", 0)) == "ok");
  BOOST_TEST(code_of(at.kept->copy(ann_1, bob_1, "b", 9)) == "ok");
  BOOST_TEST(at.list(bob_1) == "[]");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_never_saved_loads_as_nothing,
                              Place,
                              places) {
  Place at;
  BOOST_TEST(at.load(ann_1, "a") == "nothing");
  BOOST_TEST(at.list(ann_1) == "[]");
  BOOST_TEST(at.versions(ann_1, "a") == "[]");
  at.save(ann_1, "a", "one");
  BOOST_TEST(at.load(ann_1, "b") == "nothing");
  BOOST_TEST(at.load(ann_2, "a") == "nothing");
  BOOST_TEST(at.load(ann_1, "user:a") == "nothing");
  for (const std::int64_t version : {std::int64_t{-1},
                                     std::int64_t{1},
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()})
    BOOST_TEST(at.load(ann_1, "a", version) == "nothing");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_artifact_of_the_user_is_in_all_its_sessions,
                              Place,
                              places) {
  Place at;
  BOOST_TEST(at.save(ann_1, "user:a", "one") == "0");
  BOOST_TEST(at.save(ann_2, "user:a", "two") == "1");
  BOOST_TEST(at.load(ann_1, "user:a") == "two");
  BOOST_TEST(at.load(bob_1, "user:a") == "nothing");
  BOOST_TEST(at.load({"other", "ann", "s1"}, "user:a") == "nothing");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(sessions_do_not_share_theirs, Place, places) {
  Place at;
  for (const auto& key : {ann_1, ann_2, bob_1})
    BOOST_TEST(at.save(key, "a", to_string(key)) == "0");
  for (const auto& key : {ann_1, ann_2, bob_1})
    BOOST_TEST(at.load(key, "a") == to_string(key));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(names_are_listed_in_order_with_those_of_the_user,
                              Place,
                              places) {
  Place at;
  for (const auto* name : {"z", "user:b", "a", "user:a", "Z", "雪", "a"})
    at.save(ann_1, name, "x");
  at.save(ann_2, "other", "x");
  at.save(bob_1, "user:other", "x");
  BOOST_TEST(at.list(ann_1) == R"(["Z","a","user:a","user:b","z","雪"])");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(removing_takes_all_versions_and_says_so,
                              Place,
                              places) {
  Place at;
  at.save(ann_1, "a", "one");
  at.save(ann_1, "a", "two");
  at.save(ann_1, "b", "other");
  BOOST_TEST(at.kept->remove(ann_1, "a").value());
  BOOST_TEST(!at.kept->remove(ann_1, "a").value());
  BOOST_TEST(!at.kept->remove(ann_2, "a").value());
  BOOST_TEST(at.load(ann_1, "a") == "nothing");
  BOOST_TEST(at.load(ann_1, "a", 0) == "nothing");
  BOOST_TEST(at.versions(ann_1, "a") == "[]");
  BOOST_TEST(at.list(ann_1) == R"(["b"])");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_a_removal_versions_start_at_0_again,
                              Place,
                              places) {
  Place at;
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST(at.save(ann_1, "user:a", "one") == "0");
    BOOST_TEST(at.save(ann_1, "user:a", "two") == "1");
    BOOST_TEST(at.kept->remove(ann_2, "user:a").value());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(removing_a_session_leaves_user_and_others,
                              Place,
                              places) {
  Place at;
  for (const auto& key : {ann_1, ann_2, bob_1})
    for (const auto* name : {"a", "user:u"})
      at.save(key, name, "x");
  for (int times = 0; times < 2; ++times)
    at.kept->remove_session(ann_1).value();
  BOOST_TEST(at.list(ann_1) == R"(["user:u"])");
  BOOST_TEST(at.list(ann_2) == R"(["a","user:u"])");
  BOOST_TEST(at.list(bob_1) == R"(["a","user:u"])");
  BOOST_TEST(at.save(ann_1, "a", "x") == "0");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(removing_a_user_takes_its_sessions_along,
                              Place,
                              places) {
  Place at;
  const session_key annex{"press", "annex", "s1"};
  for (const auto& key : {ann_1, ann_2, bob_1, annex})
    for (const auto* name : {"a", "user:u"})
      at.save(key, name, "x");
  for (int times = 0; times < 2; ++times)
    at.kept->remove_user("press", "ann").value();
  BOOST_TEST(at.list(ann_1) == "[]");
  BOOST_TEST(at.list(ann_2) == "[]");
  BOOST_TEST(at.list(bob_1) == R"(["a","user:u"])");
  BOOST_TEST(at.list(annex) == R"(["a","user:u"])");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(removing_an_app_takes_its_users_along,
                              Place,
                              places) {
  Place at;
  const session_key other{"press 2", "ann", "s1"};
  for (const auto& key : {ann_1, bob_1, other})
    for (const auto* name : {"a", "user:u"})
      at.save(key, name, "x");
  for (int times = 0; times < 2; ++times)
    at.kept->remove_app(" press").value();
  BOOST_TEST(at.list(ann_1) == "[]");
  BOOST_TEST(at.list(bob_1) == "[]");
  BOOST_TEST(at.list(other) == R"(["a","user:u"])");
  BOOST_TEST(code_of(at.kept->remove_app(" ")) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_part_that_is_no_call_comes_back,
                              Place,
                              places) {
  Place at;
  part signed_text("a thought");
  signed_text.thought = true;
  signed_text.extra
    = json{{"thoughtSignature", "xyz"}, {"n", 1.0}, {"deep", {{"er", {1}}}}};
  check_comes_back(at, signed_text);
  part signed_data = inline_data("\0\xff"s, "image/png", "n");
  signed_data.thought = true;
  signed_data.extra = json::object();
  check_comes_back(at, signed_data);
  check_comes_back(at, part("NUL \0, CR LF \r\n, 雪"s));
  check_comes_back(at, other_part({{"fileData", {{"fileUri", "gs://a"}}}}));
  check_comes_back(at, other_part(json::object()));
  check_comes_back(
    at, other_part({{"inlineData", {{"data", "aGkh"}}}, {"videoMetadata", 1}}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_empty_comes_back, Place, places) {
  Place at;
  check_comes_back(at, part(""));
  check_comes_back(at, inline_data("", "image/png"));
  BOOST_TEST(at.versions(ann_1, "file") == "[0,1]");
  BOOST_TEST(at.load(ann_1, "file", 0) == "");
}

const std::vector<json> data_spellings
  = {{{"inlineData", {{"data", "-_8="}, {"mimeType", "a/b"}}}},
     {{"inlineData", {{"data", "+/8="}, {"mime_type", "a/b"}}}},
     {{"inlineData", {{"data", "-_8"}}}},
     {{"inlineData", {{"data", "-/8="}}}},
     {{"inlineData", {{"data", "-_9="}}}}, // Unused bits are not 0.
     {{"inlineData", {{"mimeType", "a/b"}}}},
     {{"inlineData", {{"data", nullptr}}}},
     {{"inline_data", {{"data", "aGkh"}}}},
     {{"inlineData", nullptr}}};

BOOST_AUTO_TEST_CASE_TEMPLATE(data_comes_back_as_it_was_spelled,
                              Place,
                              places) {
  Place at;
  for (const auto& body : data_spellings)
    check_comes_back(at, other_part(body));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(parts_as_deep_as_json_may_be_come_back,
                              Place,
                              places) {
  Place at;
  json deep = json::object();
  for (std::size_t depth = 1; depth < json_depth_max; ++depth)
    deep = json{{"in", std::move(deep)}};
  check_comes_back(at, other_part(deep));
  part with_extra("text");
  with_extra.extra = deep;
  check_comes_back(at, with_extra);
  auto with_data = deep;
  with_data["inlineData"] = {{"data", ""}};
  check_comes_back(at, other_part(with_data));
  BOOST_TEST(at.save(ann_1, "a", other_part({{"in", deep}}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_and_what_is_malformed_are_refused,
                              Place,
                              places) {
  Place at;
  part bad_extra("text");
  bad_extra.extra = json::array();
  for (const auto& content :
       {part(function_call{"1", "f", json::object()}),
        part(function_response{"1", "f", json::object()}),
        other_part({{"functionCall", {{"name", "f"}}}}),
        other_part({{"function_response", {{"name", "f"}}}}),
        other_part({{"inlineData", {{"data", "a"}}}}),
        other_part({{"inlineData", "aGkh"}}),
        other_part({{"a", std::nan("")}}),
        other_part(json::array()),
        other_part(nullptr),
        part("\xff"),
        bad_extra})
    BOOST_TEST(at.save(ann_1, "a", content) == "invalid_argument");
  BOOST_TEST(at.list(ann_1) == "[]");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_above_the_limit_is_refused,
                              Place,
                              places) {
  Place at;
  const std::string most(small.bytes_max, 'x');
  const auto fields = [](const std::string& text) {
    return other_part({{"a", text}});
  };
  BOOST_TEST(at.save(ann_1, "text", most) == "0");
  BOOST_TEST(at.save(ann_1, "text", most + "x") == "too_large");
  BOOST_TEST(at.save(ann_1, "data", inline_data(most, "a/b")) == "0");
  BOOST_TEST(at.save(ann_1, "data", inline_data(most + "x", "a/b"))
             == "too_large");
  BOOST_TEST(at.save(ann_1, "data", inline_data("", most)) == "too_large");
  BOOST_TEST(at.save(ann_1, "json", fields(most.substr(8))) == "0");
  BOOST_TEST(at.save(ann_1, "json", fields(most.substr(7))) == "too_large");
  part with_extra("text");
  with_extra.extra = json{{"a", most}};
  BOOST_TEST(at.save(ann_1, "text", with_extra) == "too_large");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(every_way_in_checks_its_names, Place, places) {
  Place at;
  const auto refused = [&at](const session_key& key, std::string_view name) {
    BOOST_TEST(at.save(key, name, "x") == "invalid_argument");
    BOOST_TEST(at.load(key, name) == "invalid_argument");
    BOOST_TEST(at.versions(key, name) == "invalid_argument");
    BOOST_TEST(code_of(at.kept->remove(key, name)) == "invalid_argument");
  };
  refused(ann_1, "../a");
  refused(ann_1, "user:..");
  const session_key bad{"press", " ", "s1"};
  refused(bad, "a");
  BOOST_TEST(at.list(bad) == "invalid_argument");
  BOOST_TEST(code_of(at.kept->remove_session(bad)) == "invalid_argument");
  BOOST_TEST(code_of(at.kept->remove_user("press", "")) == "invalid_argument");
  BOOST_TEST(code_of(at.kept->remove_user("", "ann")) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ids_are_trimmed, Place, places) {
  Place at;
  BOOST_TEST(at.save({" press", "ann ", "\ts1"}, "a", "one") == "0");
  BOOST_TEST(at.load(ann_1, "a") == "one");
  at.kept->remove_user(" press", "ann ").value();
  BOOST_TEST(at.load(ann_1, "a") == "nothing");
}

// Compares any sequence of calls with a map.
BOOST_AUTO_TEST_CASE_TEMPLATE(any_sequence_of_calls_agrees_with_a_map,
                              Place,
                              places) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Place at;
    random_source random(seed);
    std::map<std::string, std::vector<std::string>> expected;
    const std::vector<std::string> names
      = {"a", "A", "%41", "b.c", "雪", std::string(200, 'l')};
    for (int step = 0; step < 60; ++step) {
      const auto& name = random.pick(names);
      auto& versions = expected[name];
      if (random.one_in(8)) {
        BOOST_TEST(at.kept->remove(ann_1, name).value() == !versions.empty());
        versions.clear();
      } else if (random.one_in(3)) {
        BOOST_TEST(at.load(ann_1, name)
                   == (versions.empty() ? "nothing" : versions.back()));
      } else {
        versions.push_back(random.text(5));
        BOOST_TEST(at.save(ann_1, name, versions.back())
                   == std::to_string(versions.size() - 1));
      }
    }
    std::set<std::string> listed;
    for (const auto& [name, versions] : expected)
      if (!versions.empty())
        listed.insert(name);
    BOOST_TEST(at.list(ann_1) == to_text(json(listed)));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(saves_from_8_threads_leave_no_gap,
                              Place,
                              places) {
  constexpr int threads = 8;
  constexpr int saves = 25;
  Place at;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < threads; ++writer)
      writers.emplace_back([&at, writer] {
        for (int number = 0; number < saves; ++number) {
          const auto text = std::to_string(writer * saves + number);
          const auto version = at.kept->save(ann_1, "a", text).value();
          if (at.load(ann_1, "a", version) != text)
            throw error(errc::internal, "it is not what was saved");
        }
      });
  }
  std::set<std::string> texts;
  const auto versions = at.kept->versions(ann_1, "a").value();
  for (const auto version : versions)
    texts.insert(at.load(ann_1, "a", version));
  BOOST_TEST(versions.size() == std::size_t{threads * saves});
  BOOST_TEST(versions.back() == threads * saves - 1);
  BOOST_TEST(texts.size() == std::size_t{threads * saves});
}

// No reader sees an artifact without a version, or an incomplete part.
BOOST_AUTO_TEST_CASE_TEMPLATE(removals_among_saves_and_loads_are_whole,
                              Place,
                              places) {
  Place at;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> others;
  for (int writer = 0; writer < 2; ++writer)
    others.emplace_back([&at, &wrong](const std::stop_token& stop) {
      while (!stop.stop_requested())
        if (!at.kept->save(ann_1, "a", std::string(500, 'x')))
          ++wrong;
    });
  for (int reader = 0; reader < 2; ++reader)
    others.emplace_back([&at, &wrong](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto versions = at.kept->versions(ann_1, "a");
        if (!versions
            || (!versions->empty()
                && versions->back() + 1
                     != static_cast<std::int64_t>(versions->size())))
          ++wrong;
        const auto text = at.load(ann_1, "a");
        if (text != "nothing" && text != std::string(500, 'x'))
          ++wrong;
      }
    });
  for (int round = 0; round < 60; ++round) {
    while (!at.kept->load(ann_1, "a").value())
      std::this_thread::yield();
    if (round % 3 == 0)
      at.kept->remove_user("press", "ann").value();
    else if (round % 3 == 1)
      at.kept->remove_session(ann_1).value();
    else
      BOOST_TEST(at.kept->remove(ann_1, "a").value());
  }
  others.clear();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()

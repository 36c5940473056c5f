// The promises of every memory service, checked on each implementation.

#include "troupe/stores/memory_service.hpp"

#include "troupe/core/rewind.hpp"

#include "../random.hpp"
#include "memory_places.hpp"
#include <boost/mpl/list.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
using namespace std::string_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(memory_services)

namespace {

using places = boost::mpl::
  list<memories_in_memory, memories_in_sqlite, memories_in_postgres>;

const session_key ann_1{"press", "ann", "s1"};
const session_key ann_2{"press", "ann", "s2"};
const session_key bob_1{"press", "bob", "s1"};
const session_key other_app{"shop", "ann", "s1"};

std::string number_of(const result<std::size_t>& count) {
  return count ? std::to_string(*count) : code_of(count);
}

std::string answer_of(const result<bool>& found) {
  return found ? (*found ? "yes" : "no") : code_of(found);
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_session_is_found_by_its_words, place, places) {
  place on;
  const auto added = on.kept->add_session(
    session_of(ann_1,
               {said_by("user", "e1", "My dog is called Rex.", 1),
                said_by("helper", "e2", "A fine name for a dog!", 2),
                said_by("user", "e3", "The weather is bad.", 3)}));
  BOOST_TEST(number_of(added) == "3");
  const auto found = on.kept->search("press", "ann", "DOG").value();
  BOOST_REQUIRE(found.size() == 2U);
  BOOST_TEST(ids_of(found) == "e2 e1");
  BOOST_TEST(found[1].session == "s1");
  BOOST_TEST(found[1].author == "user");
  BOOST_TEST((found[1].timestamp == second(1)));
  BOOST_TEST(
    to_text(to_json(found[1].content))
    == R"({"parts":[{"text":"My dog is called Rex."}],"role":"user"})");
  BOOST_TEST(found[0].author == "helper");
  BOOST_TEST(found[0].content.role == "model");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "cat")) == "");
  // A part of a word is another word.
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "do")) == "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_search_reads_one_user_of_one_app,
                              place,
                              places) {
  place on;
  for (const auto& key : {ann_1, ann_2, bob_1, other_app})
    on.kept
      ->add_session(session_of(
        key,
        {said_by("user", key.app + key.user + key.id, "a secret of mine")}))
      .value();
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "secret"))
             == "pressanns2 pressanns1");
  BOOST_TEST(ids_of(on.kept->search("press", "bob", "secret")) == "pressbobs1");
  BOOST_TEST(ids_of(on.kept->search("shop", "ann", "secret")) == "shopanns1");
  BOOST_TEST(ids_of(on.kept->search("shop", "bob", "secret")) == "");
  BOOST_TEST(ids_of(on.kept->search(" press ", "\tbob\n", "secret"))
             == "pressbobs1");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_session_that_is_added_again_is_replaced,
                              place,
                              places) {
  place on;
  on.kept
    ->add_session(session_of(
      ann_1, {said_by("user", "e1", "tea"), said_by("user", "e2", "coffee")}))
    .value();
  on.kept->add_session(session_of(ann_2, {said_by("user", "e1", "tea")}))
    .value();
  const auto added = on.kept->add_session(session_of(
    ann_1, {said_by("user", "e2", "milk"), said_by("user", "e3", "tea")}));
  BOOST_TEST(number_of(added) == "2");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "e3 e1");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "coffee")) == "");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "milk")) == "e2");
  BOOST_TEST(number_of(on.kept->add_session(session_of(ann_1, {}))) == "0");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea milk")) == "e1");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(events_are_added_once, place, places) {
  place on;
  const std::vector<event_ptr> first{said_by("user", "e1", "tea", 1),
                                     said_by("user", "e2", "tea", 2)};
  BOOST_TEST(number_of(on.kept->add_events(ann_1, first)) == "2");
  BOOST_TEST(number_of(on.kept->add_events(ann_1, first)) == "0");
  const std::vector<event_ptr> more{said_by("user", "e2", "coffee", 2),
                                    said_by("user", "e3", "tea", 3),
                                    said_by("user", "e3", "milk", 3)};
  BOOST_TEST(number_of(on.kept->add_events(ann_1, more)) == "1");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "e3 e2 e1");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "coffee milk")) == "");
  // The same id in another session is another event.
  BOOST_TEST(number_of(on.kept->add_events(ann_2, first)) == "2");
  BOOST_TEST(number_of(on.kept->add_events(ann_1, {})) == "0");
  BOOST_TEST(code_of(on.kept->add_events(ann_1, {said_by("user", "", "tea")}))
             == "invalid_argument");
  BOOST_TEST(code_of(on.kept->add_events(ann_1, {nullptr}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(texts_are_added_without_a_session,
                              place,
                              places) {
  place on;
  BOOST_TEST(number_of(on.kept->add(
               "press", "ann", {note("n1", "likes tea"), note("n2", "vegan")}))
             == "2");
  BOOST_TEST(number_of(on.kept->add(
               "press", "ann", {note("n1", "x"), note("n3", "drinks tea", 1)}))
             == "1");
  const auto found = on.kept->search("press", "ann", "tea").value();
  BOOST_TEST(ids_of(found) == "n3 n1");
  BOOST_TEST(found.front().session == "");
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "s1", "n1")) == "no");
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "", "n1")) == "yes");
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "", "n1")) == "no");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "n3");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_same_text_without_an_id_is_added_once,
                              place,
                              places) {
  place on;
  std::vector<std::string> added;
  const auto add = [&](std::vector<memory_entry> entries) {
    return number_of(on.kept->add("press", "ann", std::move(entries), &added));
  };
  BOOST_TEST(add({note("", "likes tea", 1), note("", "likes tea", 2)}) == "1");
  const auto id = added.front();
  // Programs of later versions have to find it.
  BOOST_TEST(id == "a5e5c5a2-fe63-5cd3-8581-35e7e04d2346");
  BOOST_TEST(add({note("", "likes tea", 3)}) == "0");
  auto thinking = note("", "likes tea");
  thinking.content.parts.insert(thinking.content.parts.begin(), part("Hm."));
  thinking.content.parts.front().thought = true;
  BOOST_TEST(add({thinking}) == "0");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == id);
  BOOST_TEST((on.kept->search("press", "ann", "tea").value().front().timestamp
              == second(1)));

  auto by_agent = note("", "likes tea");
  by_agent.author = "guide";
  auto by_model = note("", "likes tea");
  by_model.content.role = "model";
  auto in_parts = note("", "likes");
  in_parts.content.parts.emplace_back(" tea");
  auto in_other_parts = note("", "likes ");
  in_other_parts.content.parts.emplace_back("tea");
  BOOST_TEST(add({by_agent, by_model, in_parts, in_other_parts}) == "4");
  BOOST_TEST(number_of(on.kept->add("press", "bob", {note("", "likes tea")}))
             == "1");
  // A removed memory can be added again.
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "", id)) == "yes");
  BOOST_TEST(add({note("", "likes tea")}) == "1");
  BOOST_TEST(added.front() == id);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_bad_text_changes_nothing, place, places) {
  place on;
  auto from_session = note("n2", "tea");
  from_session.session = "s1";
  auto thought = note("n2", "tea");
  thought.content.parts.front().thought = true;
  auto author = note("n2", "tea");
  author.author = "\xff";
  for (const auto& bad : {from_session,
                          thought,
                          author,
                          note("", "?!"),
                          note(" ", "tea"),
                          note("n2", "?!"),
                          note("n2", "tea \xff"),
                          note("n\0"s, "tea"),
                          note(std::string(513, 'n'), "tea")})
    BOOST_TEST(code_of(on.kept->add("press", "ann", {note("n1", "tea"), bad}))
               == "invalid_argument");
  const std::string words(memory_bytes_max / 4, 't');
  const auto large = words + " " + words + " " + words + " " + words;
  BOOST_TEST(code_of(on.kept->add(
               "press", "ann", {note("n1", "tea"), note("n2", large)}))
             == "too_large");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "");
  BOOST_TEST(
    number_of(on.kept->add("press", "ann", {note("n1", large.substr(3))}))
    == "1");
}

// A store could not keep such an event, so it is refused before.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_bad_event_changes_nothing, place, places) {
  place on;
  on.kept->add("press", "bob", {note("b", "tea of bob")}).value();
  on.kept->add_session(session_of(ann_1, {said_by("user", "e0", "tea")}))
    .value();
  auto role = *said_by("user", "e2", "tea");
  role.content.role = "\xff";
  const std::string word(memory_bytes_max / 2, 't');
  const std::pair<event_ptr, std::string> bad_ones[]{
    {said_by("user", "e2", "tea \xff"), "invalid_argument"},
    {said_by("\xff", "e2", "tea"), "invalid_argument"},
    {std::make_shared<const event>(role), "invalid_argument"},
    {said_by("user", "e2", word + " " + word), "too_large"}};
  for (const auto& [bad, code] : bad_ones) {
    const std::vector<event_ptr> events{said_by("user", "e1", "tea"), bad};
    const auto added = on.kept->add_events(ann_1, events);
    BOOST_TEST(code_of(added) == code);
    BOOST_TEST(reason_of(added).find("e2") != std::string::npos);
    BOOST_TEST(code_of(on.kept->add_session(session_of(ann_1, events)))
               == code);
    BOOST_TEST(ids_of(on.kept->search("press", "bob", "tea")) == "b");
    BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "e0");
  }
  BOOST_TEST(number_of(on.kept->add_events(
               ann_1, {said_by("user", "e3", word + " " + word.substr(1))}))
             == "1");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(only_new_memories_are_taken_back, place, places) {
  place on;
  std::vector<std::string> added{"x"};
  const auto joined = [&added] {
    std::string ids;
    for (const auto& each : added)
      ids += each + " ";
    return ids;
  };
  on.kept->add_events(ann_1, {said_by("user", "e1", "tea")}, &added).value();
  BOOST_TEST(joined() == "e1 ");
  const std::vector<event_ptr> more{said_by("user", "e1", "tea"),
                                    said_by("user", "e2", "tea"),
                                    said_by("user", "e3", "tea"),
                                    said_by("user", "e2", "milk")};
  BOOST_TEST(number_of(on.kept->add_events(ann_1, more, &added)) == "2");
  BOOST_TEST(joined() == "e2 e3 ");
  BOOST_TEST(number_of(on.kept->remove("press", "ann", "s1", added)) == "2");
  BOOST_TEST(number_of(on.kept->remove("press", "ann", "s1", added)) == "0");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea milk")) == "e1");
  on.kept->add_events(ann_1, {said_by("user", "e1", "tea")}, &added).value();
  BOOST_TEST(joined() == "");
  BOOST_TEST(number_of(on.kept->remove("press", "ann", "s1", added)) == "0");

  on.kept->add("press", "ann", {note("n1", "tea")}).value();
  on.kept->add("press", "ann", {note("n1", "a"), note("n2", "tea")}, &added)
    .value();
  BOOST_TEST(joined() == "n2 ");
  BOOST_TEST(code_of(on.kept->add("press", "ann", {note(" ", "tea")}, &added))
             == "invalid_argument");
  BOOST_TEST(joined() == "");
  const std::vector<std::string> with_a_bad_one{"n1", ""};
  BOOST_TEST(code_of(on.kept->remove("press", "ann", "", with_a_bad_one))
             == "invalid_argument");
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "tea")) == "n2 n1 e1");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_names_are_refused, place, places) {
  place on;
  for (const auto& bad : {""s, " "s, "a\0b"s, "\xff"s, std::string(513, 'a')}) {
    const session_key keys[]{{bad, "u", "s"}, {"a", bad, "s"}, {"a", "u", bad}};
    for (const auto& key : keys) {
      BOOST_TEST(code_of(on.kept->add_session(session_of(key, {})))
                 == "invalid_argument");
      BOOST_TEST(code_of(on.kept->add_events(key, {})) == "invalid_argument");
      BOOST_TEST(code_of(on.kept->remove_session(key)) == "invalid_argument");
    }
    BOOST_TEST(code_of(on.kept->remove_app(bad)) == "invalid_argument");
    for (const auto& [app, user] :
         {std::pair(bad, "u"s), std::pair("a"s, bad)}) {
      BOOST_TEST(code_of(on.kept->search(app, user, "x"))
                 == "invalid_argument");
      BOOST_TEST(code_of(on.kept->add(app, user, {})) == "invalid_argument");
      BOOST_TEST(code_of(on.kept->remove_user(app, user))
                 == "invalid_argument");
      BOOST_TEST(code_of(on.kept->remove(app, user, "s", "e"))
                 == "invalid_argument");
    }
    BOOST_TEST(code_of(on.kept->remove("a", "u", "s", bad))
               == "invalid_argument");
  }
  BOOST_TEST(code_of(on.kept->search("a", "u", "x", 0)) == "invalid_argument");
  BOOST_TEST(code_of(on.kept->search("a", "u", "\xff")) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(only_what_was_said_is_remembered, place, places) {
  place on;
  const auto made = [](const std::string& id, std::vector<part> parts) {
    event said(content("model", std::move(parts)));
    said.id = id;
    said.author = "helper";
    return said;
  };
  part thought("tea in thoughts");
  thought.thought = true;
  auto partial = made("e3", {part("tea in a piece")});
  partial.partial = true;
  auto rewind = made("e6", {});
  take_back(rewind, 1);
  std::vector<event_ptr> events;
  for (const auto& each :
       {made("e1", {thought}),
        made("e2",
             {part(function_call("c", "tea", value(json{{"q", "tea"}})))}),
        partial,
        made("e4",
             {part("I drink"),
              thought,
              inline_data("tea", "text/plain"),
              part("tea.")}),
        made("e5", {part("tea that was taken back")}),
        rewind,
        made("e7", {part("\xf0\x9f\x8d\xb5")})})
    events.push_back(std::make_shared<const event>(each));
  BOOST_TEST(number_of(on.kept->add_session(session_of(ann_1, events))) == "1");
  const auto found = on.kept->search("press", "ann", "tea").value();
  BOOST_TEST(ids_of(found) == "e4");
  BOOST_TEST(to_text(to_json(found.front().content))
             == R"({"parts":[{"text":"I drink"},{"text":"tea."}],)"
                R"("role":"model"})");
  // Words of two parts are two words.
  BOOST_TEST(ids_of(on.kept->search("press", "ann", "drinktea")) == "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_query_is_text_and_never_syntax, place, places) {
  place on;
  on.kept
    ->add("press",
          "ann",
          {note("n1", "tea time", 1),
           note("n2", "coffee", 2),
           note("n3", "not near or and words user", 3)})
    .value();
  on.kept->add("press", "bob", {note("n4", "tea")}).value();
  const auto found = [&](const std::string& query) {
    return ids_of(on.kept->search("press", "ann", query));
  };
  for (const auto* query : {"tea\"",
                            "\"tea",
                            "tea*",
                            "te*",
                            "tea(",
                            "(tea",
                            "tea:*",
                            "tea'",
                            "'tea' | 'x'",
                            "tea\\",
                            "!tea",
                            "tea & coffeepot",
                            "tea <-> coffeepot",
                            "^tea",
                            "{tea}",
                            "-tea",
                            "tea; DROP TABLE memories"})
    BOOST_TEST(found(query) == (query == "te*"s ? "" : "n1"), query);
  BOOST_TEST(found("tea NOT coffee") == "n3 n2 n1");
  BOOST_TEST(found("tea AND coffee") == "n3 n2 n1");
  BOOST_TEST(found("words:tea") == "n3 n1");
  BOOST_TEST(found("tea\0coffee"s) == "n2 n1");
  for (const auto* query : {"", " ", "\"\"", "*", "@1", "@2", "()", "%", "_"})
    BOOST_TEST(found(query) == "", query);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(case_accents_and_forms_do_not_matter,
                              place,
                              places) {
  place on;
  on.kept
    ->add("press",
          "ann",
          {note("cafe", "Le Caf\xc3\xa9"),
           note("street",
                "Hauptstra\xc3\x9f"
                "e"),
           note("greek",
                "\xce\xa3\xce\xaf\xcf\x83\xcf\x85\xcf\x86\xce\xbf"
                "\xcf\x82"),
           note("full", "\xef\xbc\xa1\xef\xbc\xa2\xef\xbc\xa3 12"),
           note("ring", "\xe2\x84\xab")})
    .value();
  const auto found = [&](const std::string& query) {
    return ids_of(on.kept->search("press", "ann", query));
  };
  for (const auto* query :
       {"CAF\xc3\x89", "cafe", "cafe\xcc\x81", "d'cafe", "cafe's"})
    BOOST_TEST(found(query) == "cafe", query);
  BOOST_TEST(found("HAUPTSTRASSE") == "street");
  BOOST_TEST(found("\xcf\x83\xce\xaf\xcf\x83\xcf\x85\xcf\x86\xce\xbf\xcf\x83")
             == "greek");
  BOOST_TEST(found("abc") == "full");
  BOOST_TEST(found("12") == "full");
  BOOST_TEST(found("\xc3\xa5") == "ring");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(scripts_without_blanks_are_searched,
                              place,
                              places) {
  place on;
  on.kept
    ->add("press",
          "ann",
          {note("chinese", "我喜欢喝绿茶", 1),
           note("japanese", "私はPythonを使う", 2),
           note("thai", "ฉันชอบชา", 3),
           note("korean", "서울에서 만나요", 4)})
    .value();
  const auto found = [&](const std::string& query) {
    return ids_of(on.kept->search("press", "ann", query));
  };
  BOOST_TEST(found("绿茶") == "chinese");
  BOOST_TEST(found("茶") == "chinese");
  BOOST_TEST(found("茶绿") == "");
  BOOST_TEST(found("绿色的茶") == "");
  BOOST_TEST(found("python") == "japanese");
  BOOST_TEST(found("使う") == "japanese");
  BOOST_TEST(found("ชอบ") == "thai");
  BOOST_TEST(found("서울") == "korean");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_best_memories_are_first, place, places) {
  place on;
  on.kept
    ->add("press",
          "ann",
          {note("all", "the dog Rex likes the sea", 1),
           note("two", "the dog sleeps", 2),
           note("one", "the sun", 3),
           note("old", "the moon", 0),
           note("none", "rain", 9)})
    .value();
  const auto found = [&](const std::string& query, std::size_t limit = 10) {
    return ids_of(on.kept->search("press", "ann", query, limit));
  };
  BOOST_TEST(found("the dog rex") == "all two one old");
  BOOST_TEST(found("the dog rex", 2) == "all two");
  BOOST_TEST(found("the dog rex", 1) == "all");
  // A rare word counts more than one that most memories have.
  BOOST_TEST(found("moon dog") == "old two all");
  BOOST_TEST(found("rex") == "all");
  BOOST_TEST(found("the the The THE sun") == "one two all old");
  // Of the same time, the one that was added later is first.
  on.kept->add("press", "ann", {note("y", "hail"), note("x", "hail")}).value();
  BOOST_TEST(found("hail") == "x y");
  std::vector<memory_entry> many;
  for (int count = 0; count < 30; ++count)
    many.push_back(note("m" + std::to_string(count), "snow", count));
  on.kept->add("press", "ann", many).value();
  BOOST_TEST(on.kept->search("press", "ann", "snow").value().size()
             == memories_found_max);
  BOOST_TEST(found("snow", 3) == "m29 m28 m27");
  BOOST_TEST(on.kept->search("press", "ann", "snow", SIZE_MAX).value().size()
             == 30U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(long_texts_and_words_are_found, place, places) {
  place on;
  const std::string word(10'000, 'w');
  std::string many;
  for (int count = 0; count < 10'000; ++count)
    many += "w" + std::to_string(count) + " ";
  on.kept
    ->add("press",
          "ann",
          {note("word", word), note("many", many), note("gap", "a\0b"s)})
    .value();
  const auto found = [&](const std::string& query) {
    return ids_of(on.kept->search("press", "ann", query));
  };
  BOOST_TEST(found(word) == "word");
  BOOST_TEST(found("w17") == "many");
  BOOST_TEST(found("w8191") == "many");
  BOOST_TEST(found("w8192") == "");
  BOOST_TEST(found("b") == "gap");
  const auto kept = on.kept->search("press", "ann", "b").value();
  BOOST_TEST((*kept.front().content.parts.front().text() == "a\0b"s));
  BOOST_TEST(found(many) == "many");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_removal_takes_all_of_its_owner, place, places) {
  place on;
  const auto fill = [&] {
    for (const auto& key : {ann_1, ann_2, bob_1, other_app})
      on.kept
        ->add_session(session_of(key, {said_by("user", key.id, "a secret")}))
        .value();
    on.kept->add("press", "ann", {note("n", "a secret", 1)}).value();
  };
  const auto found = [&](const session_key& key) {
    return ids_of(on.kept->search(key.app, key.user, "secret"));
  };
  fill();
  BOOST_TEST(answer_of(on.kept->remove_session({"press", "ann", "s9"}))
             == "no");
  BOOST_TEST(answer_of(on.kept->remove_session({"press", "eve", "s1"}))
             == "no");
  BOOST_TEST(answer_of(on.kept->remove_session(ann_1)) == "yes");
  BOOST_TEST(answer_of(on.kept->remove_session(ann_1)) == "no");
  BOOST_TEST(found(ann_1) == "n s2");
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "s2", "s1")) == "no");
  BOOST_TEST(answer_of(on.kept->remove("press", "ann", "s2", "s2")) == "yes");
  BOOST_TEST(found(ann_1) == "n");
  BOOST_TEST(answer_of(on.kept->remove_user("press", "ann")) == "yes");
  BOOST_TEST(answer_of(on.kept->remove_user("press", "ann")) == "no");
  BOOST_TEST(found(ann_1) == "");
  BOOST_TEST(found(bob_1) == "s1");
  BOOST_TEST(found(other_app) == "s1");
  fill();
  BOOST_TEST(answer_of(on.kept->remove_app("press")) == "yes");
  BOOST_TEST(answer_of(on.kept->remove_app("press")) == "no");
  BOOST_TEST(found(ann_1) == "");
  BOOST_TEST(found(bob_1) == "");
  BOOST_TEST(found(other_app) == "s1");
  fill();
  BOOST_TEST(found(ann_1) == "n s2 s1");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_search_sees_a_session_whole, place, places) {
  place on;
  const auto events_of = [](const std::string& word) {
    std::vector<event_ptr> events;
    for (int count = 0; count < 5; ++count)
      events.push_back(
        said_by("user", word + std::to_string(count), "tea " + word));
    return events;
  };
  on.kept->add_session(session_of(ann_1, events_of("first"))).value();
  std::atomic<bool> is_over = false;
  std::thread writing([&] {
    for (int count = 0; count < 10; ++count)
      for (const auto* word : {"second", "first"})
        on.kept->add_session(session_of(ann_1, events_of(word))).value();
    is_over = true;
  });
  std::string wrong;
  while (!is_over && wrong.empty()) {
    const auto found = ids_of(on.kept->search("press", "ann", "tea"));
    if (found != "first4 first3 first2 first1 first0"
        && found != "second4 second3 second2 second1 second0")
      wrong = found;
  }
  writing.join();
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(concurrent_additions_all_count, place, places) {
  place on;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int count = 0; count < 10; ++count) {
        const auto own = std::to_string(thread) + "/" + std::to_string(count);
        // The same event from all threads, and one of its own.
        const std::vector<event_ptr> events{
          said_by("user", "shared" + std::to_string(count), "tea"),
          said_by("user", own, "tea")};
        if (!on.kept->add_events(ann_1, events))
          ++failures;
      }
    });
  for (auto& each : threads)
    each.join();
  BOOST_TEST(failures == 0);
  BOOST_TEST(on.kept->search("press", "ann", "tea", 100).value().size() == 50U);
}

// -- all kinds agree ----

namespace {

const std::vector<std::string> vocabulary{
  "tea", "coffee", "milk", "sugar", "dog", "cat", "the", "a"};

std::string some_words(random_source& random, std::size_t count_max) {
  std::string words;
  for (auto left = 1 + random.below(count_max); left > 0; --left)
    words += random.pick(vocabulary) + " ";
  return words;
}

std::vector<event_ptr> some_events(random_source& random) {
  std::vector<event_ptr> made;
  for (auto left = random.below(4); left > 0; --left) {
    const auto id = "e" + std::to_string(random.below(8));
    const auto words = some_words(random, 4);
    made.push_back(
      said_by("user", id, words, static_cast<int>(random.below(5))));
  }
  return made;
}

// Makes the call that the seed decides; returns its arguments and its answer.
std::string random_step(memory_service& on, std::uint64_t seed) {
  random_source random(seed);
  const std::string app = random.one_in(4) ? "shop" : "press";
  const std::string user = random.one_in(3) ? "bob" : "ann";
  const auto key
    = session_key(app, user, "s" + std::to_string(random.below(3)));
  const auto id = "e" + std::to_string(random.below(8));
  const auto shown = "seed " + std::to_string(seed) + ": ";
  switch (random.below(12)) {
  case 0:
    return shown
           + number_of(on.add_session(session_of(key, some_events(random))));
  case 1:
  case 2:
    return shown + number_of(on.add_events(key, some_events(random)));
  case 3:
    return shown
           + number_of(on.add(app, user, {note(id, some_words(random, 4))}));
  case 4:
    return shown + answer_of(on.remove(app, user, key.id, id));
  case 5:
    return shown + answer_of(on.remove(app, user, "", id));
  case 6:
    if (!random.one_in(4))
      return shown + answer_of(on.remove_session(key));
    return shown
           + answer_of(random.one_in(4) ? on.remove_app(app)
                                        : on.remove_user(app, user));
  default: {
    const auto query = some_words(random, 3);
    auto found = shown + query + ":";
    for (const auto& each :
         on.search(app, user, query, 1 + random.below(12)).value())
      found += " " + each.session + "/" + to_text(to_json(each));
    return found;
  }
  }
}

} // namespace

BOOST_DATA_TEST_CASE(all_kinds_answer_alike, data::xrange(1, 4), seed) {
  const memories_in_memory one;
  const memories_in_sqlite other;
  const memories_in_postgres third;
  random_source random(static_cast<std::uint64_t>(seed));
  for (int step = 0; step < 200; ++step) {
    const auto same = random.below(1'000'000'000);
    const auto expected = random_step(*one.kept, same);
    BOOST_TEST_REQUIRE(random_step(*other.kept, same) == expected);
    BOOST_TEST_REQUIRE(random_step(*third.kept, same) == expected);
  }
}

BOOST_AUTO_TEST_SUITE_END()

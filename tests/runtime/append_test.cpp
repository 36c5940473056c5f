// The public append calls: fields filled in, refusals without effect, retries,
// revisions, and overload.

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "runtime_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <limits>
#include <set>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(append, *boost::unit_test::timeout(120))

namespace {

// A session with a value in every scope; `stays` checks that they are
// unchanged.
class untouched : public runtime_fixture {
public:
  untouched() { append(key, {{"k", 1}}); }

  std::string try_to(event said, append_options options = {}) {
    return code_of(
      sessions().append_event(key, std::move(said), options).get());
  }

  void stays() {
    const auto now = fetch(key);
    BOOST_TEST(now.revision() == 1U);
    BOOST_TEST(now.events().size() == 1U);
    BOOST_TEST(now.state().all()
               == json({{"k", 1},
                        {"text", "t"},
                        {"user:text", "t"},
                        {"user:n", 5},
                        {"app:text", "t"},
                        {"app:n", 7}}));
  }

  const session_key key = open("s",
                               {{"text", "t"},
                                {"user:text", "t"},
                                {"user:n", 5},
                                {"app:text", "t"},
                                {"app:n", 7}});
};

json compare(const std::string& key, json expected, json desired) {
  return {{"op", "cas"},
          {"key", key},
          {"expected", std::move(expected)},
          {"value", std::move(desired)}};
}

} // namespace

// -- the stored event ----

BOOST_AUTO_TEST_CASE(missing_fields_are_filled_in_and_the_callers_stay) {
  const auto time = std::make_shared<simulated_environment>(1);
  runtime_fixture on(runtime_fixture::in(time));
  const auto key = on.open();
  const auto bare = on.sessions().append_event(key, change({{"k", 1}})).value();
  BOOST_TEST(bare->id.size() == 36U);
  BOOST_TEST(bare->invocation_id.starts_with("e-"));
  BOOST_TEST((bare->timestamp == time->now()));

  auto said = change({{"k", 2}}, "my id");
  said.invocation_id = "mine";
  said.timestamp = timestamp(std::chrono::seconds(5));
  said.content = user_text("hello");
  said.actions.escalate = true;
  said.extra = json{{"errorCode", "x"}};
  const auto kept = on.sessions().append_event(key, said).value();
  BOOST_TEST((*kept == said));
  BOOST_TEST((*on.events(key)[1] == said));
}

BOOST_AUTO_TEST_CASE(a_shared_event_is_stored_as_it_is_or_copied) {
  runtime_fixture on;
  const auto key = on.open();
  const event_ptr bare
    = std::make_shared<event>(change({{"temp:x", 1}, {"k", 1}}));
  const auto before = *bare;
  const auto stored = on.sessions().append_event(key, bare).value();
  BOOST_TEST((*bare == before));
  BOOST_TEST((stored != bare));
  BOOST_TEST(stored->actions.state_delta.to_json() == json({{"k", 1}}));
  // The stored event is complete, so another session stores it unchanged.
  const auto other = on.open("other");
  BOOST_TEST((on.sessions().append_event(other, stored).value() == stored));
  BOOST_TEST(code_of(on.sessions().append_event(key, event_ptr()).get())
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_partial_event_is_passed_back_and_changes_nothing) {
  untouched on;
  auto piece = change({{"k", 2}, {"app:n", 8}});
  piece.partial = true;
  BOOST_TEST((*on.sessions().append_event(on.key, piece).value() == piece));
  on.stays();
}

BOOST_AUTO_TEST_CASE(temp_keys_are_never_stored) {
  runtime_fixture on;
  const auto key = on.open();
  const auto stored
    = on.sessions()
        .append_event(key,
                      operate({operation_on("temp:n", "add", 1)},
                              {{"temp:x", 1}, {"k", 1}, {"user:k", 2}}))
        .value();
  BOOST_TEST(stored->actions.state_delta.to_json()
             == json({{"k", 1}, {"user:k", 2}}));
  BOOST_TEST(to_text(to_json(*stored)).find("temp:") == std::string::npos);
  BOOST_TEST(on.state(key) == json({{"k", 1}, {"user:k", 2}}));
}

BOOST_AUTO_TEST_CASE(null_erases_in_every_scope) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}, {"user:k", 1}, {"app:k", 1}});
  on.append(key, {{"k", nullptr}, {"user:k", nullptr}, {"app:k", nullptr}});
  BOOST_TEST(on.state(key) == json::object());
  BOOST_TEST(replay(on.events(key), {{"k", 1}}) == json::object());
}

BOOST_AUTO_TEST_CASE(
  typed_operations_work_in_every_scope_and_are_stored_resolved) {
  runtime_fixture on;
  const auto key = on.open();
  for (const std::string prefix : {"", "user:", "app:"}) {
    const auto all
      = operate({operation_on(prefix + "n", "add", 2),
                 operation_on(prefix + "n", "add", 3),
                 operation_on(prefix + "list", "append", "x"),
                 operation_on(prefix + "set", "union", {1, 2}),
                 operation_on(prefix + "low", "min", 4),
                 operation_on(prefix + "high", "max", 4),
                 operation_on(prefix + "object", "merge", {{"a", 1}}),
                 compare(prefix + "new", nullptr, "made"),
                 operation_on(prefix + "n", "max", 1)});
    BOOST_TEST(on.append(key, all) == "ok");
    BOOST_TEST(on.append(key,
                         operate({compare(prefix + "new", "made", "again"),
                                  operation_on(prefix + "set", "union", {2, 3}),
                                  {{"op", "erase"}, {"key", prefix + "low"}}}))
               == "ok");
  }
  const auto now = on.fetch(key);
  for (const std::string prefix : {"", "user:", "app:"}) {
    BOOST_TEST(now.state().get<int>(prefix + "n") == 5);
    BOOST_TEST(now.state().get(prefix + "list") == json({"x"}));
    BOOST_TEST(now.state().get(prefix + "set") == json({1, 2, 3}));
    BOOST_TEST(now.state().get(prefix + "object") == json({{"a", 1}}));
    BOOST_TEST(now.state().get(prefix + "new") == json("again"));
    BOOST_TEST(!now.state().contains(prefix + "low"));
  }
  for (const auto& said : now.events())
    BOOST_TEST(!said->actions.state_delta.has_typed());
  BOOST_TEST(replay(now.events()) == now.state().all());
}

BOOST_AUTO_TEST_CASE(last_update_time_is_the_latest_event_time) {
  const auto time = std::make_shared<simulated_environment>(3);
  runtime_fixture on(runtime_fixture::in(time));
  const auto key = on.open();
  const auto created = time->now();
  BOOST_TEST((on.fetch(key).last_update_time() == created));
  auto said = change({{"k", 1}});
  said.timestamp = created - std::chrono::seconds(9);
  on.append(key, said);
  BOOST_TEST((on.fetch(key).last_update_time() == created));
  said.timestamp = created + std::chrono::seconds(9);
  on.append(key, said);
  on.append(key, {{"k", 2}});
  BOOST_TEST((on.fetch(key).last_update_time() == said.timestamp));
}

// -- refusals ----

BOOST_AUTO_TEST_CASE(a_refused_operation_leaves_nothing_in_any_scope) {
  untouched on;
  const json wide{{"k", 2}, {"user:n", 6}, {"app:n", 8}};
  for (const std::string prefix : {"", "user:", "app:"}) {
    const auto text = prefix + "text";
    for (const std::string op : {"add", "min", "max"})
      BOOST_TEST(on.try_to(operate({operation_on(text, op, 1)}, wide))
                 == "type_error");
    BOOST_TEST(on.try_to(operate({operation_on(text, "append", 1)}, wide))
               == "type_error");
    BOOST_TEST(on.try_to(operate({operation_on(text, "union", {1})}, wide))
               == "type_error");
    BOOST_TEST(
      on.try_to(operate({operation_on(text, "merge", {{"a", 1}})}, wide))
      == "type_error");
    BOOST_TEST(on.try_to(operate({compare(text, "other", 1)}, wide))
               == "conflict");
    BOOST_TEST(on.try_to(operate({compare(text, nullptr, 1)}, wide))
               == "conflict");
    BOOST_TEST(
      on.try_to(operate(
        {operation_on(
           prefix + "m", "add", std::numeric_limits<std::int64_t>::max()),
         operation_on(
           prefix + "m", "add", std::numeric_limits<std::int64_t>::max()),
         operation_on(
           prefix + "m", "add", std::numeric_limits<std::int64_t>::max())},
        wide))
      == "type_error");
  }
  on.stays();
}

BOOST_AUTO_TEST_CASE(a_refusal_does_not_touch_its_neighbours) {
  runtime_fixture on;
  const auto key = on.open("s", {{"app:text", "t"}, {"user:text", "t"}});
  answers<event_ptr> all;
  for (int count = 0; count < 300; ++count) {
    const bool bad = count % 3 == 2;
    const std::string wide = count % 2 == 0 ? "app:text" : "user:text";
    on.sessions()
      .append_event(key,
                    operate({operation_on("n", "add", 1),
                             operation_on("user:n", "add", 1),
                             operation_on("app:n", "add", 1),
                             operation_on(bad ? wide : "m", "add", 1)}))
      .then(all.next());
  }
  int good = 0;
  for (const auto& each : all.await()) {
    good += each.has_value();
    // An event computed after a refused one does not include it.
    if (each)
      BOOST_TEST((*each)->actions.state_delta.to_json()["app:n"] == json(good));
  }
  BOOST_TEST(good == 200);
  const auto now = on.fetch(key);
  for (const std::string counter : {"n", "user:n", "app:n", "m"})
    BOOST_TEST(now.state().get<int>(counter) == 200);
  BOOST_TEST(now.revision() == 200U);
}

BOOST_AUTO_TEST_CASE(too_large_is_refused_by_value_and_by_event) {
  untouched on;
  BOOST_TEST(
    on.try_to(change({{"app:n", 8}, {"big", std::string(270'000, 'x')}}))
    == "too_large");
  auto many = json::object();
  for (int count = 0; count < 6; ++count)
    many["k" + std::to_string(count)] = std::string(200'000, 'x');
  BOOST_TEST(on.try_to(change(many)) == "too_large");
  auto said = change({{"app:n", 8}});
  said.content = user_text(std::string(1'100'000, 'x'));
  BOOST_TEST(on.try_to(said) == "too_large");
  on.stays();
}

BOOST_DATA_TEST_CASE(
  a_value_that_grows_too_large_is_refused_by_its_owner,
  data::make({std::string(), std::string("user:"), std::string("app:")}),
  prefix) {
  runtime_options small;
  small.limits.value_bytes_max = 1'000;
  runtime_fixture on(small);
  const auto key = on.open();
  std::string code = "ok";
  int count = 0;
  for (; code == "ok" && count < 50; ++count)
    code = on.append(
      key,
      operate({operation_on(prefix + "list", "append", std::string(100, 'x')),
               operation_on("n", "add", 1),
               operation_on("user:n", "add", 1),
               operation_on("app:n", "add", 1)}));
  BOOST_TEST(code == "too_large");
  const auto now = on.fetch(key);
  BOOST_TEST(now.state().get(prefix + "list").size()
             == static_cast<std::size_t>(count - 1));
  for (const std::string counter : {"n", "user:n", "app:n"})
    BOOST_TEST(now.state().get<int>(counter) == count - 1);
}

BOOST_AUTO_TEST_CASE(malformed_events_are_refused) {
  untouched on;
  auto said = change({{"k", 2}});
  said.content = user_text("\xff");
  BOOST_TEST(on.try_to(said) == "invalid_argument");
  said = change({{"k", std::numeric_limits<double>::quiet_NaN()}});
  BOOST_TEST(on.try_to(said) == "invalid_argument");
  for (const auto& id : {std::string(513, 'x'), std::string("a\0b", 3)})
    BOOST_TEST(on.try_to(change({{"k", 2}}, id)) == "invalid_argument");
  on.stays();
}

BOOST_AUTO_TEST_CASE(a_bad_event_for_no_session_is_a_bad_event) {
  // Checked with and without a store, since a store would be searched for the
  // session.
  for (const auto& kept :
       {location<store>("memory:"), location<store>(make_memory_store())}) {
    runtime_fixture on({.store = kept});
    const session_key nowhere{"press", "ann", "none"};
    auto said = change({{"k", 2}});
    BOOST_TEST(on.append(nowhere, said) == "not_found");
    said.content = user_text("\xff");
    BOOST_TEST(on.append(nowhere, said) == "invalid_argument");
    said.content = user_text(std::string(1'100'000, 'x'));
    BOOST_TEST(on.append(nowhere, said) == "too_large");
  }
}

// -- revisions ----

BOOST_AUTO_TEST_CASE(an_expected_revision_that_moved_on_is_a_conflict) {
  untouched on;
  for (const std::uint64_t wrong : {0U, 2U, 99U})
    BOOST_TEST(on.try_to(change({{"k", 2}, {"app:n", 8}, {"user:n", 6}}),
                         {.expected_revision = wrong})
               == "conflict");
  on.stays();
  BOOST_TEST(on.try_to(change({{"k", 2}}), {.expected_revision = 1}) == "ok");
  BOOST_TEST(on.fetch(on.key).revision() == 2U);
}

BOOST_AUTO_TEST_CASE(of_racing_appends_on_one_revision_one_wins) {
  runtime_fixture on;
  const auto key = on.open();
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::vector<std::string> codes(8);
    on_threads(codes.size(), [&](std::size_t index) {
      codes[index] = code_of(
        on.sessions()
          .append_event(
            key,
            operate(
              {operation_on("n", "add", 1),
               operation_on(index % 2 == 0 ? "app:n" : "user:n", "add", 1)}),
            {.expected_revision = round})
          .get());
    });
    BOOST_TEST(std::ranges::count(codes, "ok") == 1);
    BOOST_TEST(std::ranges::count(codes, "conflict") == 7);
  }
  const auto now = on.fetch(key);
  BOOST_TEST(now.state().get<int>("n") == 50);
  BOOST_TEST(
    now.state().get<int>("app:n", 0) + now.state().get<int>("user:n", 0) == 50);
}

// -- retries ----

BOOST_AUTO_TEST_CASE(a_retry_takes_effect_once_and_gives_the_same_event) {
  runtime_fixture on;
  const auto key = on.open();
  auto said = operate({operation_on("n", "add", 1),
                       operation_on("user:n", "add", 1),
                       operation_on("app:n", "add", 1)},
                      {{"k", "v"}});
  said.id = "once";
  const auto first = on.sessions().append_event(key, said).value();
  for (int again = 0; again < 3; ++again) {
    BOOST_TEST((on.sessions().append_event(key, said).value() == first));
    on.append(key, {{"k", again}});
  }
  BOOST_TEST((on.sessions().append_event(key, first).value() == first));
  const auto now = on.fetch(key);
  BOOST_TEST(now.revision() == 4U);
  for (const std::string counter : {"n", "user:n", "app:n"})
    BOOST_TEST(now.state().get<int>(counter) == 1);
}

BOOST_AUTO_TEST_CASE(a_retry_with_a_revision_gives_the_event_and_no_conflict) {
  runtime_fixture on;
  const auto key = on.open();
  const auto said = change({{"k", 1}}, "once");
  const auto first
    = on.sessions().append_event(key, said, {.expected_revision = 0}).value();
  const auto again
    = on.sessions().append_event(key, said, {.expected_revision = 0}).get();
  BOOST_TEST(code_of(again) == "ok");
  BOOST_TEST((again.value() == first));
}

BOOST_AUTO_TEST_CASE(one_id_with_other_content_is_a_conflict) {
  runtime_fixture on;
  const auto key = on.open();
  auto said = change({{"a", 1}, {"b", 2}}, "once");
  said.content = user_text("hello");
  BOOST_TEST(on.append(key, said) == "ok");

  auto other = said;
  other.content = user_text("bye");
  BOOST_TEST(on.append(key, other) == "conflict");
  other = said;
  other.author = "somebody";
  BOOST_TEST(on.append(key, other) == "conflict");
  other = said;
  other.actions.state_delta = delta::from_json({{"a", 1}, {"b", 3}}).value();
  BOOST_TEST(on.append(key, other) == "conflict");
  other.actions.state_delta
    = delta::from_json({{"a", 1}, {"b", 2}, {"c", 3}}).value();
  BOOST_TEST(on.append(key, other) == "conflict");
  BOOST_TEST(on.fetch(key).revision() == 1U);
  BOOST_TEST(on.state(key) == json({{"a", 1}, {"b", 2}}));
}

BOOST_AUTO_TEST_CASE(one_id_with_less_in_it_is_a_conflict) {
  runtime_fixture on;
  const auto key = on.open();
  BOOST_TEST(on.append(key, change({{"a", 1}, {"app:b", 2}}, "once")) == "ok");
  BOOST_TEST(on.append(key, change({{"a", 1}}, "once")) == "conflict");
  BOOST_TEST(on.append(key, change(json::object(), "once")) == "conflict");
}

BOOST_AUTO_TEST_CASE(one_id_with_other_actions_is_a_conflict) {
  runtime_fixture on;
  const auto key = on.open();
  auto said = change({{"a", 1}}, "once");
  BOOST_TEST(on.append(key, said) == "ok");
  said.actions.escalate = true;
  BOOST_TEST(on.append(key, said) == "conflict");
}

BOOST_DATA_TEST_CASE(
  racing_retries_take_effect_once,
  data::make({std::string("n"), std::string("user:n"), std::string("app:n")}),
  counter) {
  runtime_fixture on;
  const auto key = on.open();
  constexpr int rounds = 100;
  for (int round = 0; round < rounds; ++round) {
    auto said = operate({operation_on(counter, "add", 1)});
    said.id = "event " + std::to_string(round);
    std::vector<event_ptr> stored(6);
    on_threads(stored.size(), [&](std::size_t index) {
      stored[index] = on.sessions().append_event(key, said).value();
    });
    for (const auto& each : stored)
      BOOST_TEST((each == stored.front()));
  }
  BOOST_TEST(on.fetch(key).revision() == rounds);
  BOOST_TEST(on.state(key) == json({{counter, rounds}}));
}

BOOST_AUTO_TEST_CASE(a_retry_under_way_joins_the_original) {
  runtime_fixture on;
  const auto key = on.open("s", {{"app:text", "t"}});
  answers<event_ptr> all;
  for (int count = 0; count < 200; ++count) {
    // Every second event is refused by the app, and so is its retry.
    auto said = operate(
      {operation_on("n", "add", 1),
       operation_on(count % 2 == 0 ? "app:n" : "app:text", "add", 1)});
    said.id = "event " + std::to_string(count);
    on.sessions().append_event(key, said).then(all.next());
    on.sessions().append_event(key, said).then(all.next());
  }
  const auto answered = all.await();
  for (std::size_t index = 0; index < answered.size(); index += 2) {
    const std::string expected = index % 4 == 0 ? "ok" : "type_error";
    BOOST_TEST(code_of(answered[index]) == expected);
    BOOST_TEST(code_of(answered[index + 1]) == expected);
    if (answered[index] && answered[index + 1])
      BOOST_TEST((*answered[index] == *answered[index + 1]));
  }
  BOOST_TEST(on.fetch(key).state().get<int>("n") == 100);
  BOOST_TEST(on.fetch(key).state().get<int>("app:n") == 100);
}

BOOST_AUTO_TEST_CASE(an_event_behind_a_create_is_remembered_too) {
  runtime_fixture on;
  for (int round = 0; round < 400; ++round) {
    const session_key key{"press", "ann", "s" + std::to_string(round)};
    answers<session> created;
    std::vector<std::string> codes;
    std::thread writer([&] {
      const auto said = change({{"k", 1}}, "once");
      std::string code;
      do
        code = on.append(key, said);
      while (code == "not_found");
      codes = {code, on.append(key, said)};
    });
    on.sessions().create(key, {{"app:k", 1}}).then(created.next());
    writer.join();
    BOOST_TEST(code_of(created.await().front()) == "ok");
    BOOST_TEST(codes == std::vector<std::string>(2, "ok"),
               boost::test_tools::per_element());
    BOOST_TEST(on.fetch(key).revision() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(the_first_event_of_a_session_expects_revision_0) {
  runtime_fixture on;
  for (int round = 0; round < 400; ++round) {
    const session_key key{"press", "ann", "s" + std::to_string(round)};
    answers<session> created;
    std::string code;
    std::thread writer([&] {
      do
        code = code_of(
          on.sessions()
            .append_event(key, change({{"k", 1}}), {.expected_revision = 0})
            .get());
      while (code == "not_found");
    });
    on.sessions().create(key, {{"app:k", 1}}).then(created.next());
    writer.join();
    BOOST_TEST(code_of(created.await().front()) == "ok");
    BOOST_TEST(code == "ok");
  }
}

BOOST_AUTO_TEST_CASE(the_id_of_a_refused_event_is_free_again) {
  runtime_fixture on;
  const auto key = on.open("s", {{"app:text", "t"}});
  auto refused = operate({operation_on("app:text", "add", 1)});
  refused.id = "id";
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(on.append(key, refused) == "type_error");
  BOOST_TEST(on.append(key, change({{"k", 1}}, "id")) == "ok");
  BOOST_TEST(on.append(key, change({{"k", 2}}, "id")) == "conflict");
}

BOOST_AUTO_TEST_CASE(an_id_takes_effect_once_however_many_came_behind_it) {
  runtime_options few;
  few.remembered_ids = 10;
  runtime_fixture on(few);
  const auto key = on.open();
  for (int count = 0; count < 30; ++count)
    on.append(key, change({{"k", count}}, "event " + std::to_string(count)));
  for (int count = 0; count < 30; ++count)
    on.append(key, change({{"k", count}}, "event " + std::to_string(count)));
  BOOST_TEST(on.append(key, change({{"k", 7}}, "event 0")) == "conflict");
  BOOST_TEST(on.fetch(key).revision() == 30U);
  BOOST_TEST(on.fetch(key).state().all() == json({{"k", 29}}));
}

// -- overload ----

BOOST_AUTO_TEST_CASE(overload_is_answered_and_what_was_accepted_counts) {
  runtime_options few;
  few.session_appends_max = 8;
  few.threads = 1;
  runtime_fixture on(few);
  const auto key = on.open();
  answers<event_ptr> all;
  {
    const standstill held(on, key);
    for (int count = 0; count < 20; ++count)
      on.sessions()
        .append_event(key, operate({operation_on("app:n", "add", 1)}))
        .then(all.next());
  }
  std::size_t stored = 0;
  std::size_t busy = 0;
  for (const auto& each : all.await())
    (each ? stored : busy) += each || each.error().code() == errc::busy;
  BOOST_TEST(stored == 8U);
  BOOST_TEST(busy == 12U);
  BOOST_TEST(on.fetch(key).revision() == stored);
  BOOST_TEST(on.fetch(key).state().get<std::size_t>("app:n") == stored);
  BOOST_TEST(on.append(key, {{"k", 1}}) == "ok"); // The places are free again.
}

BOOST_AUTO_TEST_CASE(bytes_and_the_whole_runtime_have_limits_too) {
  for (const int which : {0, 1, 2}) {
    runtime_options few;
    if (which == 0)
      few.session_bytes_max = 5'000;
    if (which == 1)
      few.runtime_bytes_max = 5'000;
    if (which == 2)
      few.runtime_appends_max = 8;
    few.threads = 1;
    runtime_fixture on(few);
    std::vector<session_key> keys;
    for (int count = 0; count < 4; ++count)
      keys.push_back(on.open("s" + std::to_string(count)));
    answers<event_ptr> all;
    {
      const standstill held(on, keys[0]);
      for (std::size_t count = 0; count < 40; ++count)
        on.sessions()
          .append_event(keys[count % keys.size()],
                        change({{"app:k", std::string(1'000, 'x')}}))
          .then(all.next());
    }
    std::size_t stored = 0;
    for (const auto& each : all.await()) {
      stored += each.has_value();
      BOOST_TEST((each || each.error().code() == errc::busy));
    }
    // Four events of 1,000 bytes fit into the limit, per session or in all.
    BOOST_TEST(stored == (which == 0 ? 16U : which == 1 ? 4U : 8U));
    std::size_t logged = 0;
    for (const auto& key : keys)
      logged += on.events(key).size();
    BOOST_TEST(logged == stored);
    // Places are free again when the job of the completions has ended.
    { const standstill behind(on, keys[0]); }
    // An event larger than the limit is accepted when nothing else is under
    // way; otherwise it could never be stored.
    BOOST_TEST(on.append(keys[0], {{"k", std::string(9'000, 'x')}}) == "ok");
  }
}

BOOST_AUTO_TEST_SUITE_END()

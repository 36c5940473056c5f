// Undoing the typed operations of a session on `app:` keys, beside another
// session.

#include "troupe/core/support/compensation.hpp"

#include "troupe/core/rewind.hpp"
#include "troupe/core/support/applied_operations.hpp"
#include "troupe/core/support/scope_state.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(compensation)

namespace {

// The key `app:k`, and the session whose operations are undone.
class shared_key {
public:
  /// The session does the operations, one event for each.
  void own(std::initializer_list<const char*> operations) {
    for (const auto* const each : operations)
      own(std::string("[") + each + "]");
  }

  /// One event with a list of operations; null erases.
  void own(const std::string& operations) { keep(event_of(operations)); }

  void set(const json& data) {
    event said;
    said.actions.state_delta = delta::from_json({{"app:k", data}}).value();
    keep(std::move(said));
  }

  /// Another session does it.
  void other(const std::string& operation) {
    judge(event_of("[" + operation + "]")).value();
  }

  /// Returns the code of the refusal, or `ok`.
  std::string back_to(std::uint64_t place) {
    const auto behind = log_.slice().from(place + 1);
    const wide_changes changes(behind, place, shared);
    event change;
    take_back(change, log_.size() - place);
    if (auto judged
        = changes.undo(readonly_state({{}, {}, app_.keys(), {}}), change);
        !judged) {
      why = judged.error().message();
      return code_of(judged);
    }
    kept = changes.kept_keys();
    undone = changes.undone_keys(change);
    sent = change.actions.state_delta.typed_to_json();
    noted = to_json(change.actions.applied);
    auto applied = change.actions.applied;
    auto stored = judge(std::move(change)).value();
    stored.actions.applied = std::move(applied);
    log_.push_back(std::make_shared<const event>(std::move(stored)));
    return "ok";
  }

  /// A rewind that undoes nothing.
  void take_back_only(std::uint64_t place) {
    event change;
    take_back(change, log_.size() - place);
    log_.push_back(std::make_shared<const event>(std::move(change)));
  }

  std::string value() const {
    const auto* const held = app_.keys().find("k");
    return held != nullptr ? to_text(held->data()) : "absent";
  }

  /// The records of the newest event.
  json records() const {
    return to_json(log_[log_.size() - 1]->actions.applied);
  }

  std::uint64_t shared = 0;
  std::vector<std::string> kept;
  std::vector<std::string> undone;
  json sent;
  json noted;
  std::string why;

private:
  static event event_of(const std::string& operations) {
    event said;
    auto list = parse_json(operations).value();
    for (auto& each : list)
      each["key"] = "app:k";
    record_operations(said.actions.state_delta, list).value();
    return said;
  }

  void keep(event said) {
    log_.push_back(
      std::make_shared<const event>(judge(std::move(said)).value()));
  }

  result<event> judge(event said) {
    auto& actions = said.actions;
    const auto given = actions.state_delta;
    std::vector<resolution> resolved;
    if (auto judged = app_.judge(given.share(scope::app), resolved, false, {});
        !judged)
      return judged.error();
    app_.install();
    actions.applied = applied_by(given, resolved);
    actions.state_delta.resolve(resolved);
    return said;
  }

  scope_state app_;
  event_log log_;
};

const std::vector<std::string> only_key = {"app:k"};

struct record_row {
  const char* start;
  const char* operations;
  const char* records;

  friend std::ostream& operator<<(std::ostream& out, const record_row& row) {
    return out << row.start << ' ' << row.operations;
  }
};

const std::vector<record_row> record_rows = {
  {"1", R"([{"op":"add","value":2}])", R"([{"op":"add","value":2}])"},
  {"1",
   R"([{"op":"add","value":2},{"op":"add","value":3}])",
   R"([{"op":"add","value":2},{"op":"add","value":3}])"},
  {"[1]",
   R"([{"op":"append","value":null}])",
   R"([{"op":"append","value":[null]}])"},
  {R"(["a"])",
   R"([{"op":"union","value":["a","b","b"]}])",
   R"([{"op":"union","value":["b"]}])"},
  {R"(["a"])",
   R"([{"op":"union","value":["a"]}])",
   R"([{"op":"union","value":[]}])"},
  {"5", R"([{"op":"max","value":9}])", R"([{"former":5,"op":"max"}])"},
  {"null", R"([{"op":"min","value":9}])", R"([{"op":"min"}])"},
  {"5",
   R"([{"op":"max","value":7},{"op":"max","value":9}])",
   R"([{"former":5,"op":"max"}])"},
  {R"({"a":1,"b":2,"c":3})",
   R"([{"op":"merge","value":{"a":1,"b":null,"c":4,"d":5,"e":null}}])",
   R"([{"former":{"b":2,"c":3},"op":"merge","value":["d"]}])"},
  {R"({"a":1})",
   R"([{"op":"merge","value":{"a":2}},{"op":"merge","value":{"a":1,"b":1}}])",
   R"([{"op":"merge","value":["b"]}])"},
  {"null",
   R"([{"op":"merge","value":{"a":1}}])",
   R"([{"op":"merge","value":["a"]}])"},
  {R"("x")",
   R"([{"op":"cas","value":"y","expected":"x"}])",
   R"([{"former":"x","op":"cas"}])"},
  {"1",
   R"([{"op":"add","value":2},{"op":"max","value":9}])",
   R"([{"former":1,"op":"cas"}])"},
  {"1", R"([{"op":"erase"},{"op":"add","value":9}])", "[]"},
};

} // namespace

BOOST_DATA_TEST_CASE(records_hold_the_data_that_undoing_needs,
                     data::make(record_rows),
                     row) {
  shared_key key;
  key.set(parse_json(row.start).value());
  key.own(std::string(row.operations));
  auto records = key.records();
  for (auto& each : records)
    BOOST_TEST(std::exchange(each["key"], nullptr) == "app:k");
  for (auto& each : records)
    each.erase("key");
  BOOST_TEST(to_text(records) == row.records);
  // They read back.
  BOOST_TEST(to_json(applied_from_json(key.records()).value())
             == key.records());
}

BOOST_AUTO_TEST_CASE(other_records_are_refused) {
  for (const auto* const shown :
       {R"([1])",
        R"([{"op":"add"}])",
        R"([{"key":"app:k"}])",
        R"([{"op":"add","key":"app:k"}])",
        R"([{"op":"add","key":"app:k","value":"1"}])",
        R"([{"op":"set","key":"app:k","value":1}])",
        R"([{"op":"append","key":"app:k","value":1}])",
        R"([{"op":"merge","key":"app:k","value":[1]}])",
        R"([{"op":"merge","key":"app:k","former":[]}])",
        R"([{"op":"add","key":"k","value":1}])",
        R"([{"op":"add","key":"app:","value":1}])"})
    BOOST_TEST(code_of(applied_from_json(parse_json(shown).value()))
               == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_sum_loses_the_numbers_of_the_session) {
  shared_key key;
  key.own({R"({"op":"add","value":2})", R"({"op":"add","value":3})"});
  key.other(R"({"op":"add","value":100})");
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "102");
  BOOST_TEST(key.undone == only_key, boost::test_tools::per_element());
  BOOST_TEST(key.kept.empty());
  // It is no comparison, so other sessions do not get in its way.
  BOOST_TEST(key.sent[0]["op"] == "add");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "100");
  // Forward again, to each earlier place.
  BOOST_TEST(key.back_to(2) == "ok");
  BOOST_TEST(key.value() == "105");
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "102");
  BOOST_TEST(key.back_to(4) == "ok");
  BOOST_TEST(key.value() == "100");
}

BOOST_AUTO_TEST_CASE(large_sums_are_exact_or_refused) {
  shared_key key;
  const auto add = [](const std::string& number) {
    return R"([{"op":"add","value":)" + number + "}]";
  };
  key.own(add("9007199254740993"));
  key.own(add("9223372036854775807"));
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "9007199254740993");
  key.set(json(0));
  key.own(add("18446744073709551615"));
  BOOST_TEST(key.back_to(4) == "conflict");
  BOOST_TEST(key.why.find("'app:k'") != std::string::npos);
  BOOST_TEST(key.why.find("overflows") != std::string::npos);
  key.set(json(0));
  key.own(add("0.5"));
  BOOST_TEST(key.back_to(6) == "ok");
  BOOST_TEST(key.value() == "0.0");
}

BOOST_AUTO_TEST_CASE(a_list_loses_the_elements_of_the_session) {
  shared_key key;
  key.other(R"({"op":"append","value":"x"})");
  key.own({R"({"op":"append","value":"x"})", R"({"op":"append","value":"y"})"});
  key.other(R"({"op":"append","value":"z"})");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == R"(["x","z"])");
  BOOST_TEST(to_text(key.noted)
             == R"([{"former":["x","y"],"key":"app:k","op":"append"}])");
  BOOST_TEST(key.back_to(2) == "ok"); // Forward.
  BOOST_TEST(key.value() == R"(["x","z","x","y"])");
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == R"(["x","z","x"])");
}

// An element that another session has added before stays.
BOOST_AUTO_TEST_CASE(a_set_loses_only_the_elements_that_it_got) {
  shared_key key;
  key.other(R"({"op":"union","value":["a"]})");
  key.own({R"({"op":"union","value":["a","b"]})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == R"(["a"])");
  key.other(R"({"op":"union","value":["b"]})");
  BOOST_TEST(key.back_to(1) == "ok"); // Forward: `b` is there already.
  BOOST_TEST(key.value() == R"(["a","b"])");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == R"(["a","b"])");
}

// The element is there once, though the session has added it twice.
BOOST_AUTO_TEST_CASE(a_set_loses_an_element_once) {
  shared_key key;
  key.own({R"({"op":"union","value":["a"]})"});
  key.other(R"({"op":"cas","value":["b"],"expected":["a"]})");
  key.own({R"({"op":"union","value":["a"]})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == R"(["b"])");
}

BOOST_AUTO_TEST_CASE(a_missing_element_is_a_refusal) {
  shared_key key;
  key.own({R"({"op":"append","value":"x"})"});
  key.other(R"({"op":"cas","value":[],"expected":["x"]})");
  BOOST_TEST(key.back_to(0) == "conflict");
  BOOST_TEST(key.value() == "[]");
  key.other(R"({"op":"erase"})");
  BOOST_TEST(key.back_to(0) == "conflict");
  key.other(R"({"op":"add","value":1})");
  BOOST_TEST(key.back_to(0) == "conflict");
}

BOOST_AUTO_TEST_CASE(a_sum_of_a_changed_type_is_a_refusal) {
  shared_key key;
  key.own({R"({"op":"add","value":1})"});
  key.other(R"({"op":"erase"})");
  BOOST_TEST(key.back_to(0) == "conflict");
  key.other(R"({"op":"append","value":1})");
  BOOST_TEST(key.back_to(0) == "conflict");
}

BOOST_AUTO_TEST_CASE(limits_go_back_unless_others_went_further) {
  shared_key key;
  key.other(R"({"op":"max","value":3})");
  key.own({R"({"op":"max","value":5})",
           R"({"op":"max","value":4})",
           R"({"op":"max","value":9})"});
  BOOST_TEST(key.back_to(2) == "ok");
  BOOST_TEST(key.value() == "5");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "3");
  BOOST_TEST(key.back_to(3) == "ok"); // Forward.
  BOOST_TEST(key.value() == "9");
  key.other(R"({"op":"max","value":20})");
  key.own({R"({"op":"max","value":30})"});
  key.other(R"({"op":"max","value":40})");
  BOOST_TEST(key.back_to(6) == "ok"); // The operation has no effect any more.
  BOOST_TEST(key.value() == "40");
  BOOST_TEST(key.undone == only_key, boost::test_tools::per_element());
  BOOST_TEST(key.sent.empty());
}

BOOST_AUTO_TEST_CASE(a_limit_of_an_absent_key_is_erased) {
  shared_key key;
  key.own({R"({"op":"min","value":3})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "absent");
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "3");
  key.other(R"({"op":"cas","value":8,"expected":3})");
  BOOST_TEST(key.back_to(0) == "conflict");
}

BOOST_AUTO_TEST_CASE(an_object_gets_its_former_fields) {
  shared_key key;
  key.other(R"({"op":"merge","value":{"a":1,"b":1}})");
  key.own({R"({"op":"merge","value":{"a":2,"b":null,"c":2}})"});
  key.other(R"({"op":"merge","value":{"d":1}})");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == R"({"a":1,"b":1,"d":1})");
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == R"({"a":2,"c":2,"d":1})");
  key.other(R"({"op":"merge","value":{"c":7}})");
  BOOST_TEST(key.back_to(0) == "conflict");
}

BOOST_AUTO_TEST_CASE(a_compared_value_goes_back_if_it_is_still_there) {
  shared_key key;
  key.own({R"({"op":"cas","value":"a","expected":null})",
           R"({"op":"cas","value":"b","expected":"a"})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "absent");
  BOOST_TEST(key.back_to(2) == "ok");
  BOOST_TEST(key.value() == R"("b")");
  key.other(R"({"op":"cas","value":"c","expected":"b"})");
  BOOST_TEST(key.back_to(0) == "conflict");
  BOOST_TEST(key.why.find("changed since") != std::string::npos);
}

// A former rewind has undone these operations, so a change by another session
// since does not matter.
BOOST_AUTO_TEST_CASE(undone_operations_are_not_undone_again) {
  shared_key key;
  key.own({R"({"op":"max","value":9})"});
  BOOST_TEST(key.back_to(0) == "ok");
  key.other(R"({"op":"max","value":7})");
  key.own({R"({"op":"max","value":8})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "7");
}

BOOST_AUTO_TEST_CASE(operations_of_several_kinds_are_undone_in_order) {
  shared_key key;
  key.own({R"({"op":"add","value":2})",
           R"({"op":"max","value":10})",
           R"({"op":"add","value":5})"});
  BOOST_TEST(key.value() == "15");
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "0");
  BOOST_TEST(key.sent[0]["op"] == "cas");
  BOOST_TEST(key.back_to(2) == "ok");
  BOOST_TEST(key.value() == "10");
}

BOOST_AUTO_TEST_CASE(a_set_value_is_kept_and_hides_older_operations) {
  shared_key key;
  key.own({R"({"op":"add","value":2})"});
  key.set(json(50));
  key.own({R"({"op":"add","value":3})"});
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "50");
  BOOST_TEST(key.kept == only_key, boost::test_tools::per_element());
  BOOST_TEST(key.undone.empty());
  // The set is taken back, but its value is still there.
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "50");
  BOOST_TEST(key.kept.empty());
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "50");
}

// The rewind took back the event that has set the value, but left the value.
BOOST_AUTO_TEST_CASE(a_value_that_a_dead_event_has_set_is_kept) {
  shared_key key;
  key.own({R"({"op":"add","value":2})"});
  key.set(json(50));
  key.take_back_only(1);
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "50");
  BOOST_TEST(key.kept == only_key, boost::test_tools::per_element());
  BOOST_TEST(key.undone.empty());
}

// A rewind without compensation has left the operations of dead events.
BOOST_AUTO_TEST_CASE(operations_of_dead_events_are_undone) {
  shared_key key;
  key.own({R"({"op":"add","value":2})", R"({"op":"add","value":3})"});
  key.take_back_only(1);
  BOOST_TEST(key.back_to(1) == "ok");
  BOOST_TEST(key.value() == "2");
  BOOST_TEST(key.undone == only_key, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(events_of_a_parent_are_not_undone) {
  shared_key key;
  key.own({R"({"op":"add","value":2})", R"({"op":"add","value":3})"});
  key.shared = 1;
  BOOST_TEST(key.back_to(0) == "ok");
  BOOST_TEST(key.value() == "2");
  BOOST_TEST(key.kept == only_key, boost::test_tools::per_element());
  BOOST_TEST(key.undone.empty());
}

BOOST_AUTO_TEST_SUITE_END()

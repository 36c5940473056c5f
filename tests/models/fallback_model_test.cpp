// Lists of models: which failures ask the next one, and which do not.

#include "troupe/models/fallback_model.hpp"

#include "../outcome.hpp"
#include "asked_model.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(fallback_models)

namespace {

// A model that does as it is told, and counts its calls.
class told_model : public model {
public:
  using behaviour
    = std::function<void(const model_request&, const model_reply&)>;

  told_model(std::string name, behaviour does)
    : name_(std::move(name)),
      does_(std::move(does)) {}

  std::string name() const override { return name_; }

  void generate(model_request request, model_reply reply) override {
    ++calls;
    does_(request, reply);
  }

  std::size_t calls = 0;

private:
  const std::string name_;
  const behaviour does_;
};

std::shared_ptr<told_model> answering(std::string name, json extra = {}) {
  return std::make_shared<told_model>(
    std::move(name), [extra](const model_request&, const model_reply& reply) {
      model_response answer(content("model", {part("hoo")}));
      if (!extra.is_null())
        answer.extra = extra;
      reply(std::move(answer));
    });
}

std::shared_ptr<told_model>
failing(std::string name, errc code, bool is_outage = false) {
  return std::make_shared<told_model>(
    name,
    [name, code, is_outage](const model_request& asked,
                            const model_reply& reply) {
      if (is_outage && asked.outage)
        asked.outage->set();
      reply(error(code, "no luck with " + name));
    });
}

struct list {
  explicit list(std::vector<model_ptr> models)
    : asked(std::move(models),
            {.rest = 30s, .on_fallback = [this](const model_fallback& one) {
               told += one.agent + ": " + one.failed + " -> " + one.next + " ("
                       + one.reason.message() + ")|";
             }}) {}

  result<model_response> ask() {
    result<model_response> last = error(errc::internal, "no answer");
    model_request request;
    request.agent = "a";
    request.environment = environment;
    request.outage = outage;
    request.stop = stop.get_token();
    int ends = 0;
    asked.generate(std::move(request), [&](result<model_response> answer) {
      if (answer && answer->partial) {
        pieces += answer->content.text() + "|";
        return;
      }
      ++ends;
      last = std::move(answer);
    });
    BOOST_TEST(ends == 1);
    return last;
  }

  std::string version() {
    const auto answer = ask();
    return answer ? answer->extra.data().value("modelVersion", "none")
                  : reason_of(answer);
  }

  std::shared_ptr<simulated_environment> environment
    = std::make_shared<simulated_environment>(1);
  std::shared_ptr<outage_note> outage = std::make_shared<outage_note>();
  std::stop_source stop;
  std::string told;
  std::string pieces;
  fallback_model asked;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_next_model_answers_for_one_that_is_down) {
  const auto second = answering("second");
  list models(
    {failing("first", errc::model_failed, true), second, answering("third")});
  BOOST_TEST(models.asked.name() == "first or second or third");
  BOOST_TEST(models.version() == "second");
  BOOST_TEST(models.told == "a: first -> second (no luck with first)|");
  BOOST_TEST(second->calls == 1U);
}

BOOST_AUTO_TEST_CASE(an_overload_and_a_time_out_are_outages) {
  for (const auto code : {errc::busy, errc::deadline_exceeded}) {
    list models({failing("first", code), answering("second")});
    BOOST_TEST(models.version() == "second");
  }
}

BOOST_AUTO_TEST_CASE(other_failures_end_the_call) {
  for (const auto code : {errc::model_failed,
                          errc::invalid_argument,
                          errc::cancelled,
                          errc::store_failed}) {
    const auto second = answering("second");
    list models({failing("first", code), second});
    const auto answer = models.ask();
    BOOST_TEST(code_of(answer) == to_string(code));
    BOOST_TEST(reason_of(answer) == "no luck with first");
    BOOST_TEST(second->calls == 0U);
    BOOST_TEST(!models.outage->is_set());
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_asks_no_further_model) {
  const auto second = answering("second");
  list models({failing("first", errc::model_failed, true), second});
  models.stop.request_stop();
  BOOST_TEST(code_of(models.ask()) == "model_failed");
  BOOST_TEST(second->calls == 0U);
}

BOOST_AUTO_TEST_CASE(a_blocked_answer_is_an_answer) {
  const auto second = answering("second");
  list models(
    {answering("first", {{"errorCode", "SAFETY"}, {"modelVersion", "f-1"}}),
     second});
  BOOST_TEST(models.version() == "f-1");
  BOOST_TEST(second->calls == 0U);
}

BOOST_AUTO_TEST_CASE(a_model_that_has_begun_to_answer_is_not_replaced) {
  const auto second = answering("second");
  const auto first = std::make_shared<told_model>(
    "first", [](const model_request& asked, const model_reply& reply) {
      model_response piece(content("model", {part("ho")}));
      piece.partial = true;
      reply(std::move(piece));
      asked.outage->set();
      reply(error(errc::model_failed, "broke off"));
    });
  list models({first, second});
  BOOST_TEST(reason_of(models.ask()) == "broke off");
  BOOST_TEST(models.pieces == "ho|");
  BOOST_TEST(second->calls == 0U);
}

BOOST_AUTO_TEST_CASE(an_error_names_all_models) {
  list models({failing("first", errc::busy),
               failing("second", errc::deadline_exceeded),
               failing("third", errc::model_failed, true)});
  const auto answer = models.ask();
  BOOST_TEST(code_of(answer) == "model_failed");
  BOOST_TEST(reason_of(answer)
             == "3 of 3 models failed: first: no luck with first; second: no "
                "luck with second; third: no luck with third");
  // A list around this one asks its next model.
  BOOST_TEST(models.outage->is_set());
}

BOOST_AUTO_TEST_CASE(a_refusal_after_an_outage_names_both) {
  const auto third = answering("third");
  list models({failing("first", errc::busy),
               failing("second", errc::invalid_argument),
               third});
  const auto answer = models.ask();
  BOOST_TEST(code_of(answer) == "invalid_argument");
  BOOST_TEST(reason_of(answer)
             == "2 of 3 models failed: first: no luck with first; second: no "
                "luck with second");
  BOOST_TEST(third->calls == 0U);
}

BOOST_AUTO_TEST_CASE(a_model_that_throws_ends_the_call) {
  const auto thrower = std::make_shared<told_model>(
    "second", [](const model_request&, const model_reply&) {
      throw std::runtime_error("oops");
    });
  list models({failing("first", errc::busy), thrower});
  const auto answer = models.ask();
  BOOST_TEST(code_of(answer) == "model_failed");
  BOOST_TEST(reason_of(answer)
             == "2 of 2 models failed: first: no luck with first; second: "
                "oops");
}

BOOST_AUTO_TEST_CASE(a_model_that_was_down_rests_for_a_while) {
  const auto first = failing("first", errc::busy);
  const auto second = answering("second");
  list models({first, second});
  BOOST_TEST(models.version() == "second");
  models.environment->advance(29s);
  BOOST_TEST(models.version() == "second");
  BOOST_TEST(first->calls == 1U);
  models.environment->advance(2s);
  BOOST_TEST(models.version() == "second");
  BOOST_TEST(first->calls == 2U);
}

BOOST_AUTO_TEST_CASE(models_that_all_rest_are_asked) {
  const auto first = failing("first", errc::busy);
  const auto second = failing("second", errc::busy);
  list models({first, second});
  for (std::size_t calls = 1; calls < 4; ++calls) {
    BOOST_TEST(code_of(models.ask()) == "model_failed");
    BOOST_TEST(first->calls == calls);
    BOOST_TEST(second->calls == calls);
  }
}

BOOST_AUTO_TEST_CASE(a_list_needs_models) {
  BOOST_CHECK_THROW(fallback_model({}), error);
  BOOST_CHECK_THROW(fallback_model({nullptr}), error);
}

// -- over HTTP ----

namespace {

std::string of_list(asking& first) {
  first.options.retries.attempts_max = 2;
  list models(
    {std::make_shared<http_model>(first.options), answering("second")});
  std::promise<result<model_response>> ended;
  models.asked.generate(first.request(), [&](result<model_response> answer) {
    if (!answer || !answer->partial)
      ended.set_value(std::move(answer));
  });
  const auto answer = ended.get_future().get();
  return answer ? answer->extra.data().value("modelVersion", "none")
                : reason_of(answer);
}

} // namespace

BOOST_DATA_TEST_CASE(statuses_that_may_pass_ask_the_next_model_after_retries,
                     data::make({408, 429, 500, 503, 529}),
                     status) {
  asking first(in_turn({once(whole(refusal_of("later"), status))}));
  BOOST_TEST(of_list(first) == "second");
  BOOST_TEST(first.server.requests().size() == 2U);
}

BOOST_DATA_TEST_CASE(refusals_ask_no_other_model,
                     data::make({400, 401, 403, 404, 422}),
                     status) {
  asking first(in_turn({once(whole(refusal_of("no_such"), status))}));
  BOOST_TEST(of_list(first).starts_with("OpenAI model 'm': status"));
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_there_asks_the_next_model) {
  asking first(in_turn({once(whole(answer_of("hoo")))}));
  first.options.base_url = "http://127.0.0.1:1/v1";
  BOOST_TEST(of_list(first) == "second");
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_asks_the_next_model) {
  asking first(in_turn({{hold()}}));
  first.options.timeouts.first_byte = 20ms;
  BOOST_TEST(of_list(first) == "second");
}

BOOST_AUTO_TEST_CASE(a_stream_that_breaks_off_after_a_piece_is_an_error) {
  asking first(
    in_turn({{say(stream_head), say(chunk(event_of("ho"))), reset()}}), true);
  const auto outcome = of_list(first);
  BOOST_TEST(outcome.starts_with("OpenAI model 'm'"), outcome);
}

BOOST_AUTO_TEST_SUITE_END()

// Files of prices, and the cost of events.

#include "troupe/load/prices.hpp"

#include "troupe/load/timeline.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::load {

BOOST_AUTO_TEST_SUITE(prices)

namespace {

using troupe::testing::code_of;
using troupe::testing::reason_of;

struct price_folder {
  std::filesystem::path write(const std::string& text,
                              const std::string& name = "prices.yaml") const {
    std::ofstream(folder.path() / name) << text;
    return folder.path() / name;
  }

  price_list list(const std::string& text) const {
    return price_list::read(write(text)).value();
  }

  // The reason of the failure, without the folder.
  std::string refusal(const std::string& text,
                      const std::string& name = "prices.yaml") const {
    const auto read = price_list::read(write(text, name));
    BOOST_TEST(code_of(read) == "invalid_argument");
    auto reason = reason_of(read);
    const auto shown = folder.path().string() + "/";
    if (reason.starts_with(shown))
      reason.erase(0, shown.size());
    return reason;
  }

  troupe::testing::temporary_folder folder;
};

event answer_with(const std::string& model, json usage) {
  event said(content("model", {part("hi")}));
  said.author = "a";
  said.invocation_id = "e-1";
  auto fields = json::object();
  if (!model.empty())
    fields["modelVersion"] = model;
  fields["usageMetadata"] = std::move(usage);
  said.extra = std::move(fields);
  return said;
}

const std::string three = "models:\n"
                          "  m: {input: 1, output: 10}\n"
                          "  m-*: {input: 2, output: 20}\n"
                          "  'm-large*': {input: 4, cached_input: 1, output: "
                          "40, thoughts: 100}\n";

std::string cost_text(const price_list& list, std::vector<event> said) {
  cost_sum sum;
  for (const auto& each : said)
    list.add(each, sum);
  return to_text(sum, list.currency());
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_model_has_the_price_of_its_longest_beginning,
                        price_folder) {
  const auto list = this->list(three);
  BOOST_TEST(list.currency() == "USD");
  BOOST_TEST(list.find("m")->input == 1);
  BOOST_TEST(list.find("m-small")->input == 2);
  BOOST_TEST(list.find("m-large-001")->input == 4);
  BOOST_TEST(list.find("n") == nullptr);
  BOOST_TEST(list.find("") == nullptr);
  const auto own = this->list("currency: EUR\nmodels: {x: {input: 0, output: "
                              "0}, '*': {input: 7, output: 7}}\n");
  BOOST_TEST(own.currency() == "EUR");
  BOOST_TEST(own.find("anything")->input == 7);
  BOOST_TEST(own.find("x")->input == 0);
}

BOOST_FIXTURE_TEST_CASE(no_token_is_paid_twice, price_folder) {
  const auto list = this->list(three);
  const auto cost = [&list](json usage) {
    cost_sum sum;
    list.add(answer_with("m-large", std::move(usage)), sum);
    BOOST_TEST(sum.unpriced.empty());
    return sum.amount * 1e6;
  };
  const auto near = boost::test_tools::tolerance(1e-9);
  BOOST_TEST(cost({{"promptTokenCount", 100},
                   {"candidatesTokenCount", 10},
                   {"totalTokenCount", 110}})
               == 100 * 4 + 10 * 40,
             near);
  // Cached tokens are a part of the prompt.
  BOOST_TEST(cost({{"promptTokenCount", 100},
                   {"cachedContentTokenCount", 60},
                   {"candidatesTokenCount", 10},
                   {"totalTokenCount", 110}})
               == 40 * 4 + 60 * 1 + 10 * 40,
             near);
  // Gemini: thoughts are apart from the candidates.
  BOOST_TEST(cost({{"promptTokenCount", 100},
                   {"candidatesTokenCount", 10},
                   {"thoughtsTokenCount", 5},
                   {"toolUsePromptTokenCount", 3},
                   {"totalTokenCount", 118}})
               == 103 * 4 + 10 * 40 + 5 * 100,
             near);
  // Other vendors: thoughts are among the candidates.
  BOOST_TEST(cost({{"promptTokenCount", 100},
                   {"candidatesTokenCount", 10},
                   {"thoughtsTokenCount", 6},
                   {"totalTokenCount", 110}})
               == 100 * 4 + 4 * 40 + 6 * 100,
             near);
}

BOOST_FIXTURE_TEST_CASE(cached_tokens_and_thoughts_have_usual_prices,
                        price_folder) {
  const auto list = this->list(three);
  cost_sum sum;
  list.add(answer_with("m",
                       {{"promptTokenCount", 100},
                        {"cachedContentTokenCount", 60},
                        {"candidatesTokenCount", 10},
                        {"thoughtsTokenCount", 6},
                        {"totalTokenCount", 110}}),
           sum);
  BOOST_TEST(sum.amount * 1e6 == 200, boost::test_tools::tolerance(1e-9));
}

BOOST_FIXTURE_TEST_CASE(a_model_without_a_price_is_named, price_folder) {
  const auto list = this->list(three);
  const json usage{{"promptTokenCount", 900000},
                   {"candidatesTokenCount", 0},
                   {"totalTokenCount", 900000}};
  BOOST_TEST(cost_text(list, {}) == "0.00 USD");
  BOOST_TEST(cost_text(list, {answer_with("m", usage)}) == "0.900000 USD");
  BOOST_TEST(cost_text(list, {answer_with("n", usage)})
             == "unknown: no price for n (900000 tokens)");
  BOOST_TEST(cost_text(list,
                       {answer_with("m-x", usage),
                        answer_with("n", usage),
                        answer_with("", usage)})
             == "1.80 USD, and 1800000 tokens of models without a price: a "
                "model without a name, n");
  cost_sum sum;
  list.add(answer_with("n", usage), sum);
  BOOST_TEST(to_json(sum, "USD").at("amount").is_null());
  BOOST_TEST(to_json(sum, "USD").at("unpriced").at("n") == 900000);
  // A price for every name is none for an answer without one.
  const auto all = this->list("models: {'*': {input: 1, output: 1}}\n");
  BOOST_TEST(cost_text(all, {answer_with("", usage)}).starts_with("unknown"));
}

BOOST_FIXTURE_TEST_CASE(only_whole_answers_with_tokens_cost, price_folder) {
  const auto list = this->list("models: {m: {input: 1, output: 1}}\n");
  auto piece = answer_with("m", {{"promptTokenCount", 1000000}});
  piece.partial = true;
  auto spoilt = answer_with("m", 7);
  auto strange = answer_with("m", {{"promptTokenCount", "many"}});
  auto negative = answer_with("m", {{"promptTokenCount", -5}});
  auto plain = event(user_text("hi"));
  BOOST_TEST(cost_text(list, {piece, spoilt, strange, negative, plain})
             == "0.00 USD");
  // The total alone counts as input.
  BOOST_TEST(cost_text(list, {answer_with("m", {{"totalTokenCount", 1000000}})})
             == "1.00 USD");
}

BOOST_FIXTURE_TEST_CASE(bad_files_name_the_line, price_folder) {
  BOOST_TEST(code_of(price_list::read(folder.path() / "none.yaml"))
             == "not_found");
  BOOST_TEST(refusal("").starts_with("prices.yaml:1: expected prices"));
  BOOST_TEST(refusal("- a\n").starts_with("prices.yaml:1: a file of prices "
                                          "must be a mapping"));
  BOOST_TEST(refusal("models: {}\n").starts_with("prices.yaml:1: expected"));
  BOOST_TEST(refusal("currency: USD\n").find("expected 'models'")
             != std::string::npos);
  BOOST_TEST(refusal("currency: USD\nmodel: {}\n")
             == "prices.yaml:2: a file of prices has no field 'model'; it has "
                "currency, models");
  BOOST_TEST(refusal("models:\n  m: 5\n")
               .starts_with("prices.yaml:2: model 'm' must be a mapping"));
  BOOST_TEST(refusal("models:\n  m: {input: 5}\n")
             == "prices.yaml:2: model 'm' needs a field 'output'");
  BOOST_TEST(refusal("models:\n  m:\n    input: 1\n    output: cheap\n")
               .starts_with("prices.yaml:4: 'output' must be a price"));
  BOOST_TEST(refusal("models:\n  m: {input: -1, output: 1}\n")
               .starts_with("prices.yaml:2: 'input' must be a price"));
  BOOST_TEST(refusal("models:\n  m: {input: 1, output: 1, per: 1000}\n")
               .starts_with("prices.yaml:2: model 'm' has no field 'per'"));
  BOOST_TEST(refusal("models:\n  'a*b': {input: 1, output: 1}\n")
               .starts_with("prices.yaml:2: model 'a*b': a '*' may only"));
  BOOST_TEST(refusal("models: {m: {input: 1, output: 1}}", "p.json")
               .starts_with("p.json:1: "));
}

BOOST_FIXTURE_TEST_CASE(a_timeline_has_a_cost_with_prices, price_folder) {
  const auto list = this->list(three);
  event_log log;
  for (const auto* model : {"m", "n"})
    log.push_back(std::make_shared<const event>(
      answer_with(model,
                  {{"promptTokenCount", 100000},
                   {"candidatesTokenCount", 0},
                   {"totalTokenCount", 100000}})));
  const auto without = timelines_of(log.slice()).at(0);
  BOOST_TEST(!without.cost.has_value());
  BOOST_TEST(to_json(without).at("cost").is_null());
  const auto line = timelines_of(log.slice(), &list).at(0);
  BOOST_TEST(to_json(line).at("cost").at("amount") == 0.1);
  BOOST_TEST(
    to_text(line, 80).find("200000 tokens, cost 0.100000 USD, and 100000 "
                           "tokens of models without a price: n\n")
    != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::load

// The sample of README.md that opens a model over HTTP, and those of
// docs/models.md.

#include "troupe/agents/agent.hpp"
#include "troupe/models/fallback_model.hpp"
#include "troupe/models/open_model.hpp"
#include "troupe/models/scripted_model.hpp"

#include "page_fixture.hpp"

#include <chrono>
#include <memory>
#include <vector>

BOOST_AUTO_TEST_SUITE(models_page)

BOOST_AUTO_TEST_CASE(a_model_is_opened_in_three_lines) {
  troupe::model_source source{.name = "openai:qwen2.5"};
  source.base_url = "http://localhost:11434/v1"; // Ollama; needs no key.
  const auto model = troupe::open_model(source).value();

  BOOST_TEST(model->name() == "openai:qwen2.5");
  BOOST_TEST(troupe::testing::code_of(troupe::open_model({.name = "qwen2.5"}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_list_of_models_is_a_model) {
  const auto first
    = std::make_shared<troupe::scripted_model>(troupe::script(), "first");
  const auto second
    = std::make_shared<troupe::scripted_model>(troupe::script(), "second");
  const troupe::model_ptr model = std::make_shared<troupe::fallback_model>(
    std::vector<troupe::model_ptr>{first, second},
    troupe::fallback_options{.rest = std::chrono::minutes(1)});
  BOOST_TEST(model->name() == "first or second");
}

BOOST_AUTO_TEST_CASE(a_vendor_runs_tools_of_an_agent) {
  const troupe::model_ptr model
    = std::make_shared<troupe::scripted_model>(troupe::script());
  troupe::llm_options options;
  options.name = "searcher";
  options.model = model;
  options.vendor_tools = {troupe::vendor_tool("google_search")};
  const auto searcher = troupe::llm(options);
  BOOST_TEST(searcher.name() == "searcher");
}

BOOST_AUTO_TEST_SUITE_END()

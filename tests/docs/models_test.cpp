// The sample of README.md that opens a model over HTTP.

#include "troupe/models/open_model.hpp"

#include "page_fixture.hpp"

BOOST_AUTO_TEST_SUITE(models_page)

BOOST_AUTO_TEST_CASE(a_model_is_opened_in_three_lines) {
  troupe::model_source source{.name = "openai:qwen2.5"};
  source.base_url = "http://localhost:11434/v1"; // Ollama; needs no key.
  const auto model = troupe::open_model(source).value();

  BOOST_TEST(model->name() == "openai:qwen2.5");
  BOOST_TEST(troupe::testing::code_of(troupe::open_model({.name = "qwen2.5"}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()

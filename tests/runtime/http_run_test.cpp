// A pipeline with models over HTTP, the same in every wire format: a tool call,
// its answer, and the final state.

#include "troupe/models/formats/http_model.hpp"

#include "../models/http_server.hpp"
#include "agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(http_runs)

namespace {

struct vendor {
  std::string name;
  wire_format_ptr (*format)();
  std::string call; ///< An answer that calls `look`.
  std::string text; ///< An answer with the text "hoo".
};

std::ostream& operator<<(std::ostream& out, const vendor& shown) {
  return out << shown.name;
}

const std::vector<vendor> vendors{
  {"openai",
   openai_format,
   R"({"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls",)"
   R"( "message": {"role": "assistant", "content": null, "tool_calls": [)"
   R"({"id": "c1", "type": "function", "function": {"name": "look",)"
   R"( "arguments": "{\"at\": \"owls\"}"}}]}}]})",
   R"({"model": "m", "choices": [{"index": 0, "finish_reason": "stop",)"
   R"( "message": {"role": "assistant", "content": "hoo"}}]})"},
  {"gemini",
   gemini_format,
   R"({"candidates": [{"finishReason": "STOP", "content": {"role": "model",)"
   R"( "parts": [{"functionCall": {"name": "look", "args": {"at": "owls"}}}]}}]})",
   R"({"candidates": [{"finishReason": "STOP", "content": {"role": "model",)"
   R"( "parts": [{"text": "hoo"}]}}]})"},
  {"anthropic",
   anthropic_format,
   R"({"type": "message", "role": "assistant", "model": "m",)"
   R"( "stop_reason": "tool_use", "content": [{"type": "tool_use",)"
   R"( "id": "c1", "name": "look", "input": {"at": "owls"}}],)"
   R"( "usage": {"input_tokens": 1, "output_tokens": 1}})",
   R"({"type": "message", "role": "assistant", "model": "m",)"
   R"( "stop_reason": "end_turn", "content": [{"type": "text", "text": "hoo"}],)"
   R"( "usage": {"input_tokens": 1, "output_tokens": 1}})"},
};

} // namespace

BOOST_DATA_TEST_CASE(a_pipeline_runs_in_every_format,
                     data::make(vendors),
                     which) {
  const http_server server([&which](const served_request& asked) {
    // A request with the tool's result is answered with text.
    const bool has_looked = asked.body.find("42 owls") != std::string::npos;
    return server_script{say(whole(has_looked ? which.text : which.call))};
  });
  http_model_options options;
  options.name = which.name;
  options.format = which.format();
  options.model = "m";
  options.base_url = server.url("/v1");
  options.key = [] { return std::string("s3cret"); };
  options.client = std::make_shared<http_client>();
  const auto model = std::make_shared<http_model>(std::move(options));
  std::atomic<int> looked = 0;
  const auto look
    = tool_of("look", [&looked](const json& args, tool_context& context) {
        looked += args.at("at") == "owls" ? 1 : 100;
        context.state().add("looks", 1);
        return json("42 owls");
      });
  agent_fixture on;
  const auto told
    = on.perform(sequential("both",
                            {llm({.name = "writer",
                                  .model = model,
                                  .instruction = "Count owls.",
                                  .tools = {look},
                                  .output_key = "draft"}),
                             llm({.name = "editor",
                                  .model = model,
                                  .instruction = "Improve {draft}.",
                                  .tools = {look}})}));
  BOOST_TEST(told == "writer= writer= writer=hoo editor=hoo | ok");
  BOOST_TEST(looked == 1);
  BOOST_TEST(on.state_now() == json({{"draft", "hoo"}, {"looks", 1}}));
  for (const auto& said : on.events(on.key))
    BOOST_TEST(to_json(*said).dump().find("s3cret") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

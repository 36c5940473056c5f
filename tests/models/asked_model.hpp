// A model over HTTP that asks a scripted server, and the answers of that
// server, in the format of OpenAI.

#pragma once

#include "troupe/models/formats/http_model.hpp"

#include "../outcome.hpp"
#include "http_server.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The key of the model.
inline const std::string secret = "s3cret-k3y";

/// A whole answer in the format of OpenAI.
inline std::string answer_of(const std::string& words) {
  return R"({"id": "1", "object": "chat.completion", "model": "m", "choices": )"
         R"([{"index": 0, "finish_reason": "stop", "message": {"role": )"
         R"("assistant", "content": ")"
         + words
         + R"("}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, )"
           R"("total_tokens": 3}})";
}

/// The body of a refusal, with its code.
inline std::string refusal_of(const std::string& code) {
  return R"({"error": {"message": "please wait", "type": "t", "code": ")" + code
         + R"("}})";
}

/// One piece of a streamed answer.
inline std::string event_of(const std::string& words) {
  return R"(data: {"id": "1", "object": "chat.completion.chunk", "model": "m", )"
         R"("choices": [{"index": 0, "delta": {"content": ")"
         + words + "\"}}]}\n\n";
}

/// The end of a streamed answer.
inline const std::string last_event
  = R"(data: {"id": "1", "object": "chat.completion.chunk", "model": "m", )"
    R"("choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})"
    "\n\ndata: [DONE]\n\n";

/// The head of a response whose body is a stream in chunks.
inline const std::string stream_head
  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

/// Answers each request by the next script of a list; the last one repeats.
inline http_server::answerer in_turn(std::vector<server_script> scripts) {
  auto next = std::make_shared<std::size_t>(0);
  return [scripts = std::move(scripts), next](const served_request&) {
    const auto index = std::min(*next, scripts.size() - 1);
    ++*next;
    return scripts[index];
  };
}

/// Sends `bytes` and keeps the connection open.
inline server_script once(std::string bytes) {
  return {say(std::move(bytes))};
}

/// A model asked by a test, and its results.
struct asking {
  explicit asking(http_server::answerer answer, bool streams = false)
    : server(std::move(answer)) {
    options.name = "openai:m";
    options.format = openai_format();
    options.model = "m";
    options.base_url = server.url("/v1");
    options.key = [] { return secret; };
    options.streams = streams;
    options.client = std::make_shared<http_client>();
    options.retries.first = std::chrono::milliseconds(1);
    options.retries.longest = std::chrono::milliseconds(1);
  }

  /// Asks, and waits for the end.
  result<model_response> ask() {
    std::promise<result<model_response>> ended;
    std::atomic<int> ends = 0;
    http_model model(options);
    model.generate(request(), [&](result<model_response> answer) {
      if (answer && answer->partial) {
        pieces += answer->content.text() + "|";
        return;
      }
      if (++ends == 1)
        ended.set_value(std::move(answer));
    });
    auto outcome = ended.get_future().get();
    BOOST_TEST(ends == 1);
    // The key is sent to the server, and shown nowhere else.
    if (!outcome)
      BOOST_TEST(reason_of(outcome).find("s3cret") == std::string::npos,
                 reason_of(outcome));
    for (const auto& each : server.requests()) {
      BOOST_TEST(each.header("authorization") == "Bearer " + secret);
      BOOST_TEST(each.line.find("s3cret") == std::string::npos);
      BOOST_TEST(each.body.find("s3cret") == std::string::npos);
    }
    return outcome;
  }

  std::string text() {
    auto outcome = ask();
    return outcome ? outcome->content.text() : reason_of(outcome);
  }

  model_request request() const {
    model_request wanted;
    wanted.response_schema = schema;
    wanted.agent = "a";
    wanted.contents
      = {std::make_shared<const content>(user_text("What about owls?"))};
    wanted.environment = environment;
    wanted.retries = budget;
    wanted.stop = stop.get_token();
    return wanted;
  }

  http_server server;
  http_model_options options;
  std::shared_ptr<troupe::environment> environment = system_environment();
  std::shared_ptr<retry_budget> budget;
  value schema;
  std::stop_source stop;
  std::string pieces;
};

} // namespace troupe::testing

#include "model_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/models/formats/http_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "measure.hpp"
#include "naive_http.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {

namespace {

using troupe::model_request;
using troupe::model_response;
using troupe::result;

constexpr std::size_t requests = 10'000;

std::shared_ptr<troupe::http_model>
open_model(std::string base_url, std::shared_ptr<troupe::http_client> client) {
  troupe::http_model_options options{.name = "m"};
  options.format = troupe::openai_format();
  options.model = options.name;
  options.base_url = std::move(base_url);
  options.streams = true;
  options.retries.attempts_max = 1;
  options.client = std::move(client);
  return std::make_shared<troupe::http_model>(std::move(options));
}

model_request question() {
  model_request asked;
  asked.agent = "writer";
  asked.system_instruction
    = "You write about owls, briefly, in plain words, for readers who have "
      "never seen one, and you say where you know it from.";
  asked.contents.push_back(
    std::make_shared<troupe::content>(troupe::user_text("Write a paragraph.")));
  return asked;
}

const std::string& text_of(const model_response& said) {
  return *said.content.parts.front().text();
}

double percentile(std::vector<double>& samples, double share) {
  if (samples.empty())
    throw std::runtime_error("no first words came");
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(
    share * static_cast<double>(samples.size() - 1))];
}

// The peak of resident memory since the last `forget_peak`.
std::size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes)
      return kibibytes * 1024;
  throw std::runtime_error("no VmHWM in /proc/self/status");
}

void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// One round of a side of `ask_many`, with its peak of memory.
struct many_result {
  double seconds = 0;
  double cpu_seconds = 0;
  double bytes_each = 0;
  std::size_t failed = 0;
};

template <class Ask>
many_result measured(const answering_process& server, Ask ask) {
  server.wait_until_idle();
  const auto before = resident_bytes();
  forget_peak();
  const stopwatch watch;
  const auto whole = ask();
  many_result made{watch.seconds(), watch.cpu_seconds(), 0, requests - whole};
  made.bytes_each = static_cast<double>(peak_bytes() - before)
                    / static_cast<double>(requests);
  return made;
}

std::size_t ask_by_troupe(const answering_process& server) {
  const auto client = std::make_shared<troupe::http_client>();
  const auto model = open_model(server.late(), client);
  std::atomic<std::size_t> whole = 0;
  std::latch ended(requests);
  for (std::size_t index = 0; index < requests; ++index)
    model->generate(question(), [&](result<model_response> said) {
      if (said && said->partial)
        return;
      whole += said.has_value();
      ended.count_down();
    });
  ended.wait();
  return whole;
}

void print_many(const char* what, const std::vector<many_result>& rounds) {
  const auto middle = [&rounds](double many_result::*field) {
    std::vector<double> values;
    for (const auto& each : rounds)
      values.push_back(each.*field);
    return median(std::move(values));
  };
  // Memory is taken from the first round: later rounds reuse freed memory.
  std::size_t failed = 0;
  for (const auto& each : rounds)
    failed += each.failed;
  fmt::print("{:<34} {:>7.2f} s, {:>6.1f} us CPU and {:>6.1f} KiB each; {} of "
             "{} failed\n",
             what,
             middle(&many_result::seconds),
             middle(&many_result::cpu_seconds) * 1e6
               / static_cast<double>(requests),
             rounds.front().bytes_each / 1024,
             failed,
             requests * rounds.size());
  std::fflush(stdout);
}

} // namespace

void ask_many(const answering_process& server, std::size_t rounds) {
  fmt::print("{} streamed answers at once, the first word after 100 ms, the "
             "last after 130\n",
             requests);
  std::vector<many_result> own;
  std::vector<many_result> by_threads;
  std::vector<many_result> by_one;
  const std::string body = R"({"stream": true})";
  const auto url = server.late() + "/chat/completions";
  for (std::size_t round = 0; round < rounds; ++round) {
    own.push_back(measured(server, [&] { return ask_by_troupe(server); }));
    by_threads.push_back(
      measured(server, [&] { return ask_by_threads(url, body, requests); }));
    by_one.push_back(
      measured(server, [&] { return ask_by_one_handle(url, body, requests); }));
  }
  print_many("troupe, answers read", own);
  print_many("libcurl, a thread each, not read", by_threads);
  print_many("libcurl, one handle, not read", by_one);
}

// -- first words --------------------------------------------------------------

namespace {

// A model that records the age of the first words.
class timed_model : public troupe::model {
public:
  explicit timed_model(troupe::model_ptr inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }

  void generate(model_request request, troupe::model_reply reply) override {
    inner_->generate(std::move(request),
                     [this, reply](result<model_response> said) {
                       if (said && said->partial)
                         note(text_of(*said));
                       reply(std::move(said));
                     });
  }

  std::vector<double> ages() {
    const std::lock_guard guard(mutex_);
    return ages_;
  }

private:
  void note(const std::string& text) {
    const auto age = age_of(text);
    if (age.count() < 0)
      return;
    const std::lock_guard guard(mutex_);
    ages_.push_back(static_cast<double>(age.count()) / 1000);
  }

  troupe::model_ptr inner_;
  std::mutex mutex_;
  std::vector<double> ages_;
};

troupe::task<> converse(troupe::runtime& runtime,
                        const troupe::agent& writer,
                        troupe::session_key key,
                        std::size_t turns,
                        std::vector<double>& ages) {
  for (; turns > 0; --turns) {
    auto run = runtime.run(writer, key, "Write a paragraph.");
    for (;;) {
      auto next = co_await run.next();
      const auto said = std::move(next).value();
      if (!said)
        break;
      if (!said->partial)
        continue;
      const auto age = age_of(*said->content.parts.front().text());
      if (age.count() >= 0)
        ages.push_back(static_cast<double>(age.count()) / 1000);
    }
  }
}

void time_first_words_of(const answering_process& server,
                         std::size_t conversations,
                         std::size_t turns) {
  const auto model = std::make_shared<timed_model>(
    open_model(server.spread(), std::make_shared<troupe::http_client>()));
  const auto writer = troupe::llm(
    {.name = "writer", .model = model, .instruction = "Write about owls."});
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  std::vector<std::vector<double>> ages(conversations);
  std::latch ended(static_cast<std::ptrdiff_t>(conversations));
  for (std::size_t index = 0; index < conversations; ++index) {
    const auto key
      = runtime.sessions()
          .create({"app", fmt::format("user-{}", index), "session"})
          .value()
          .key();
    troupe::start(converse(runtime, writer, key, turns, ages[index]),
                  [&ended](std::exception_ptr failure) {
                    if (failure)
                      std::terminate();
                    ended.count_down();
                  });
  }
  ended.wait();
  std::vector<double> at_run;
  for (const auto& each : ages)
    at_run.insert(at_run.end(), each.begin(), each.end());
  auto at_agent = model->ages();
  fmt::print("{:>5} streams: at the agent p50 {:>6.0f} us, p99 {:>6.0f} us; at "
             "the run's consumer p50 {:>6.0f} us, p99 {:>6.0f} us ({} words)\n",
             conversations,
             percentile(at_agent, 0.5),
             percentile(at_agent, 0.99),
             percentile(at_run, 0.5),
             percentile(at_run, 0.99),
             at_run.size());
  std::fflush(stdout);
}

} // namespace

void time_first_words(const answering_process& server) {
  fmt::print("\nfirst words, from the server's send, of LLM agents that ask "
             "again and again\n");
  time_first_words_of(server, 1, 50);
  time_first_words_of(server, 100, 20);
  time_first_words_of(server, 500, 10);
}

void time_cancels(const answering_process& server) {
  constexpr std::size_t count = 1'000;
  const auto client = std::make_shared<troupe::http_client>();
  const auto model = open_model(server.silent(), client);
  std::vector<double> times;
  const auto asked = [&](std::stop_token stop) {
    auto request = question();
    request.stop = std::move(stop);
    model->generate(std::move(request), [](const result<model_response>&) {});
  };
  std::vector<std::stop_source> others(count);
  for (const auto& each : others)
    asked(each.get_token());
  for (const auto& each : others) {
    const auto before = client->under_way();
    const auto start = clock::now();
    each.request_stop();
    while (client->under_way() == before)
      std::this_thread::yield();
    times.push_back(
      std::chrono::duration<double, std::micro>(clock::now() - start).count());
  }
  fmt::print("\n{} cancels, one after another, until the request is gone: "
             "p50 {:.0f} us, p99 {:.0f} us\n",
             count,
             percentile(times, 0.5),
             percentile(times, 0.99));
}

// -- reading ------------------------------------------------------------------

namespace {

struct stream {
  const char* format_name;
  troupe::wire_format_ptr format;
  std::string text;
};

std::vector<stream> streams() {
  constexpr std::size_t words = 50'000;
  std::vector<stream> made{{"OpenAI", troupe::openai_format(), {}},
                           {"Gemini", troupe::gemini_format(), {}},
                           {"Anthropic", troupe::anthropic_format(), {}}};
  auto& openai = made[0].text;
  auto& gemini = made[1].text;
  auto& anthropic = made[2].text;
  anthropic
    = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{"
      "\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
      "\"m\",\"content\":[],\"usage\":{\"input_tokens\":25,\"output_tokens\":1}"
      "}}\n\nevent: content_block_start\ndata: "
      "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
      "\"type\":\"text\",\"text\":\"\"}}\n\n";
  for (std::size_t index = 0; index < words; ++index) {
    const auto word = fmt::format(" word {} \\u00e9 \\\"", index);
    openai += fmt::format(
      R"(data: {{"id":"chatcmpl-123","object":"chat.completion.chunk",)"
      R"("created":1760000000,"model":"m","system_fingerprint":"fp_44709d6fcb",)"
      R"("choices":[{{"index":0,"delta":{{"content":"{}"}},"logprobs":null,)"
      R"("finish_reason":null}}]}})"
      "\n\n",
      word);
    gemini += fmt::format(
      R"(data: {{"candidates": [{{"content": {{"parts": [{{"text": "{}"}}],)"
      R"("role": "model"}},"index": 0}}],"usageMetadata": {{)"
      R"("promptTokenCount": 11,"candidatesTokenCount": 9,"totalTokenCount": 20}},)"
      R"("modelVersion": "m"}})"
      "\r\n\r\n",
      word);
    anthropic
      += fmt::format("event: content_block_delta\ndata: "
                     R"({{"type":"content_block_delta","index":0,"delta":{{)"
                     R"("type":"text_delta","text":"{}"}}}})"
                     "\n\n",
                     word);
  }
  openai += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
            "\"stop\"}]}\n\ndata: [DONE]\n\n";
  gemini += "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": "
            "\"\"}]},\"finishReason\": \"STOP\"}]}\r\n\r\n";
  anthropic
    += "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
       "\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\""
       ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":"
       "15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  return made;
}

// The usual size of pieces from a socket.
constexpr std::size_t piece_bytes = 16'384;

std::size_t read_by_troupe(const stream& told) {
  troupe::sse_reader events;
  const auto reader = told.format->read_stream({});
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < told.text.size(); at += piece_bytes) {
    std::vector<troupe::sse_event> next;
    events.take(std::string_view(told.text).substr(at, piece_bytes), next)
      .value();
    std::vector<model_response> said;
    for (const auto& event : next)
      reader->take(event, said).value();
    pieces += said.size();
  }
  return pieces + text_of(reader->finish().value()).size();
}

// A simple baseline: splits lines and parses a JSON document for each.
std::size_t read_plainly(const stream& told) {
  constexpr std::string_view field = "data: ";
  std::size_t documents = 0;
  for (std::size_t at = 0; at < told.text.size();) {
    const auto end = told.text.find('\n', at);
    const auto line = std::string_view(told.text).substr(at, end - at);
    at = end + 1;
    if (line.starts_with("data: {"))
      documents
        += nlohmann::json::parse(line.substr(field.size())).is_object() ? 1 : 0;
  }
  return documents;
}

template <class Read>
round_result read_once(const stream& told, Read read) {
  const stopwatch watch;
  if (read(told) == 0)
    throw std::runtime_error("nothing was read");
  return {watch.seconds(), watch.cpu_seconds(), told.text.size(), {}};
}

} // namespace

void read_streams(std::size_t rounds) {
  fmt::print("\nstreamed answers read on one thread, beside nlohmann::json's "
             "parser alone\n");
  for (const auto& told : streams()) {
    const auto sides
      = alternate(rounds,
                  {[&told] { return read_once(told, read_by_troupe); },
                   [&told] { return read_once(told, read_plainly); }});
    fmt::print("{:<10} {:>6.0f} MB/s; beside it {:>6.0f} MB/s\n",
               told.format_name,
               sides[0].rate / 1e6,
               sides[1].rate / 1e6);
    std::fflush(stdout);
  }
}

} // namespace bench

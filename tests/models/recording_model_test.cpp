// The content of a recording, and its playback by a script.

#include "troupe/models/recording_model.hpp"

#include "troupe/models/fallback_model.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(recordings)

namespace {

/// Answers at once with the given answers, in order.
class given_model : public model {
public:
  explicit given_model(std::vector<result<model_response>> answers)
    : answers_(std::move(answers)) {}

  std::string name() const override { return "given"; }

  void generate(model_request, model_reply reply) override {
    auto piece = model_response(text("pi"));
    piece.partial = true;
    reply(std::move(piece));
    reply(answers_.at(next_++));
  }

private:
  std::vector<result<model_response>> answers_;
  std::size_t next_ = 0;
};

result<model_response> ask(model& asked, const std::string& agent) {
  model_request request;
  request.agent = agent;
  result<model_response> last = error(errc::internal, "no answer");
  asked.generate(std::move(request), [&last](result<model_response> answer) {
    if (!answer || !answer->partial)
      last = std::move(answer);
  });
  return last;
}

} // namespace

BOOST_AUTO_TEST_CASE(what_was_recorded_is_played_back_per_agent) {
  const temporary_folder folder;
  const auto file = folder.path() / "answers.jsonl";
  model_response thoughtful(content(
    "model", {part("so"), part(function_call{"1", "look", json::object()})}));
  thoughtful.content.parts[0].thought = true;
  thoughtful.extra = json{{"finishReason", "STOP"},
                          {"usageMetadata", {{"totalTokenCount", 7}}}};
  {
    recording_model kept(
      std::make_shared<given_model>(std::vector<result<model_response>>{
        thoughtful,
        model_response(text("hi")),
        error(errc::model_failed, "overloaded"),
        model_response(text("bye"))}),
      recording::open(file).value());
    BOOST_TEST(kept.name() == "given");
    for (const auto* agent : {"a", "b", "a", "b"})
      static_cast<void>(ask(kept, agent));
  }
  std::ifstream source(file);
  const std::string text{std::istreambuf_iterator<char>(source), {}};
  scripted_model again(read_script(text).value());
  // The agents ask in another order than in the recording.
  BOOST_TEST(ask(again, "b").value().content.text() == "hi");
  const auto first = ask(again, "a").value();
  BOOST_TEST((first.content.parts == thoughtful.content.parts));
  BOOST_TEST((first.extra == thoughtful.extra));
  BOOST_TEST(reason_of(ask(again, "a")) == "overloaded");
  BOOST_TEST(ask(again, "b").value().content.text() == "bye");
}

BOOST_AUTO_TEST_CASE(a_model_that_a_list_replaces_is_not_recorded) {
  const temporary_folder folder;
  const auto file = folder.path() / "answers.jsonl";
  const auto kept = recording::open(file).value();
  const auto recorded = [&kept](result<model_response> answer) {
    return std::make_shared<recording_model>(
      std::make_shared<given_model>(
        std::vector<result<model_response>>{std::move(answer)}),
      kept);
  };

  class silent_model : public model {
  public:
    std::string name() const override { return "silent"; }

    void generate(model_request, model_reply reply) override {
      reply(error(errc::busy, "overloaded"));
    }
  };

  fallback_model both(
    {std::make_shared<recording_model>(std::make_shared<silent_model>(), kept),
     recorded(model_response(text("hi")))});
  BOOST_TEST(ask(both, "a").value().content.text() == "hi");
  std::ifstream source(file);
  const std::string lines{std::istreambuf_iterator<char>(source), {}};
  BOOST_TEST(std::ranges::count(lines, '\n') == 1);
  BOOST_TEST(lines.find("overloaded") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(hidden_characters_are_recorded_as_escapes) {
  const temporary_folder folder;
  const auto file = folder.path() / "answers.jsonl";
  {
    recording_model kept(
      std::make_shared<given_model>(std::vector<result<model_response>>{
        model_response(text("a\u202eb \u00eb")),
        error(errc::model_failed, "\x7f\u200b\xff")}),
      recording::open(file).value());
    static_cast<void>(ask(kept, "a"));
    static_cast<void>(ask(kept, "a"));
  }
  std::ifstream source(file);
  const std::string text{std::istreambuf_iterator<char>(source), {}};
  BOOST_TEST(text.find("\"a\\u202eb \u00eb\"") != std::string::npos, text);
  BOOST_TEST(text.find("\"\\u007f\\u200b\ufffd\"") != std::string::npos, text);
  scripted_model again(read_script(text).value());
  BOOST_TEST(ask(again, "a").value().content.text() == "a\u202eb \u00eb");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_told) {
  BOOST_TEST(code_of(recording::open("/nowhere/at/all")) == "store_failed");
  recording_model full(
    std::make_shared<given_model>(
      std::vector<result<model_response>>{model_response(text("hi"))}),
    recording::open("/dev/full").value());
  BOOST_TEST(code_of(ask(full, "a")) == "store_failed");
}

BOOST_AUTO_TEST_CASE(a_script_may_be_one_object_or_lines) {
  BOOST_TEST(read_script(R"({"a": ["x"]})").value().size() == 1U);
  BOOST_TEST(read_script("{\"agent\": [\"x\"]}").value().size() == 1U);
  const auto lines = read_script("{\"agent\": \"a\", \"text\": \"x\"}\n\n"
                                 "{\"agent\": \"b\", \"text\": \"y\"}\n"
                                 "{\"agent\": \"a\", \"error\": \"z\"}")
                       .value();
  BOOST_TEST(lines.at("a").size() == 2U);
  BOOST_TEST(*lines.at("a")[1].failure == "z");
  const auto failed = read_script("{\"agent\": \"a\", \"text\": \"x\"}\n{\n");
  BOOST_TEST(reason_of(failed).starts_with("line 2: "), reason_of(failed));
  BOOST_TEST(reason_of(read_script("{\"agent\": \"a\"}\n"))
               .starts_with("line 1: agent 'a', reply 1: "));
  BOOST_TEST(code_of(read_script("nothing")) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()

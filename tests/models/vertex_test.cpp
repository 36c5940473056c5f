// Models at Vertex AI: paths, headers, access tokens and the programs that
// print them.

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/open_model.hpp"
#include "troupe/models/vertex/command_output.hpp"
#include "troupe/models/vertex/target.hpp"
#include "troupe/models/vertex/token_command.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include "http_server.hpp"
#include "requests.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(vertex)

namespace {

using held_variables = std::map<std::string, std::string, std::less<>>;

const std::string vertex_answer
  = R"({"candidates": [{"content": {"role": "model", "parts": [{"text": "hoo"}]},
        "finishReason": "STOP"}], "modelVersion": "gemini-x-001"})";

open_model_options with(held_variables held,
                        std::vector<std::string> commands = {}) {
  open_model_options options;
  options.allowed_commands = std::move(commands);
  options.variable = [held = std::move(held)](
                       const std::string& name) -> std::optional<std::string> {
    const auto found = held.find(name);
    return found == held.end() ? std::nullopt : std::optional(found->second);
  };
  return options;
}

std::string reason_for(const model_source& source, held_variables held) {
  return reason_of(open_model(source, with(std::move(held))));
}

result<model_response> ask_vertex(model& asked,
                                  std::shared_ptr<environment> clock
                                  = system_environment()) {
  std::promise<result<model_response>> ended;
  model_request request;
  request.agent = "a";
  request.contents = {std::make_shared<const content>(user_text("Owls?"))};
  request.environment = std::move(clock);
  asked.generate(std::move(request), [&](result<model_response> answer) {
    if (!answer || !answer->partial)
      ended.set_value(std::move(answer));
  });
  return ended.get_future().get();
}

std::string target_of(const vertex_place& place,
                      const std::string& model,
                      held_variables held = {}) {
  const auto found
    = find_target(place, "google", model, [held](std::string_view name) {
        const auto one = held.find(name);
        return one == held.end() ? std::nullopt : std::optional(one->second);
      });
  return found ? found->base_url + "/" + found->resource : reason_of(found);
}

// A program that prints "token1", "token2", …, and counts its starts.
struct token_program {
  token_program() {
    write("n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); "
          "echo $n > count; echo \" token$n\"");
  }

  void write(const std::string& script) const {
    std::ofstream(folder.path() / "run.sh")
      << "cd " << folder.path().string() << "\n"
      << script << "\n";
  }

  std::vector<std::string> command() const {
    return {"/bin/sh", (folder.path() / "run.sh").string()};
  }

  int starts() const {
    int count = 0;
    std::ifstream(folder.path() / "count") >> count;
    return count;
  }

  temporary_folder folder;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_place_of_a_model_is_its_path) {
  const vertex_place there{.project = "p1", .location = "europe-west4"};
  BOOST_TEST(target_of(there, "gemini-x")
             == "https://europe-west4-aiplatform.googleapis.com/projects/p1/"
                "locations/europe-west4/publishers/google/models/gemini-x");
  BOOST_TEST(target_of({}, "gemini-x", {{"GOOGLE_CLOUD_PROJECT", "e.com:p2"}})
             == "https://aiplatform.googleapis.com/projects/e.com:p2/locations/"
                "global/publishers/google/models/gemini-x");
  BOOST_TEST(
    target_of({},
              "publishers/meta/models/m",
              {{"GOOGLE_CLOUD_PROJECT", "p"}, {"GOOGLE_CLOUD_LOCATION", "eu"}})
    == "https://aiplatform.eu.rep.googleapis.com/projects/p/locations/"
       "eu/publishers/meta/models/m");
  BOOST_TEST(target_of(there, "projects/p3/locations/us-east1/endpoints/12")
             == "https://us-east1-aiplatform.googleapis.com/projects/p3/"
                "locations/us-east1/endpoints/12");
  BOOST_TEST(target_of(there,
                       "gemini-x",
                       {{"GOOGLE_VERTEX_BASE_URL", "https://own.example"}})
               .starts_with("https://own.example/projects/p1/"));
}

BOOST_AUTO_TEST_CASE(bad_places_are_named) {
  const auto has = [](const std::string& text, std::string_view words) {
    BOOST_TEST(text.find(words) != std::string::npos, text);
  };
  has(target_of({}, "gemini-x"), "set GOOGLE_CLOUD_PROJECT");
  has(target_of({.project = "a/b"}, "gemini-x"), "no project of Google");
  has(target_of({.project = "p", .location = "evil.example/"}, "gemini-x"),
      "no location of Vertex AI is named 'evil.example/'");
  has(target_of({.project = "p"}, "gemini-x/../y"), "no model is named");
  for (const auto* name : {"projects/p/models/x",
                           "projects/p/locations/l/publishers/google/models/",
                           "projects/p/locations/l",
                           "projects/p/places/l/endpoints/1"})
    has(target_of({}, name), "expected projects/PROJECT/locations/LOCATION");
  has(target_of({}, "projects/p/locations/x.evil/endpoints/1"), "no location");
}

BOOST_DATA_TEST_CASE(requests_go_to_the_place_with_the_token,
                     data::make({false, true}),
                     streams) {
  http_server server({say(whole(vertex_answer))});
  model_source source{
    .name = "gemini-x",
    .vertex = vertex_place{.project = "p1", .location = "europe-west4"}};
  source.streams = streams;
  const auto model
    = open_model(source,
                 with({{"GOOGLE_VERTEX_BASE_URL", server.url("")},
                       {"GOOGLE_OAUTH_ACCESS_TOKEN", "s3cret"},
                       {"GOOGLE_API_KEY", "other"}}))
        .value();
  BOOST_TEST(ask_vertex(*model).value().content.text() == "hoo");
  const auto asked = server.requests();
  BOOST_TEST_REQUIRE(asked.size() == 1U);
  BOOST_TEST(asked[0].line.starts_with(
               "POST /v1/projects/p1/locations/europe-west4/publishers/google/"
               "models/gemini-x:"
               + std::string(streams ? "streamGenerateContent?alt=sse "
                                     : "generateContent ")),
             asked[0].line);
  BOOST_TEST(asked[0].header("authorization") == "Bearer s3cret");
  BOOST_TEST(asked[0].header("x-goog-api-key").empty());
}

BOOST_DATA_TEST_CASE(the_environment_may_name_vertex,
                     data::make({"TRUE", "true", "1"}),
                     value) {
  http_server server({say(whole(vertex_answer))});
  const auto model
    = open_model({.name = "gemini-x"},
                 with({{"GOOGLE_GENAI_USE_VERTEXAI", value},
                       {"GOOGLE_VERTEX_BASE_URL", server.url("")},
                       {"GOOGLE_CLOUD_PROJECT", "p1"},
                       {"GOOGLE_CLOUD_LOCATION", "us-east1"},
                       {"CLOUDSDK_AUTH_ACCESS_TOKEN", "t"}}))
        .value();
  BOOST_TEST(ask_vertex(*model).has_value());
  BOOST_TEST(server.requests().at(0).line.starts_with(
    "POST /v1/projects/p1/locations/us-east1/publishers/google/models/"
    "gemini-x:generateContent "));
}

BOOST_AUTO_TEST_CASE(the_environment_decides_for_gemini_alone) {
  const held_variables held{{"GOOGLE_GENAI_USE_VERTEXAI", "true"},
                            {"ANTHROPIC_API_KEY", "k"},
                            {"OPENAI_API_KEY", "k"}};
  BOOST_TEST(open_model({.name = "claude-x"}, with(held)).has_value());
  BOOST_TEST(open_model({.name = "openai:x"}, with(held)).has_value());
  // A file that names a server means that server.
  BOOST_TEST(open_model({.name = "gemini-x", .base_url = "http://localhost:1"},
                        with(held))
               .has_value());
  // The newer variable wins.
  auto newer = held;
  newer["GOOGLE_GENAI_USE_ENTERPRISE"] = "false";
  BOOST_TEST(
    reason_for({.name = "gemini-x"}, newer).find("GOOGLE_API_KEY is not set")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_key_without_a_project_is_sent_as_a_key) {
  http_server server({say(whole(vertex_answer))});
  const auto model
    = open_model({.name = "gemini-x"},
                 with({{"GOOGLE_GENAI_USE_ENTERPRISE", "1"},
                       {"GOOGLE_VERTEX_BASE_URL", server.url("")},
                       {"GOOGLE_API_KEY", "s3cret"}}))
        .value();
  BOOST_TEST(ask_vertex(*model).has_value());
  const auto asked = server.requests().at(0);
  BOOST_TEST(asked.line.starts_with(
    "POST /v1/publishers/google/models/gemini-x:generateContent "));
  BOOST_TEST(asked.header("x-goog-api-key") == "s3cret");
  BOOST_TEST(asked.header("authorization").empty());
}

BOOST_AUTO_TEST_CASE(full_names_are_at_vertex) {
  http_server server({say(whole(vertex_answer))});
  const auto options = with({{"GOOGLE_VERTEX_BASE_URL", server.url("")},
                             {"GOOGLE_OAUTH_ACCESS_TOKEN", "t"}});
  const std::string name
    = "projects/p/locations/us-east1/publishers/google/models/gemini-x";
  const auto model = open_model({.name = name}, options).value();
  BOOST_TEST(model->name() == name);
  BOOST_TEST(ask_vertex(*model).has_value());
  BOOST_TEST(server.requests().at(0).line.starts_with("POST /v1/" + name
                                                      + ":generateContent "));
  BOOST_TEST(reason_of(open_model({.name = "projects/p"}, options))
               .starts_with("model 'projects/p': expected projects/PROJECT/"));
}

BOOST_AUTO_TEST_CASE(claude_is_at_vertex_too) {
  http_server server({say(whole(
    R"({"type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "hoo"}],
        "stop_reason": "end_turn"})"))});
  const auto model
    = open_model(
        {.name = "claude-x@20250929", .vertex = vertex_place{.project = "p"}},
        with({{"GOOGLE_VERTEX_BASE_URL", server.url("")},
              {"GOOGLE_OAUTH_ACCESS_TOKEN", "t"}}))
        .value();
  BOOST_TEST(ask_vertex(*model).value().content.text() == "hoo");
  const auto asked = server.requests().at(0);
  BOOST_TEST(asked.line.starts_with(
               "POST /v1/projects/p/locations/global/publishers/anthropic/"
               "models/claude-x@20250929:rawPredict "),
             asked.line);
  BOOST_TEST(asked.header("authorization") == "Bearer t");
  const auto body = parse_json(asked.body).value();
  BOOST_TEST(body.value("anthropic_version", "") == "vertex-2023-10-16");
  BOOST_TEST(!body.contains("model"));
}

BOOST_AUTO_TEST_CASE(metadata_of_troupe_does_not_reach_vertex) {
  const auto said = content_from_json(
                      R"({"role": "user", "parts": [{"text": "Hi",
                      "partMetadata": {"k": 1}}]})"_json)
                      .value();
  for (const auto host : {gemini_host::developer, gemini_host::vertex}) {
    const auto body = body_of(
      request_of(*gemini_format(host), {said}, [host](auto&, auto& asked) {
        if (host == gemini_host::vertex)
          asked.model = "projects/p/locations/l/publishers/google/models/m";
      }));
    BOOST_TEST(body["contents"][0]["parts"][0].contains("partMetadata")
               == (host == gemini_host::developer));
  }
}

BOOST_AUTO_TEST_CASE(a_source_at_vertex_is_checked) {
  const held_variables held{{"GOOGLE_OAUTH_ACCESS_TOKEN", "t"},
                            {"GOOGLE_CLOUD_PROJECT", "p"},
                            {"OTHER", "s3cret"}};
  const auto refused = [&held](model_source source, std::string_view words) {
    const auto reason = reason_for(source, held);
    BOOST_TEST(reason.find(words) != std::string::npos, reason);
    BOOST_TEST(reason.find("s3cret") == std::string::npos, reason);
  };
  const vertex_place here;
  refused({.name = "openai:x", .vertex = here}, "is for models of Gemini");
  refused(
    {.name = "gemini-x", .base_url = "https://evil.example", .vertex = here},
    "has no base_url");
  refused({.name = "gemini-x", .key_variable = "OTHER", .vertex = here},
          "has no key_env");
  refused(
    {.name = "gemini-x", .vertex = vertex_place{.token_variable = "OTHER"}},
    "token_env may not name OTHER");
  refused({.name = "gemini-x",
           .vertex = vertex_place{.token_command = {"gcloud", "auth"}}},
          "allow it with --allow-command gcloud");
  refused({.name = "gemini-x",
           .vertex = vertex_place{.token_variable = "GOOGLE_OAUTH_ACCESS_TOKEN",
                                  .token_command = {"gcloud"}}},
          "one of token_env and token_command");
  BOOST_TEST(reason_for({.name = "gemini-x", .vertex = here},
                        {{"GOOGLE_CLOUD_PROJECT", "p"}})
               .find("allow gcloud auth print-access-token with "
                     "--allow-command gcloud")
             != std::string::npos);
  // A name allows no path.
  BOOST_TEST(code_of(open_model(
               {.name = "gemini-x",
                .vertex = vertex_place{.token_command = {"/tmp/gcloud"}}},
               with(held, {"gcloud"})))
             == "invalid_argument");
  BOOST_TEST(open_model({.name = "gemini-x", .vertex = here},
                        with({{"GOOGLE_CLOUD_PROJECT", "p"}}, {"gcloud"}))
               .has_value());
  BOOST_TEST(
    reason_of(open_model({.name = "gemini-x", .vertex = here},
                         with({{"GOOGLE_CLOUD_PROJECT", "p"},
                               {"GOOGLE_VERTEX_BASE_URL", "http://far.example"},
                               {"GOOGLE_OAUTH_ACCESS_TOKEN", "t"}})))
      .find("not sent over plain http")
    != std::string::npos);
}

// -- programs that print tokens ----

BOOST_AUTO_TEST_CASE(a_token_is_kept_until_it_is_old) {
  const token_program printing;
  http_server server({say(whole(vertex_answer))});
  const auto clock = std::make_shared<simulated_environment>(1);
  const auto model
    = open_model(
        {.name = "gemini-x",
         .vertex
         = vertex_place{.project = "p", .token_command = printing.command()}},
        with({{"GOOGLE_VERTEX_BASE_URL", server.url("")}}, {"/bin/sh"}))
        .value();
  BOOST_TEST(printing.starts() == 0);
  for (const auto step : {0min, 44min, 1min, 44min}) {
    clock->advance(step);
    BOOST_TEST(ask_vertex(*model, clock).has_value());
  }
  BOOST_TEST(printing.starts() == 2);
  std::vector<std::string> sent;
  for (const auto& each : server.requests())
    sent.push_back(each.header("authorization"));
  const std::vector<std::string> expected{
    "Bearer token1", "Bearer token1", "Bearer token2", "Bearer token2"};
  BOOST_TEST(sent == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_token_that_is_refused_is_replaced_once) {
  const token_program printing;
  const auto refusing = [](std::size_t times) {
    return [times](const served_request& asked) -> server_script {
      const auto token = asked.header("authorization");
      for (std::size_t number = 1; number <= times; ++number)
        if (token == fmt::format("Bearer token{}", number))
          return {say(whole(R"({"error": {"code": 401, "status":
            "UNAUTHENTICATED", "message": "expired"}})",
                            401))};
      return {say(whole(vertex_answer))};
    };
  };
  const auto open = [&printing](const http_server& server) {
    return open_model(
             {.name = "gemini-x",
              .vertex = vertex_place{.project = "p",
                                     .token_command = printing.command()}},
             with({{"GOOGLE_VERTEX_BASE_URL", server.url("")}}, {"/bin/sh"}))
      .value();
  };
  http_server once_refusing(refusing(1));
  BOOST_TEST(ask_vertex(*open(once_refusing)).has_value());
  BOOST_TEST(once_refusing.requests().size() == 2U);
  http_server always_refusing(refusing(9));
  const auto failed = ask_vertex(*open(always_refusing));
  BOOST_TEST(code_of(failed) == "model_failed");
  const auto reason = reason_of(failed);
  BOOST_TEST(reason.starts_with("Gemini model 'gemini-x', attempt 2: status "
                                "401: UNAUTHENTICATED: expired"),
             reason);
  BOOST_TEST(reason.find("token") == std::string::npos, reason);
  BOOST_TEST(always_refusing.requests().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_program_that_fails_fails_the_call) {
  const token_program printing;
  printing.write(
    "echo s3cret; echo first >&2; echo 'log in first' >&2; exit 3");
  const auto model
    = open_model({.name = "gemini-x",
                  .vertex = vertex_place{.project = "p",
                                         .token_command = printing.command()}},
                 with({}, {"/bin/sh"}))
        .value();
  const auto reason = reason_of(ask_vertex(*model));
  BOOST_TEST(reason
             == "Gemini model 'gemini-x': the program '/bin/sh' has ended with "
                "exit status 3; it wrote: first log in first");
  printing.write("echo s3cret; exit 3");
  BOOST_TEST(reason_of(ask_vertex(*model)).find("s3cret") == std::string::npos);
  printing.write("echo 'You are logged in as s3cret'");
  const auto words = reason_of(ask_vertex(*model));
  BOOST_TEST(words.find("printed no token") != std::string::npos, words);
  BOOST_TEST(words.find("s3cret") == std::string::npos, words);
}

BOOST_AUTO_TEST_CASE(the_output_of_a_program_has_limits) {
  const auto run = [](const std::string& script,
                      std::chrono::milliseconds limit = 20s,
                      const std::stop_token& stop = {}) {
    return command_output({"/bin/sh", "-c", script}, limit, stop);
  };
  BOOST_TEST(run("cat; echo a; echo b >&2").value() == "a\n");
  BOOST_TEST(reason_of(run("kill -9 $$")).find("signal 9")
             != std::string::npos);
  BOOST_TEST(reason_of(run("yes")).find("65536 bytes") != std::string::npos);
  BOOST_TEST(reason_of(run("sleep 60", 10ms)).find("did not end in time")
             != std::string::npos);
  // The pipes are closed, and the program goes on.
  BOOST_TEST(
    reason_of(run("exec >&- 2>&-; sleep 60", 10ms)).find("did not end in time")
    != std::string::npos);
  std::stop_source stop;
  stop.request_stop();
  BOOST_TEST(code_of(run("sleep 60", 20s, stop.get_token())) == "cancelled");
  BOOST_TEST(reason_of(command_output({"/no/such/program"}, 1s, {}))
               .find("/no/such/program")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(calls_at_the_same_time_share_one_program) {
  std::promise<void> begin;
  std::atomic<int> starts = 0;
  token_command tokens([&, ready = begin.get_future().share()](
                         const std::stop_token&) -> result<std::string> {
    ready.wait();
    return fmt::format("t{}", ++starts);
  });
  std::vector<std::promise<std::string>> got(3);
  const timestamp now{1h};
  for (auto& each : got)
    tokens.ask(now, [&each](result<std::string> token) {
      each.set_value(token.value());
    });
  begin.set_value();
  for (auto& each : got)
    BOOST_TEST(each.get_future().get() == "t1");
  // A token that is not the kept one is refused already.
  tokens.refuse("t0");
  tokens.ask(now, [](const result<std::string>& token) {
    BOOST_TEST(token.value() == "t1");
  });
  tokens.refuse("t1");
  std::promise<std::string> renewed;
  tokens.ask(now, [&renewed](result<std::string> token) {
    renewed.set_value(token.value());
  });
  BOOST_TEST(renewed.get_future().get() == "t2");
}

BOOST_AUTO_TEST_CASE(the_end_stops_the_program) {
  std::promise<std::string> told;
  {
    token_command tokens(
      [](const std::stop_token& stop) -> result<std::string> {
        return command_output({"sleep", "60"}, 30s, stop);
      });
    tokens.ask(timestamp(1h), [&told](const result<std::string>& token) {
      told.set_value(code_of(token));
    });
  }
  BOOST_TEST(told.get_future().get() == "cancelled");
}

BOOST_AUTO_TEST_SUITE_END()

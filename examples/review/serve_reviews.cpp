// Serves the pipeline of review_documents over HTTP, with the page of the
// server, on the store that review_documents has filled.
//
//     serve_reviews [--store STORE] [--port N]
//
// Each message is a text to review. The program shows how agents with tools of
// their own are served, and how a plugin prepares the state of each run.

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/models/model.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/server/server.hpp"

#include "review_tools.hpp"
#include <fmt/format.h>
#include <pthread.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace {

using troupe::errc;
using troupe::error;

// Calls the tool of its agent once, and then answers with the instruction, into
// which the tool's findings have been filled.
class clerk final : public troupe::model {
public:
  std::string name() const override { return "clerk"; }

  void generate(troupe::model_request request,
                troupe::model_reply reply) override {
    troupe::content answer("model", {});
    auto findings = std::move(request.system_instruction);
    // The part that names the agent holds no findings.
    if (const auto at = findings.find("\n\n" + request.identity);
        at != std::string::npos)
      findings.erase(at);
    if (request.tools.empty() || has_result(request))
      answer.parts.emplace_back(std::move(findings));
    else
      answer.parts.emplace_back(
        troupe::function_call{"", request.tools.front().name, {}});
    reply(troupe::model_response(std::move(answer)));
  }

private:
  static bool has_result(const troupe::model_request& request) {
    if (request.contents.empty())
      return false;
    for (const auto& each : request.contents.back()->parts)
      if (each.response() != nullptr)
        return true;
    return false;
  }
};

// Puts the message where the tools read the text, and gives a user without
// preferences those of a stranger.
troupe::plugin prepare_texts() {
  troupe::plugin made;
  made.name = "texts";
  made.before_run = [](troupe::callback_context& context) {
    auto& state = context.state();
    state.set("temp:text", context.user_content().text());
    state.set("temp:folder", "");
    const auto set_if_absent = [&state](const char* key, troupe::json data) {
      if (!state.contains(key))
        state.set(key, std::move(data));
    };
    set_if_absent("document", "your text");
    set_if_absent("user:greeting", "Dear reader,");
    set_if_absent("user:closing", "Your reviewers");
    set_if_absent("user:sentences_shown", 3);
    set_if_absent("user:sentence_words_max", 30);
  };
  return made;
}

struct arguments {
  std::string store = "sqlite:review.db";
  std::uint16_t port = 8000;
};

arguments read_arguments(std::span<char*> words) {
  arguments read;
  for (std::size_t index = 0; index < words.size(); index += 2) {
    const std::string word = words[index];
    if (index + 1 == words.size() || (word != "--store" && word != "--port"))
      throw error(errc::invalid_argument,
                  fmt::format("{} is not understood\nusage: serve_reviews "
                              "[--store STORE] [--port N]",
                              word));
    const std::string given = words[index + 1];
    if (word == "--store") {
      read.store = given;
      continue;
    }
    const auto* end = given.data() + given.size();
    const auto [rest, failed] = std::from_chars(given.data(), end, read.port);
    if (failed != std::errc() || rest != end)
      throw error(errc::invalid_argument, given + " is not a port");
  }
  return read;
}

// Blocks Ctrl-C and SIGTERM, also in threads that start later, so that they can
// be waited for.
sigset_t block_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return ends;
}

void serve(const arguments& wanted) {
  const auto ends = block_signals();
  troupe::runtime_options options;
  options.store = wanted.store;
  options.plugins = {prepare_texts()};
  auto runtime = troupe::runtime::open(std::move(options)).value();
  const auto root
    = troupe::load_agent_file(
        TROUPE_REVIEW_AGENTS,
        {.tools = review::make_tools(), .model = std::make_shared<clerk>()})
        .value();
  auto served
    = troupe::server::start(runtime, {{"review", root}}, {.port = wanted.port})
        .value();
  fmt::print("The reviews are on {}/ until Ctrl-C.\n", served.address());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  served.stop();
  runtime.shut_down().value();
}

} // namespace

int main(int count, char** words) {
  try {
    serve(read_arguments(std::span(words + 1, words + count)));
    return 0;
  } catch (const error& failure) {
    std::fputs(("error: " + to_string(failure) + '\n').c_str(), stderr);
  } catch (const std::exception& failure) {
    std::fputs(fmt::format("error: internal: {}\n", failure.what()).c_str(),
               stderr);
  }
  return 1;
}

// A pipeline that is killed in the middle. Started again, it continues in the
// same session.
//
//     resume [--store STORE] [--kill-after EVENTS]
//
// The results of a step are in the session's state as soon as its event is
// acknowledged, so each step checks the state first. If the program is killed
// (`kill -9`), each event is stored completely or not at all.

#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using troupe::errc;

const troupe::session_key book{"press", "ann", "book"};
const std::vector<std::string> topics{"eyes", "ears", "wings"};

// -- the pipeline -------------------------------------------------------------

// Runs `step` unless an earlier run has stored its event, which sets `key`.
troupe::agent once(const std::string& key, const troupe::agent& step) {
  return troupe::custom(
    "once_" + key,
    [key, step](troupe::invocation_context& ctx) -> troupe::agent_run {
      if (ctx.state().contains(key))
        co_return;
      co_await ctx.run(step);
    },
    {step});
}

// A step of several events continues after the last stored one.
troupe::agent_run write_chapters(troupe::invocation_context& ctx) {
  const auto written
    = ctx.state().get<std::vector<std::string>>("chapters", {}).size();
  for (auto next = written; next < topics.size(); ++next) {
    auto chapter = "The " + topics[next] + " of owls";
    ctx.state().append("chapters", chapter);
    ctx.state().add("user:chapters_written", 1);
    co_await ctx.emit(troupe::text("chapter {}: {}", next + 1, chapter));
  }
}

// One event holds both the result and the mark that the step is done, so the
// step takes effect once.
troupe::agent_run publish(troupe::invocation_context& ctx) {
  ctx.state().set("published", true);
  ctx.state().add("app:books_published", 1);
  co_await ctx.emit(troupe::text("on sale"));
}

troupe::agent make_pipeline() {
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"*", {{.text = "${instruction}"}}}});
  const auto ask = [&model](const std::string& key, const std::string& wish) {
    return once(key,
                troupe::llm({.name = "write_" + key,
                             .model = model,
                             .instruction = wish,
                             .output_key = key}));
  };
  return troupe::sequential("press",
                            {ask("outline", "Three chapters on {topic}"),
                             troupe::custom("write_chapters", write_chapters),
                             ask("blurb", "All about {topic}: {chapters}"),
                             once("published", //
                                  troupe::custom("publish", publish))});
}

// -- the program --------------------------------------------------------------

struct arguments {
  std::string store = "sqlite:resume.db";
  std::optional<std::uint64_t> kill_after;
};

[[noreturn]] void refuse() {
  throw troupe::error(errc::invalid_argument,
                      "usage: resume [--store STORE] [--kill-after EVENTS]");
}

std::uint64_t read_count(std::string_view text) {
  std::uint64_t count = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, count);
  if (failure != std::errc() || stopped != end || count == 0)
    refuse();
  return count;
}

arguments read_arguments(std::span<char*> words) {
  arguments read;
  for (; !words.empty(); words = words.subspan(2)) {
    if (words.size() == 1)
      refuse();
    const std::string_view name = words[0];
    if (name == "--store")
      read.store = words[1];
    else if (name == "--kill-after")
      read.kill_after = read_count(words[1]);
    else
      refuse();
  }
  return read;
}

void print(const troupe::event_ptr& said) {
  // Flushed here: a killed program does not flush.
  std::cout << "  " << said->author << ": " << said->text() << std::endl;
}

void run(const arguments& wanted) {
  auto runtime = troupe::runtime::open({.store = wanted.store}).value();
  auto& sessions = runtime.sessions();
  const auto found = sessions.get_or_create(book, {{"topic", "owls"}}).value();
  std::cout << "Found " << found.events().size() << " events:" << std::endl;
  for (const auto& said : found.events())
    print(said);

  std::cout << "Carrying on:" << std::endl;
  std::uint64_t delivered = 0;
  for (const auto& said : runtime.run(make_pipeline(), book, "Go!")) {
    print(said);
    if (++delivered == wanted.kill_after)
      std::raise(SIGKILL);
  }
  std::cout << "Done: " << sessions.get(book).value().state().all()
            << std::endl;
  runtime.shut_down().value();
}

} // namespace

int main(int count, char** words) {
  try {
    run(read_arguments(std::span(words + 1, words + count)));
    return 0;
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}

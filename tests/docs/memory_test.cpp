// The samples of docs/memory.md.

#include "troupe/agents/agent.hpp"
#include "troupe/agents/standard_tools.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/memory_service.hpp"

#include "page_fixture.hpp"

#include <iostream>
#include <optional>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(memory_page)

BOOST_AUTO_TEST_CASE(a_later_session_remembers_an_earlier_one) {
  const auto model = troupe::testing::saying({{.text = "Rex."}});

  auto guide = troupe::llm(
    {.name = "guide",
     .model = model,
     .instruction = "Answer the user.",
     .tools = {troupe::load_memory()},
     .after_agent = {[](troupe::callback_context& context)
                       -> troupe::task<std::optional<troupe::content>> {
       (co_await context.add_session_to_memory()).value();
       co_return std::nullopt;
     }}});

  auto runtime = troupe::runtime::open({.memory = "memory:"}).value();
  auto& sessions = runtime.sessions();
  const auto key = sessions.create({"press", "ann", "s1"}).value().key();
  runtime.run(guide, key, "My dog is Rex.").wait().value();

  const auto found = runtime.memory()->search("press", "ann", "dog").value();
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found.front().content.text() == "My dog is Rex.");
}

BOOST_AUTO_TEST_CASE(a_program_uses_the_memory_itself) {
  auto runtime = troupe::runtime::open({.memory = "memory:"}).value();
  auto& sessions = runtime.sessions();
  const auto key = sessions.create({"press", "ann", "s1"}).value().key();
  const troupe::testing::printed_text printed;

  sessions.add_to_memory(key).value();

  troupe::memory_entry tea(troupe::user_text("Ann likes green tea."));
  tea.id = "tea";
  runtime.memory()->add("press", "ann", {tea}).value();
  for (const auto& each :
       runtime.memory()->search("press", "ann", "which tea?").value())
    std::cout << each.content.text() << '\n';
  sessions.remove_user("press", "ann").value();

  BOOST_TEST(printed.text() == "Ann likes green tea.\n");
  BOOST_TEST(runtime.memory()->search("press", "ann", "tea").value().empty());
}

BOOST_AUTO_TEST_SUITE_END()

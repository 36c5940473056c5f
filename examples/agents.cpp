// The concepts of docs/agents.md, one function each. The code on that page is
// here, runs, and is checked.

#include "troupe/agents/agent_tool.hpp"
#include "troupe/agents/drawing.hpp"
#include "troupe/agents/function_tool.hpp"
#include "troupe/agents/open_call.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

troupe::model_ptr model_saying(troupe::script replies) {
  return std::make_shared<troupe::scripted_model>(std::move(replies));
}

troupe::scripted_reply calling(const std::string& tool, troupe::json args) {
  troupe::scripted_reply reply;
  reply.function_calls = {{"", tool, std::move(args)}};
  return reply;
}

// -- the agents ---------------------------------------------------------------

troupe::agent make_writer(const troupe::model_ptr& model) {
  return troupe::llm({.name = "writer",
                      .model = model,
                      .instruction = "Write about {topic} for {user:name?}.",
                      .output_key = "draft"});
}

troupe::agent make_judge(const troupe::model_ptr& model) {
  const troupe::json_schema verdict(troupe::json::parse(R"({
    "type": "object",
    "properties": {"stars": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["stars"]
  })"));
  return troupe::llm({.name = "judge",
                      .model = model,
                      .instruction = "How good is this? {draft}",
                      .output_key = "verdict",
                      .output_schema = verdict});
}

struct forecast_query {
  std::string city;
  std::optional<int> days;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("city", &forecast_query::city, "Name of the city"),
    troupe::parameter("days", &forecast_query::days, "How far ahead"));
};

troupe::tool make_forecast() {
  return troupe::function_tool(
    {.name = "forecast",
     .description = "Tells the weather.",
     .timeout = 5s,
     .calls_max = 8},
    [](const forecast_query& query, troupe::tool_context& context) {
      context.state().add("app:forecasts", 1);
      return query.city + ": sun for " + std::to_string(query.days.value_or(1))
             + " days";
    });
}

struct refund_request {
  int euros = 0;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("euros", &refund_request::euros));
};

troupe::tool make_refund() {
  return troupe::function_tool(
    {.name = "refund",
     .description = "Pays money back.",
     .require_confirmation
     = [](const troupe::json& args) { return args.value("euros", 0) > 50; }},
    [](const refund_request& wanted) {
      return std::to_string(wanted.euros) + " euros are on their way";
    });
}

struct report {
  std::string text;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("text", &report::text));
};

troupe::tool make_archive() {
  return troupe::function_tool(
    {.name = "archive", .description = "Keeps a report."},
    [](const report& written, troupe::tool_context& context) {
      return context.artifacts().save("report.txt", written.text).value();
    });
}

troupe::agent make_reader(const troupe::model_ptr& model) {
  return troupe::llm({.name = "reader",
                      .model = model,
                      .instruction = "Sum up: {artifact.report.txt}"});
}

// Answers the open questions of a session: small refunds are allowed.
void decide(troupe::runtime& runtime,
            const troupe::agent& clerk,
            const troupe::session_key& key) {
  for (const auto& call : runtime.sessions().open_calls(key).value()) {
    const bool is_small = call.args->value("euros", 0) <= 100;
    runtime.run(clerk, key, is_small ? troupe::allow(call) : troupe::deny(call))
      .wait()
      .value();
  }
}

troupe::agent make_guarded(const troupe::model_ptr& model) {
  return troupe::llm(
    {.name = "guarded",
     .model = model,
     .before_model
     = {[](troupe::callback_context& context, troupe::model_request& request)
          -> std::optional<troupe::model_response> {
         context.state().add("user:questions", 1);
         const auto& asked = request.contents.back()->text();
         if (asked.find("secret") == std::string::npos)
           return std::nullopt;
         return troupe::model_response(
           troupe::content("model", {troupe::part("I cannot tell.")}));
       }}});
}

troupe::agent make_planner(const troupe::model_ptr& model,
                           const troupe::agent& weather) {
  return troupe::llm({.name = "planner",
                      .model = model,
                      .tools = {troupe::agent_tool(weather)}});
}

troupe::agent make_front_desk(const troupe::model_ptr& model) {
  const auto billing = troupe::llm(
    {.name = "billing", .description = "knows about invoices", .model = model});
  const auto support = troupe::llm(
    {.name = "support", .description = "repairs things", .model = model});
  return troupe::llm({.name = "front_desk", .model = model},
                     {billing, support});
}

troupe::agent make_travel_desk(const troupe::model_ptr& model) {
  const auto planner = troupe::llm({.name = "planner",
                                    .description = "plans a journey",
                                    .mode = troupe::agent_mode::task,
                                    .model = model});
  const auto weather = troupe::llm({.name = "weather",
                                    .description = "knows the weather",
                                    .mode = troupe::agent_mode::single_turn,
                                    .model = model});
  return troupe::llm({.name = "travel_desk", .model = model},
                     {planner, weather});
}

troupe::agent make_survey(std::vector<troupe::agent> sources) {
  return troupe::parallel({.name = "survey",
                           .on_failure = troupe::lane_failures::quorum,
                           .quorum = 2,
                           .lane_timeout = 30s},
                          std::move(sources));
}

troupe::agent make_translations(const troupe::model_ptr& model) {
  const auto translator = troupe::llm(
    {.name = "translator", .model = model, .instruction = "Say {temp:item}."});
  return troupe::map({.name = "translations",
                      .items_key = "words",
                      .output_key = "translated",
                      .lanes_max = 16},
                     translator);
}

troupe::agent_run improve(troupe::invocation_context& context) {
  const auto rounds = context.state().get<int>("rounds", 0) + 1;
  context.state().set("rounds", rounds);
  context.actions().escalate = rounds == 3;
  co_await context.emit(troupe::text("round {}", rounds));
}

troupe::agent make_improvements() {
  return troupe::loop({.name = "improvements", .max_iterations = 10},
                      {troupe::custom("improve", improve)});
}

void draw(const troupe::agent& which,
          std::ostream& lines,
          std::ostream& graph) {
  lines << troupe::to_text(which);
  graph << troupe::to_dot(which, {.dark = true});
}

troupe::agent make_reporter(const troupe::model_ptr& model) {
  return troupe::llm({.name = "reporter", .model = model, .contents_max = 20});
}

troupe::agent_run count_questions(troupe::invocation_context& context) {
  int questions = 0;
  for (auto next = context.revision() + 1; next > 1;) {
    const auto page = co_await context.events_before(next, 500);
    for (const auto& said : page)
      questions += said->author == "user" ? 1 : 0;
    next = page.first_number();
  }
  co_await context.emit(troupe::text("{} questions", questions));
}

troupe::agent make_counter() {
  return troupe::custom({.name = "counter",
                         .run = count_questions,
                         .reads = troupe::history_extent::none()});
}

troupe::plugin make_house_style() {
  return {.name = "house_style",
          .before_model
          = [](troupe::callback_context&, troupe::model_request& request) {
              request.system_instruction += " Use no exclamation marks.";
            }};
}

troupe::compaction_options make_compaction(const troupe::model_ptr& model) {
  return {.compaction_interval = 20,
          .overlap_size = 2,
          .token_threshold = 100'000,
          .event_retention_size = 40,
          .model = model};
}

// -- checks -------------------------------------------------------------------

class trial {
public:
  explicit trial(troupe::runtime_options options = {})
    : runtime_(troupe::runtime::open(std::move(options)).value()) {}

  // Runs an agent on a session of its own and compares the texts, in any order,
  // since lanes run concurrently.
  void expect(const troupe::agent& which,
              std::vector<std::string> said,
              const troupe::json& state = troupe::json::object(),
              const std::string& message = "Go!") {
    const auto session
      = runtime_.sessions().create({"tour", "ann"}, state).value();
    std::vector<std::string> heard;
    for (const auto& event : runtime_.run(which, session.key(), message))
      if (!event->text().empty()) {
        heard.push_back(event->author + ": " + event->text());
        std::cout << heard.back() << '\n';
      }
    state_ = runtime_.sessions().get(session.key()).value().state().all();
    std::ranges::sort(heard);
    std::ranges::sort(said);
    check(heard == said, said.front());
  }

  // The same for an agent whose question the user answers.
  void expect_allowed(const troupe::agent& which, const std::string& said) {
    const auto key = runtime_.sessions().create({"tour", "ann"}).value().key();
    runtime_.run(which, key, "Go!").wait().value();
    check(runtime_.sessions().open_calls(key).value().size() == 1,
          "one open question");
    decide(runtime_, which, key);
    const auto last
      = runtime_.sessions().get(key).value().events().back()->text();
    std::cout << which.name() << ": " << last << '\n';
    check(last == said, said);
  }

  // The drawing consists of these lines.
  static void expect_drawing(const troupe::agent& which,
                             const std::string& lines) {
    std::ostringstream graph;
    std::ostringstream text;
    draw(which, text, graph);
    std::cout << text.str();
    check(text.str() == lines && graph.str().starts_with("digraph "), lines);
  }

  void expect_state(const std::string& key, const troupe::json& value) const {
    check(state_.value(key, troupe::json()) == value, key);
  }

private:
  static void check(bool holds, const std::string& what) {
    if (holds)
      return;
    std::fprintf(stderr, "should have been: %s\n", what.c_str());
    std::abort();
  }

  troupe::runtime runtime_;
  troupe::json state_;
};

troupe::agent says(const std::string& name, const std::string& words) {
  return troupe::custom(
    name, [words](troupe::invocation_context& context) -> troupe::agent_run {
      co_await context.emit(troupe::text("{}", words));
    });
}

} // namespace

int main() {
  trial on;
  on.expect(
    make_writer(model_saying({{"writer", {{.text = "${instruction}"}}}})),
    {"writer: Write about owls for ."},
    {{"topic", "owls"}});
  on.expect_state("draft", "Write about owls for .");

  on.expect(
    make_judge(model_saying({{"judge", {{.text = R"({"stars": 4})"}}}})),
    {R"(judge: {"stars": 4})"},
    {{"draft", "Owls hunt."}});
  on.expect_state("verdict", {{"stars", 4}});

  const auto weather
    = troupe::llm({.name = "weather",
                   .description = "Knows the weather.",
                   .model = model_saying(
                     {{"weather",
                       {calling("forecast", {{"city", "Rome"}, {"days", 2}}),
                        {.text = "It will be fine."}}}}),
                   .tools = {make_forecast()}});
  on.expect(weather, {"weather: It will be fine."});
  on.expect_state("app:forecasts", 1);

  const auto clerk = troupe::llm(
    {.name = "archivist",
     .model = model_saying({{"archivist",
                             {calling("archive", {{"text", "Owls hunt."}}),
                              {.text = "It is kept."}}}}),
     .tools = {make_archive()}});
  const auto reader
    = make_reader(model_saying({{"reader", {{.text = "${instruction}"}}}}));
  on.expect(troupe::sequential("filing", {clerk, reader}),
            {"archivist: It is kept.", "reader: Sum up: Owls hunt."});

  on.expect_allowed(troupe::llm({.name = "clerk",
                                 .model = model_saying(
                                   {{"clerk",
                                     {calling("refund", {{"euros", 80}}),
                                      {.text = "They are on their way."}}}}),
                                 .tools = {make_refund()}}),
                    "They are on their way.");

  on.expect(make_guarded(model_saying({{"guarded", {{.text = "Sure."}}}})),
            {"guarded: I cannot tell."},
            troupe::json::object(),
            "What is the secret?");
  on.expect_state("user:questions", 1);

  on.expect(
    make_planner(model_saying({{"planner",
                                {calling("weather", {{"request", "Rome?"}}),
                                 {.text = "Take a hat."}}}}),
                 weather),
    {"planner: Take a hat."});

  on.expect(make_front_desk(model_saying(
              {{"front_desk",
                {calling("transfer_to_agent", {{"agent_name", "billing"}})}},
               {"billing", {{.text = "Here is your invoice."}}}})),
            {"billing: Here is your invoice."});

  on.expect(make_travel_desk(model_saying(
              {{"travel_desk",
                {calling("planner", {{"request", "a journey to Rome"}})}},
               {"planner", {{.text = "When do you start?"}}}})),
            {"planner: When do you start?"});

  on.expect(make_survey({says("first", "yes"), says("second", "yes")}),
            {"first: yes", "second: yes"});
  on.expect(make_translations(
              model_saying({{"translator", {{.text = "${instruction}"}}}})),
            {"translator: Say owl."},
            {{"words", {"owl"}}});
  on.expect_state("translated", troupe::json::array({"Say owl."}));
  on.expect(make_improvements(),
            {"improve: round 1", "improve: round 2", "improve: round 3"});
  trial::expect_drawing(make_improvements(),
                        "improvements (loop, at most 10 rounds)\n"
                        "└─ 1. improve (custom)\n");

  on.expect(troupe::sequential("review",
                               {make_reporter(model_saying(
                                  {{"reporter", {{.text = "All is well."}}}})),
                                make_counter()}),
            {"reporter: All is well.", "counter: 1 questions"});

  trial styled({.plugins = {make_house_style()}});
  styled.expect(
    make_writer(model_saying({{"writer", {{.text = "${instruction}"}}}})),
    {"writer: Write about owls for . Use no exclamation marks."},
    {{"topic", "owls"}});

  trial summed({.compaction = make_compaction(model_saying({}))});
  summed.expect(says("short", "Nothing to sum up."),
                {"short: Nothing to sum up."});
}

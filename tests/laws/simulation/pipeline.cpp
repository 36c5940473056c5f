#include "pipeline.hpp"

#include "overwriter.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

using namespace std::chrono_literals;
using pipeline_setup_ptr = std::shared_ptr<pipeline_setup>;

// -- writers ----

// Checks that a lane keeps seeing the state it has seen, and that it sees all
// that it has committed and recorded.
struct lane_memory {
  explicit lane_memory(const invocation_context& context)
    : own{{"temp:of_" + context.agent_name(), ""},
          {context.invocation_id().substr(0, 10) + "_" + context.agent_name(),
           ""}} {
    look_back(context);
  }

  void look(pipeline_setup& with,
            const invocation_context& context,
            const std::string& token) {
    const auto& events = context.events();
    const auto complain = [&](std::string what) {
      with.told.complaints.emplace_back(context.invocation_id(),
                                        std::move(what));
    };
    if (events.size() < seen)
      complain("a lane has lost events that it had seen: "
               + std::to_string(seen) + ", then "
               + std::to_string(events.size()));
    seen = events.size();
    if (token.empty())
      return;
    for (auto index = events.size(); index-- > 0;)
      if (events[index]->text() == token)
        return;
    complain("an agent does not see its own event " + token);
  }

  // Reads the keys that only this agent writes. Loops run an agent several
  // times, so they may have values already.
  void look_back(const invocation_context& context) {
    for (auto& [key, text] : own)
      text = context.state().get<std::string>(key, "");
  }

  void record_own(invocation_context& context, const std::string& token) {
    before = own;
    for (auto& [key, text] : own) {
      context.state().set(key, token);
      text = token;
    }
  }

  void look_at_own(pipeline_setup& with,
                   const invocation_context& context) const {
    for (const auto& [key, text] : own)
      if (const auto found = context.state().get<std::string>(key, "");
          found != text)
        with.told.complaints.emplace_back(context.invocation_id(),
                                          "an agent that has written '" + text
                                            + "' to " + key + " reads '" + found
                                            + "'");
  }

  void forget_refused() { own = before; }

  std::map<std::string, std::string> own;
  std::map<std::string, std::string> before;
  std::size_t seen = 0;
};

agent_run write(invocation_context& context,
                pipeline_setup_ptr with,
                std::size_t events) {
  lane_memory memory(context);
  for (; events > 0; --events) {
    memory.look(*with, context, "");
    memory.look_at_own(*with, context);
    const auto token = with->told.new_token();
    record(context.state(),
           make_changes(with->chance, with->changes, token, true));
    memory.record_own(context, token);
    memory.look_at_own(*with, context);
    auto recorded = context.state().recorded();
    recorded.drop(scope::temp);
    with->told.recorded[token] = std::move(recorded);
    const bool gives_up = with->chance.one_in(2);
    bool refused = false;
    try {
      const auto stored = co_await context.emit(text("{}", token));
      memory.look(*with, context, token);
    } catch (const error& why) {
      if (gives_up
          || (why.code() != errc::conflict && why.code() != errc::type_error))
        throw;
      refused = true;
      memory.forget_refused();
    }
    memory.look_at_own(*with, context);
    if (refused)
      continue;
    if (with->chance.one_in(4))
      co_await context.sleep(with->chance.time(20ms));
    if (with->chance.one_in(6))
      co_await context.refresh();
    if (with->chance.one_in(24))
      throw std::runtime_error("told to fail");
  }
}

// Checks that older events are those right before the events that the agent
// sees.
agent_run look_back(invocation_context& context, pipeline_setup& with) {
  const auto first = context.first_revision();
  const auto count = 1 + with.chance.below(6);
  const auto page = co_await context.events_before(first, count);
  const auto complain = [&](const std::string& what) {
    with.told.complaints.emplace_back(context.invocation_id(), what);
  };
  if (page.span() != std::min<std::uint64_t>(count, first - 1))
    complain("of " + std::to_string(count) + " events before number "
             + std::to_string(first) + " an agent was given "
             + std::to_string(page.span()));
  for (const auto& older : page)
    for (const auto& said : context.events())
      if (older->id == said->id)
        complain("event " + older->id + " was given as an older one");
}

history_extent make_extent(dice& chance) {
  switch (chance.below(5)) {
  case 0:
    return history_extent::none();
  case 1:
    return history_extent::newest(1 + chance.below(8));
  case 2:
    return history_extent::since_summary();
  default:
    return history_extent::all();
  }
}

agent make_writer(const std::string& name, const pipeline_setup_ptr& with) {
  const auto events = 1 + with->chance.below(3);
  return custom(
    {.name = name,
     .run = [with, events](invocation_context& context) -> agent_run {
       co_await write(context, with, events);
       if (with->chance.one_in(3))
         co_await look_back(context, *with);
     },
     .reads = make_extent(with->chance)});
}

agent make_escalator(const std::string& name, const pipeline_setup_ptr& with) {
  return custom(name, [with](invocation_context& context) -> agent_run {
    const auto token = with->told.new_token();
    with->told.recorded[token] = delta();
    context.actions().escalate = with->chance.one_in(2);
    co_await context.emit(text("{}", token));
  });
}

// -- models and tools ----

// A model that calls its tools once or twice, then answers with text.
class moody_model final : public model {
public:
  explicit moody_model(pipeline_setup_ptr with) : with_(std::move(with)) {}

  std::string name() const override { return "moody"; }

  void generate(model_request request, model_reply reply) override {
    auto& chance = with_->chance;
    if (chance.one_in(24))
      throw std::runtime_error("told to throw");
    request.environment->call_after(
      chance.time(40ms),
      [with = with_, reply = std::move(reply), tools = request.tools.size()] {
        answer(*with, reply, tools);
      });
  }

private:
  static void
  answer(pipeline_setup& with, const model_reply& reply, std::size_t tools) {
    if (with.chance.one_in(16))
      return reply(error(errc::model_failed, "told to fail"));
    if (with.chance.one_in(6)) {
      model_response piece(text("piece"));
      piece.partial = true;
      reply(std::move(piece));
    }
    if (tools == 0 || with.chance.one_in(2))
      return reply(model_response(text("said")));
    content calls{"model", {}};
    for (auto left = with.chance.below(3) + 1; left > 0; --left)
      calls.parts.emplace_back(function_call{
        "", with.chance.one_in(3) ? "slow" : "quick", json::object()});
    reply(model_response(std::move(calls)));
  }

  const pipeline_setup_ptr with_;
};

json work(pipeline_setup& with, tool_context& context, bool is_slow) {
  const auto token = with.told.new_token();
  if (is_slow)
    with.in.pause(with.chance.time(30ms));
  auto changes = make_changes(with.chance, with.changes, token, true);
  // Compare-and-set is mostly left out, because a refused one refuses the whole
  // turn.
  std::erase_if(changes, [&with](const wanted_change& each) {
    return each.kind == operation_kind::compare_and_set
           && !with.chance.one_in(8);
  });
  record(context.state(), changes);
  const auto own = "temp:of_" + token;
  context.state().set(own, token);
  auto recorded = context.state().recorded();
  recorded.drop(scope::temp);
  with.told.recorded[token] = std::move(recorded);
  if (is_slow)
    with.in.pause(with.chance.time(10ms));
  if (context.state().get<std::string>(own, "") != token)
    with.told.complaints.emplace_back(
      context.invocation_id(), "a tool does not read what it has written");
  if (with.chance.one_in(10))
    throw std::runtime_error("told to fail");
  return {{"token", token}};
}

agent make_asker(const std::string& name, const pipeline_setup_ptr& with) {
  std::vector<tool> tools;
  if (!with->chance.one_in(3))
    for (const bool is_slow : {false, true})
      tools.push_back(
        tool({.name = is_slow ? "slow" : "quick",
              .run = [with, is_slow](const json&, tool_context& context) {
                return work(*with, context, is_slow);
              }}));
  return llm({.name = name,
              .model = std::make_shared<moody_model>(with),
              .instruction = "Go on.",
              .tools = std::move(tools),
              .output_key = with->chance.one_in(2) ? "" : "user:any"});
}

agent make_leaf(const std::string& name, const pipeline_setup_ptr& with) {
  return with->chance.one_in(3) ? make_asker(name, with)
                                : make_writer(name, with);
}

agent make_tree(const std::string& name,
                const pipeline_setup_ptr& with,
                std::size_t depth) {
  if (depth == 0 || with->chance.one_in(3))
    return make_leaf(name, with);
  std::vector<agent> below;
  for (auto left = with->chance.below(3) + 1; left > 0; --left)
    below.push_back(
      make_tree(name + "_" + std::to_string(left), with, depth - 1));
  switch (with->chance.below(4)) {
  case 0:
    return sequential(name, std::move(below));
  case 1:
    below.push_back(make_escalator(name + "_end", with));
    return loop({.name = name, .max_iterations = 1 + with->chance.below(2)},
                std::move(below));
  default: {
    static constexpr std::array<lane_failures, 2> ways{lane_failures::fail_fast,
                                                       lane_failures::collect};
    parallel_options options{.name = name,
                             .on_failure = with->chance.pick(ways)};
    if (with->chance.one_in(3))
      options.lanes_max = 1;
    options.isolate_temp = with->chance.one_in(3);
    return parallel(std::move(options), std::move(below));
  }
  }
}

} // namespace

agent make_pipeline(const pipeline_setup_ptr& with) {
  auto tree = make_tree("root", with, 2);
  if (!with->overwrites)
    return tree;
  return parallel({.name = "around", .on_failure = lane_failures::collect},
                  {std::move(tree),
                   make_overwriter("first", with),
                   make_overwriter("second", with)});
}

} // namespace troupe::testing

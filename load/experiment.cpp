#include "troupe/load/experiment.hpp"

#include "troupe/agents/files/fields.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <random>
#include <set>
#include <utility>

namespace troupe::load {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{16} << 20U;
constexpr std::size_t yaml_depth_max = 64;
constexpr std::size_t yaml_nodes_max = std::size_t{1} << 20U;
constexpr std::size_t runs_max = 1'000'000;

constexpr std::array<std::string_view, 11> experiment_fields{"agent",
                                                             "at_once",
                                                             "deadline",
                                                             "from",
                                                             "inputs",
                                                             "keys",
                                                             "name",
                                                             "repeats",
                                                             "seed",
                                                             "state",
                                                             "variants"};
constexpr std::array<std::string_view, 4> variant_fields{
  "agents", "latency", "model", "tool_results"};
constexpr std::array<std::string_view, 4> fork_fields{
  "app", "revision", "session", "user"};

template <class Names>
result<void> check_fields(const field_reader& fields,
                          std::string_view what,
                          const Names& known) {
  for (const auto& each : fields.node().fields)
    if (std::ranges::find(known, each.name) == known.end())
      return fail_at({&fields.file(), each.line},
                     fmt::format("{} has no field '{}'; it has {}",
                                 what,
                                 each.name,
                                 fmt::join(known, ", ")));
  return {};
}

// Characters that are allowed in names of apps, files and tables.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64
         && std::ranges::all_of(name, [](unsigned char next) {
              return std::isalnum(next) != 0 || next == '_' || next == '-'
                     || next == '.';
            });
}

result<latencies> read_latencies(const field_reader& fields) {
  latencies delays;
  auto written = fields.object("latency");
  if (!written)
    return written.error();
  if (!*written)
    return delays;
  const auto fail = [&fields](const error& why) {
    return fail_at(fields.at("latency"), why.message());
  };
  auto all = latency_from_json(**written);
  if (all) {
    delays.emplace("*", *all);
    return delays;
  }
  // Latencies by agent name, unless the fields are those of one latency for all
  // agents.
  for (const auto& [agent, held] : (*written)->items()) {
    if (!held.is_object())
      return fail(all.error());
    auto one = latency_from_json(held);
    if (!one)
      return fail((*written)->size() == 1 ? all.error() : one.error());
    delays.emplace(agent, *one);
  }
  return delays;
}

std::string shortened(const json& data) {
  constexpr std::size_t length_max = 60;
  auto text = data.is_string() ? data.get<std::string>() : data.dump();
  std::ranges::replace(text, '\n', ' ');
  if (text.size() > length_max) {
    // Cut between characters, not within one.
    auto end = length_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
      --end;
    text = text.substr(0, end) + "...";
  }
  return text;
}

result<variant> read_variant(const fs::path& file,
                             const yaml_node::field& written) {
  variant read;
  read.name = written.name;
  if (!is_plain_name(read.name))
    return fail_at({&file, written.line},
                   fmt::format("variant '{}': a name has letters, digits, '_', "
                               "'-' and '.', at most 64",
                               read.name));
  if (written.value->kind == yaml_node::form::null)
    return read;
  if (written.value->kind != yaml_node::form::map)
    return fail_at({&file, written.line},
                   fmt::format("variant '{}' must be a mapping, not {}",
                               read.name,
                               to_string(written.value->kind)));
  const field_reader fields(file, *written.value);
  if (auto fit = check_fields(fields, "a variant", variant_fields); !fit)
    return fit.error();
  auto agents = fields.object("agents");
  if (!agents)
    return agents.error();
  if (*agents)
    for (const auto& [name, changed] : (*agents)->items()) {
      if (!changed.is_object())
        return fail_at(
          fields.at("agents"),
          fmt::format("agent '{}' must be a mapping of fields", name));
      read.agents[name] = changed;
      for (const auto& [field, held] : changed.items())
        read.changes.push_back(
          fmt::format("{}.{}: {}", name, field, shortened(held)));
    }
  auto model = fields.text("model");
  if (!model)
    return model.error();
  read.model = model->value_or("");
  if (!read.model.empty())
    read.changes.push_back("model: " + read.model);
  auto delays = read_latencies(fields);
  if (!delays)
    return delays.error();
  read.delays = std::move(*delays);
  if (!read.delays.empty())
    read.changes.push_back(
      "latency: " + shortened(fields.object("latency").value().value()));
  auto results = fields.object("tool_results");
  if (!results)
    return results.error();
  if (*results)
    for (const auto& [tool, result] : (*results)->items()) {
      read.tool_results[tool] = result;
      read.changes.push_back(
        fmt::format("result of {}: {}", tool, shortened(result)));
    }
  return read;
}

result<std::vector<std::string>> read_texts(const field_reader& fields,
                                            std::string_view name) {
  auto items = fields.list(name);
  if (!items)
    return items.error();
  std::vector<std::string> texts;
  for (const auto& item : *items) {
    if (item->kind != yaml_node::form::scalar)
      return fail_at({&fields.file(), item->line},
                     fmt::format("'{}' must be a list of texts", name));
    texts.push_back(item->text);
  }
  return texts;
}

result<void> read_variants(const field_reader& fields, experiment& read) {
  const auto* written = fields.find("variants");
  if (written == nullptr) {
    read.variants.push_back({.name = "as_it_is"});
    return {};
  }
  if (written->kind != yaml_node::form::map || written->fields.empty())
    return fail_at(
      fields.at("variants"),
      "'variants' must be a mapping from names to their differences");
  for (const auto& each : written->fields) {
    auto one = read_variant(fields.file(), each);
    if (!one)
      return one.error();
    read.variants.push_back(std::move(*one));
  }
  return {};
}

// A whole number of at least 0; unset if the field is left out.
result<std::optional<std::uint64_t>> read_number(const field_reader& fields,
                                                 std::string_view name) {
  const auto* written = fields.find(name);
  if (written == nullptr)
    return std::optional<std::uint64_t>();
  const auto number = to_json(*written);
  if (!number.is_number_unsigned())
    return fail_at(
      fields.at(name),
      fmt::format("'{}' must be a whole number of at least 0", name));
  return std::optional(number.get<std::uint64_t>());
}

result<void> read_from(const field_reader& fields, experiment& read) {
  const auto* written = fields.find("from");
  if (written == nullptr)
    return {};
  if (written->kind != yaml_node::form::map)
    return fail_at(fields.at("from"),
                   "'from' must be a mapping with 'app', 'user', 'session' and "
                   "'revision'");
  const field_reader point(fields.file(), *written);
  if (auto fit = check_fields(point, "'from'", fork_fields); !fit)
    return fit;
  auto& from = read.from.emplace();
  from.session.user = "user";
  for (const auto& [name, target] : {std::pair("app", &from.session.app),
                                     std::pair("user", &from.session.user),
                                     std::pair("session", &from.session.id)}) {
    auto text = point.text(name);
    if (!text)
      return text.error();
    *target = text->value_or(*target);
  }
  auto revision = read_number(point, "revision");
  if (!revision)
    return revision.error();
  from.revision = *revision;
  if (from.session.app.empty() || from.session.id.empty())
    return fail_at(fields.at("from"), "'from' needs 'app' and 'session'");
  if (const auto valid = check_key(from.session); !valid)
    return fail_at(fields.at("from"), valid.error().message());
  return {};
}

result<void> read_state(const field_reader& fields, experiment& read) {
  auto state = fields.object("state");
  if (!state)
    return state.error();
  read.state = state->value_or(json::object());
  for (const auto& [key, unused] : read.state.items())
    if (const auto fit = check_key(key); !fit)
      return fail_at(fields.at("state"), fit.error().message());
    else if (fit->where == scope::temp)
      return fail_at(fields.at("state"),
                     fmt::format("'{}': a session has no temp: state when it "
                                 "is created",
                                 key));
  auto keys = read_texts(fields, "keys");
  if (!keys)
    return keys.error();
  read.keys = std::move(*keys);
  for (const auto& key : read.keys)
    if (auto fit = check_key(key); !fit)
      return fail_at(fields.at("keys"), fit.error().message());
  return {};
}

result<experiment> read_fields(const field_reader& fields) {
  if (auto fit = check_fields(fields, "an experiment", experiment_fields); !fit)
    return fit.error();
  experiment read;
  read.file = fields.file();
  auto name = fields.text("name");
  if (!name)
    return name.error();
  read.name = name->value_or(fields.file().stem().string());
  if (!is_plain_name(read.name))
    return fail_at(fields.at("name"),
                   fmt::format("the name '{}' has more than letters, digits, "
                               "'_', '-' and '.', or more than 64",
                               read.name));
  auto agent = fields.text("agent");
  if (!agent)
    return agent.error();
  if (agent->value_or("").empty())
    return fail_at(fields.at("agent"),
                   "expected a field 'agent', the path of an agent file");
  read.agent_file = (fields.file().parent_path() / **agent).lexically_normal();
  auto inputs = read_texts(fields, "inputs");
  if (!inputs)
    return inputs.error();
  read.inputs = std::move(*inputs);
  if (read.inputs.empty())
    return fail_at(fields.at("inputs"),
                   "expected a field 'inputs', a list of at least one message");
  for (const auto& [field, target] : {std::pair("repeats", &read.repeats),
                                      std::pair("at_once", &read.at_once)}) {
    auto count = fields.count(field);
    if (!count)
      return count.error();
    *target = static_cast<std::size_t>(count->value_or(*target));
  }
  auto seed = read_number(fields, "seed");
  if (!seed)
    return seed.error();
  read.seed = seed->value_or(read.seed);
  auto deadline = fields.seconds("deadline");
  if (!deadline)
    return deadline.error();
  read.deadline = *deadline;
  if (auto done = read_from(fields, read); !done)
    return done.error();
  if (auto done = read_state(fields, read); !done)
    return done.error();
  if (auto fit = check_start(read); !fit)
    return fail_at(fields.at("state"), fit.error().message());
  if (auto done = read_variants(fields, read); !done)
    return done.error();
  if (auto fit = check_amounts(read); !fit)
    return fail_at(fields.at(), fit.error().message());
  return read;
}

// Equal on every machine: the seed for the random choices of one run.
std::uint64_t seed_of(const experiment& planned, const planned_run& which) {
  // seed_seq keeps 32 bits of each number.
  std::seed_seq sequence{planned.seed >> 32U,
                         planned.seed,
                         static_cast<std::uint64_t>(which.input),
                         static_cast<std::uint64_t>(which.repeat)};
  std::array<std::uint32_t, 2> words{};
  sequence.generate(words.begin(), words.end());
  return std::uint64_t{words[0]} << 32U | words[1];
}

using name_set = std::set<std::string, std::less<>>;

// Collects the names of an agent, of all agents below it, including those that
// are tools, and of their tools. An agent that the program has made is a tool
// like any other: its own tools cannot be answered from outside.
void collect_names(const agent& of,
                   const tool_registry& own,
                   name_set& agents,
                   name_set& tools) {
  agents.insert(of.name());
  for (const auto& below : of.sub_agents())
    collect_names(below, own, agents, tools);
  if (const auto* options = std::get_if<llm_options>(&of.kind()))
    for (const auto& each : options->tools) {
      tools.insert(each.name());
      name_set unreachable;
      if (each.options().as_agent)
        collect_names(*each.options().as_agent,
                      own,
                      agents,
                      own.contains(each.name()) ? unreachable : tools);
    }
}

result<void> check_names(const variant& chosen,
                         const agent& root,
                         const tool_registry& own) {
  name_set agents;
  name_set tools;
  collect_names(root, own, agents, tools);
  for (const auto& [name, unused] : chosen.delays)
    if (name != "*" && !agents.contains(name))
      return error(
        errc::invalid_argument,
        fmt::format(
          "a delay names agent '{}', which does not exist; the agents are {}",
          name,
          fmt::join(agents, ", ")));
  for (const auto& [name, unused] : chosen.tool_results)
    if (!tools.contains(name))
      return error(
        errc::invalid_argument,
        fmt::format("a result names tool '{}', which no agent has; {}",
                    name,
                    tools.empty() ? "the agents have no tools"
                                  : fmt::format("the tools are {}",
                                                fmt::join(tools, ", "))));
  return {};
}

before_tool_callback
answer_with(std::map<std::string, json, std::less<>> results) {
  return [results = std::move(results)](
           const tool& which, json&, tool_context&) -> std::optional<json> {
    const auto found = results.find(which.name());
    if (found == results.end())
      return std::nullopt;
    return found->second;
  };
}

} // namespace

result<void> check_amounts(const experiment& planned) {
  const auto each = planned.variants.size() * planned.inputs.size();
  if (planned.repeats == 0 || planned.at_once == 0 || each == 0
      || planned.repeats > runs_max || each > runs_max / planned.repeats)
    return error(errc::invalid_argument,
                 fmt::format("variants x inputs x repeats must be from 1 to {} "
                             "runs, one at a time at least",
                             runs_max));
  return {};
}

namespace {

// Another run may have written a key that the sessions of a user share.
error not_of_the_session(const std::string& key, std::string_view field) {
  return {errc::invalid_argument,
          fmt::format("'{}' in '{}': forks share the state of the app and of "
                      "the user with other sessions, so only keys of the "
                      "session can be named",
                      key,
                      field)};
}

} // namespace

result<void> check_start(const experiment& planned) {
  if (!planned.from)
    return {};
  if (const auto valid = check_key(planned.from->session); !valid)
    return valid.error();
  const auto state = delta::from_json(planned.state);
  if (!state)
    return state.error();
  for (const auto& set : state->operations())
    if (set.where != scope::session)
      return not_of_the_session(join_key(set.where, set.name), "state");
  for (const auto& key : planned.keys)
    if (split_key(key).where != scope::session)
      return not_of_the_session(key, "keys");
  return {};
}

fork_point read_fork_point(std::string_view text) {
  fork_point read;
  const auto at = text.rfind('@');
  read.session.id = text;
  if (at == std::string_view::npos)
    return read;
  const auto* const end = text.data() + text.size();
  std::uint64_t revision = 0;
  const auto [rest, failure]
    = std::from_chars(text.data() + at + 1, end, revision);
  if (failure == std::errc() && rest == end) {
    read.session.id = text.substr(0, at);
    read.revision = revision;
  }
  return read;
}

result<experiment> read_experiment(const fs::path& file) {
  const auto text = read_text_file(file, file_bytes_max);
  if (!text)
    return error(
      text.error().code() == errc::not_found ? errc::not_found
                                             : errc::invalid_argument,
      fmt::format("experiment {}: {}", file.string(), text.error().message()));
  const auto root = parse_yaml(*text,
                               {.depth_max = yaml_depth_max,
                                .nodes_max = yaml_nodes_max,
                                .bytes_max = 2 * file_bytes_max,
                                .json_only = file.extension() == ".json"});
  if (!root)
    return fail_at({&file, root.error().line}, root.error().why);
  if (!*root || (*root)->kind != yaml_node::form::map)
    return fail_at({&file, 1},
                   "expected an experiment, a mapping with 'agent'");
  return read_fields(field_reader(file, **root));
}

std::vector<planned_run> plan_runs(const experiment& planned) {
  std::vector<planned_run> runs;
  for (std::size_t repeat = 0; repeat < planned.repeats; ++repeat)
    for (std::size_t input = 0; input < planned.inputs.size(); ++input)
      for (std::size_t which = 0; which < planned.variants.size(); ++which)
        runs.push_back({which, input, repeat});
  std::mt19937_64 random(planned.seed);
  // Not std::shuffle, whose order differs between libraries.
  for (auto left = runs.size(); left > 1; --left)
    std::swap(runs[left - 1], runs[random() % left]);
  return runs;
}

result<agent> make_agents(const experiment& planned,
                          const planned_run& which,
                          const agent_file_options& more) {
  const auto& chosen = planned.variants[which.variant];
  const auto failed = [&](const error& why) {
    return error(why.code(),
                 fmt::format("variant '{}': {}", chosen.name, why.message()));
  };
  const auto open
    = [&more](const model_source& source, const open_model_options& usual) {
        return more.open ? more.open(source, usual) : open_model(source, usual);
      };
  const auto delayed = [&](result<model_ptr> opened) {
    if (opened && !chosen.delays.empty())
      return result<model_ptr>(std::make_shared<delayed_model>(
        std::move(*opened), chosen.delays, seed_of(planned, which)));
    return opened;
  };
  auto options = more;
  options.overrides = chosen.agents;
  if (!chosen.tool_results.empty())
    options.before_tool.insert(options.before_tool.begin(),
                               answer_with(chosen.tool_results));
  options.open
    = [&](const model_source& source, const open_model_options& usual) {
        return delayed(open(source, usual));
      };
  if (!chosen.model.empty()) {
    open_model_options usual;
    usual.allowed_variables = more.allowed_variables;
    usual.dotenv = more.dotenv;
    usual.base = planned.file.parent_path();
    auto model = options.open({.name = chosen.model}, usual);
    if (!model)
      return failed(model.error());
    options.model = std::move(*model);
  } else if (more.model) {
    options.model = delayed(more.model).value();
  }
  auto made = load_agent_file(planned.agent_file, options);
  if (made)
    if (auto known = check_names(chosen, *made, more.tools); !known)
      return failed(known.error());
  return made ? std::move(made) : result<agent>(failed(made.error()));
}

} // namespace troupe::load

#include "troupe/agents/agent_file.hpp"

#include "troupe/agents/files/classes.hpp"
#include "troupe/agents/files/model_reader.hpp"
#include "troupe/agents/files/tool_reader.hpp"
#include "troupe/agents/turns/name.hpp"
#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view scripted_prefix = "scripted:";
constexpr std::size_t agent_file_bytes_max = std::size_t{1} << 20U;
// Limits, so that a small file cannot describe a huge tree by aliases or by
// files that name each other. An inline agent takes two levels: its own, and
// that of the list around it.
constexpr std::size_t yaml_depth_max = 2 * agent_file_depth_max + 8;
constexpr std::size_t yaml_nodes_max = std::size_t{1} << 18U;
constexpr std::size_t yaml_bytes_max = 4 * agent_file_bytes_max;
// Limits for all files together. A file counts each time that it is read, since
// files can name each other as tools again and again.
constexpr std::size_t all_nodes_max = 4 * yaml_nodes_max;
constexpr std::size_t all_bytes_max = 8 * yaml_bytes_max;

// A canonical path, to recognise a file under different names. A path that
// cannot be resolved stays as it is, and fails when it is read.
fs::path identity(const fs::path& file) {
  std::error_code failed;
  auto canonical = fs::weakly_canonical(file, failed);
  return failed ? file.lexically_normal() : canonical;
}

// -- the tree of a file -------------------------------------------------------

result<yaml_node_ptr> parse_file(const fs::path& file,
                                 const std::string& text) {
  auto root = parse_yaml(text,
                         {.depth_max = yaml_depth_max,
                          .nodes_max = yaml_nodes_max,
                          .bytes_max = yaml_bytes_max,
                          .json_only = file.extension() == ".json"});
  if (!root)
    return fail_at({&file, root.error().line}, root.error().why);
  if (!*root)
    return fail_at(
      {&file, 1},
      "expected an agent, a mapping with 'name'; the file is empty");
  return std::move(*root);
}

struct tree_size {
  std::size_t nodes = 0;
  std::size_t bytes = 0; // Of text.
};

// An alias counts as large as its target.
void add_size(const yaml_node& node, tree_size& sum) {
  ++sum.nodes;
  sum.bytes += node.text.size();
  for (const auto& item : node.items)
    add_size(*item, sum);
  for (const auto& field : node.fields) {
    sum.bytes += field.name.size();
    add_size(*field.value, sum);
  }
}

// -- the tree of agents -------------------------------------------------------

class agent_loader {
public:
  explicit agent_loader(const agent_file_options& options)
    : options_(options) {}

  result<agent> load_root(fs::path shown) {
    auto made = load(std::move(shown), nullptr);
    if (!made)
      return made;
    for (const auto& [name, unused] : options_.overrides)
      if (!overridden_.contains(name))
        return error(errc::invalid_argument,
                     fmt::format("an override names agent '{}', which does not "
                                 "exist; the agents are {}",
                                 name,
                                 list_names(seen_, [](const auto& each) {
                                   return each;
                                 })));
    return made;
  }

private:
  // `shown` is the path for error messages. The loader keeps it.
  result<agent> load(fs::path shown, const model_ptr& inherited) {
    files_.push_back(std::make_unique<fs::path>(std::move(shown)));
    const auto& file = *files_.back();
    auto text = read_text_file(file, agent_file_bytes_max);
    if (!text)
      return error(
        text.error().code() == errc::not_found ? errc::not_found
                                               : errc::invalid_argument,
        fmt::format(
          "agent file {}: {}", file.string(), text.error().message()));
    auto root = parse_file(file, *text);
    if (!root)
      return root.error();
    if (auto counted = count(file, *text, **root); !counted)
      return counted.error();
    open_files_.push_back(identity(file));
    auto made = make(file, **root, inherited);
    open_files_.pop_back();
    return made;
  }

  // Adds the size of a file. Fails if all files read so far are too large
  // together.
  result<void>
  count(const fs::path& file, const std::string& text, const yaml_node& root) {
    tree_size size;
    add_size(root, size);
    nodes_ += size.nodes;
    // Comments count, too: parsing them takes time.
    bytes_ += std::max(text.size(), size.bytes);
    for (const auto& [sum, limit, what] :
         {std::tuple(nodes_, all_nodes_max, "values"),
          std::tuple(bytes_, all_bytes_max, "bytes")})
      if (sum > limit)
        return fail_at({&file, 1},
                       fmt::format("more than {} {} in all files; aliases and "
                                   "files that are read again count each time",
                                   limit,
                                   what));
    return {};
  }

  result<agent> make(const fs::path& file,
                     const yaml_node& node,
                     const model_ptr& inherited) {
    if (depth_ == agent_file_depth_max)
      return fail_at(
        {&file, node.line},
        fmt::format("agents are nested deeper than {}", agent_file_depth_max));
    ++depth_;
    auto made = make_below(file, node, inherited);
    --depth_;
    return made;
  }

  // The agent's node with the overrides applied; null if it has none.
  result<yaml_node_ptr> changed(const fs::path& file, const yaml_node& node) {
    const auto* name
      = node.kind == yaml_node::form::map ? node.find("name") : nullptr;
    if (name == nullptr)
      return yaml_node_ptr();
    seen_.insert(name->value->text);
    const auto found = options_.overrides.find(name->value->text);
    if (found == options_.overrides.end())
      return yaml_node_ptr();
    overridden_.insert(found->first);
    if (!found->second.is_object() || found->second.contains("name"))
      return fail_at({&file, node.line},
                     fmt::format("the override of agent '{}' must be a mapping "
                                 "of fields without 'name'",
                                 found->first));
    auto made = std::make_shared<yaml_node>(node);
    for (const auto& [field, held] : found->second.items()) {
      auto value = to_yaml(held, node.line);
      const auto old
        = std::ranges::find(made->fields, field, &yaml_node::field::name);
      if (old != made->fields.end())
        old->value = std::move(value);
      else
        made->fields.push_back({field, node.line, 0, std::move(value)});
    }
    return yaml_node_ptr(std::move(made));
  }

  result<agent> make_below(const fs::path& file,
                           const yaml_node& written,
                           const model_ptr& inherited) {
    const auto instead = changed(file, written);
    if (!instead)
      return instead.error();
    const auto& node = *instead ? **instead : written;
    const field_reader fields(file, node);
    if (node.kind != yaml_node::form::map)
      return fail_at(fields.at(),
                     fmt::format("expected an agent, a mapping with 'name', "
                                 "not {}",
                                 to_string(node.kind)));
    auto kind = read_class(fields);
    if (!kind)
      return kind.error();
    if (auto checked = check_fields(fields, *kind); !checked)
      return checked.error();
    auto name = read_name(fields);
    if (!name)
      return name.error();
    auto body = read_body(fields, *kind, inherited);
    if (!body)
      return body.error();
    if (auto filled = fill_common(fields, std::move(*name), *body); !filled)
      return filled.error();
    const auto* llm = std::get_if<llm_options>(&*body);
    const auto below = llm != nullptr ? llm->model : inherited;
    auto sub_agents = read_sub_agents(file, fields, below);
    if (!sub_agents)
      return sub_agents.error();
    try {
      return make_agent(std::move(*body), std::move(*sub_agents));
    } catch (const error& failure) {
      return fail_at(fields.at(), failure.message());
    }
  }

  result<agent::body> read_body(const field_reader& fields,
                                agent_class kind,
                                const model_ptr& inherited) {
    switch (kind) {
    case agent_class::llm: {
      auto options = read_llm(fields, inherited);
      if (!options)
        return options.error();
      return agent::body(std::move(*options));
    }
    case agent_class::sequential:
      return agent::body(sequential_options());
    case agent_class::parallel: {
      parallel_options options;
      if (auto read = read_lanes(fields, options); !read)
        return read.error();
      if (auto read = set(options.isolate_temp, fields.flag("isolate_temp"));
          !read)
        return read.error();
      return agent::body(std::move(options));
    }
    case agent_class::map: {
      map_options options;
      if (auto read = read_lanes(fields, options); !read)
        return read.error();
      for (const auto& [field, target] :
           {std::pair("items_key", &options.items_key),
            std::pair("output_key", &options.output_key)})
        if (auto read = read_key(fields, field, *target); !read)
          return read.error();
      if (options.items_key.empty())
        return fail_at(fields.at(), "a MapAgent needs a field 'items_key'");
      return agent::body(std::move(options));
    }
    case agent_class::loop: {
      loop_options options;
      if (auto read
          = set(options.max_iterations, fields.count("max_iterations"));
          !read)
        return read.error();
      return agent::body(std::move(options));
    }
    }
    return error(errc::internal, "unknown class of agents");
  }

  // Fills in the fields that all kinds of agents have.
  result<void> fill_common(const field_reader& fields,
                           std::string name,
                           agent::body& body) const {
    auto description = fields.text("description");
    if (!description)
      return description.error();
    auto before = read_callbacks(
      fields, "before_agent_callbacks", options_.callbacks.agent);
    if (!before)
      return before.error();
    auto after = read_callbacks(
      fields, "after_agent_callbacks", options_.callbacks.agent);
    if (!after)
      return after.error();
    std::visit(
      [&](auto& options) {
        options.name = std::move(name);
        options.description = description->value_or("");
        options.before_agent = std::move(*before);
        options.after_agent = std::move(*after);
      },
      body);
    return {};
  }

  // Assigns a value that was read successfully.
  template <class Target, class Read>
  static result<void> set(Target& target, result<Read> read) {
    if (!read)
      return read.error();
    target = std::move(*read);
    return {};
  }

  static result<void> set_text(std::string& target,
                               result<std::optional<std::string>> read) {
    if (!read)
      return read.error();
    target = read->value_or("");
    return {};
  }

  // Reads a state key; leaves the target empty if the field is left out.
  static result<void> read_key(const field_reader& fields,
                               std::string_view name,
                               std::string& target) {
    if (auto read = set_text(target, fields.text(name)); !read)
      return read;
    if (!target.empty())
      if (auto checked = check_key(target); !checked)
        return fail_at(fields.at(name),
                       fmt::format("{}: {}", name, checked.error().message()));
    return {};
  }

  // Reads the fields of parallel and map agents.
  template <class Options>
  static result<void> read_lanes(const field_reader& fields, Options& options) {
    if (auto read = set(options.lanes_max, fields.count("lanes_max")); !read)
      return read;
    if (auto read = set(options.lane_timeout, fields.seconds("lane_timeout"));
        !read)
      return read;
    constexpr std::array<std::string_view, 3> policies{
      "fail_fast", "collect", "quorum"};
    auto policy = fields.choice("on_failure", policies);
    if (!policy)
      return policy.error();
    options.on_failure = static_cast<lane_failures>(policy->value_or(0));
    auto quorum = fields.count("quorum");
    if (!quorum)
      return quorum.error();
    options.quorum = static_cast<std::size_t>(quorum->value_or(0));
    return {};
  }

  // Reads a JSON Schema, if the field is there.
  static result<std::optional<json_schema>>
  read_schema(const field_reader& fields, std::string_view name) {
    auto text = fields.object(name);
    if (!text)
      return text.error();
    if (!*text)
      return std::optional<json_schema>();
    try {
      return std::optional(json_schema(std::move(**text)));
    } catch (const error& failure) {
      return fail_at(fields.at(name),
                     fmt::format("{}: {}", name, failure.message()));
    }
  }

  // Reads callbacks by name: `[name, {name: name}, …]`.
  template <class Callback>
  static result<std::vector<Callback>>
  read_callbacks(const field_reader& fields,
                 std::string_view name,
                 const std::map<std::string, Callback, std::less<>>& known) {
    auto items = fields.list(name);
    if (!items)
      return items.error();
    std::vector<Callback> callbacks;
    for (const auto& item : *items) {
      auto called = item_name(fields.file(), *item, "callback");
      if (!called)
        return called.error();
      const auto found = known.find(*called);
      if (found == known.end())
        return fail_at(
          {&fields.file(), item->line},
          fmt::format("unknown callback '{}' in {}; known ones: {}",
                      *called,
                      name,
                      known.empty() ? "none"
                                    : list_names(known, [](const auto& row) {
                                        return row.first;
                                      })));
      callbacks.push_back(found->second);
    }
    return callbacks;
  }

  result<void> read_llm_callbacks(const field_reader& fields,
                                  llm_options& options) const {
    const auto& known = options_.callbacks;
    result<void> read;
    const auto fill
      = [&](std::string_view name, const auto& called, auto& target) {
          if (read)
            read = set(target, read_callbacks(fields, name, called));
        };
    fill("before_model_callbacks", known.before_model, options.before_model);
    fill("after_model_callbacks", known.after_model, options.after_model);
    fill(
      "on_model_error_callbacks", known.on_model_error, options.on_model_error);
    fill("before_tool_callbacks", known.before_tool, options.before_tool);
    fill("after_tool_callbacks", known.after_tool, options.after_tool);
    fill("on_tool_error_callbacks", known.on_tool_error, options.on_tool_error);
    return read;
  }

  result<std::string> read_name(const field_reader& fields) {
    auto name = fields.text("name");
    if (!name)
      return name.error();
    const auto at = fields.at("name");
    if (!*name)
      return fail_at(at, "expected a field 'name', which every agent needs");
    if (!is_identifier(**name) || **name == "user")
      return fail_at(at,
                     fmt::format("agent name '{}' is not allowed; expected "
                                 "letters, digits and '_', not starting with a "
                                 "digit, and not 'user'",
                                 **name));
    const auto [first, is_new] = names_.emplace(**name, to_string(at));
    if (!is_new)
      return fail_at(at,
                     fmt::format("agent name '{}' comes twice in the tree, "
                                 "first at {}; names are unique",
                                 **name,
                                 first->second));
    // Agents that are tools count, too: their trees can name the same files
    // again and again.
    if (++agents_ > agent_file_agents_max)
      return fail_at(at,
                     fmt::format("more than {} agents, with those of tools",
                                 agent_file_agents_max));
    return std::move(**name);
  }

  result<llm_options> read_llm(const field_reader& fields,
                               const model_ptr& inherited) {
    llm_options options;
    std::string instruction;
    std::string global;
    for (const auto& [field, target] :
         {std::pair("instruction", &instruction),
          std::pair("global_instruction", &global),
          std::pair("static_instruction", &options.static_instruction)})
      if (auto read = set_text(*target, fields.text(field)); !read)
        return read.error();
    options.instruction = std::move(instruction);
    options.global_instruction = std::move(global);
    if (auto read = read_key(fields, "output_key", options.output_key); !read)
      return read.error();

    constexpr std::array<std::string_view, 3> contents{
      "default", "none", "since_summary"};
    auto which = fields.choice("include_contents", contents);
    if (!which)
      return which.error();
    options.include_contents
      = static_cast<enum include_contents>(which->value_or(0));
    if (auto most = set(options.contents_max, fields.count("contents_max"));
        !most)
      return most.error();

    auto config = fields.object("generate_content_config");
    if (!config)
      return config.error();
    options.generation_config = config->value_or(json::object());
    result<void> read;
    const auto take = [&read](auto& target, auto&& taken) {
      if (read)
        read = set(target, std::forward<decltype(taken)>(taken));
    };
    take(options.output_schema, read_schema(fields, "output_schema"));
    take(options.input_schema, read_schema(fields, "input_schema"));
    take(options.disallow_transfer_to_parent,
         fields.flag("disallow_transfer_to_parent"));
    take(options.disallow_transfer_to_peers,
         fields.flag("disallow_transfer_to_peers"));
    if (!read)
      return read.error();
    if (auto called = read_llm_callbacks(fields, options); !called)
      return called.error();
    if (auto given = set(options.model, read_model(fields, inherited)); !given)
      return given.error();
    if (auto given = set(options.tools, read_tools(fields, options.model));
        !given)
      return given.error();
    return options;
  }

  // Each agent that is a tool has its own tree. Its names may repeat names of
  // this tree.
  result<std::vector<tool>> read_tools(const field_reader& fields,
                                       const model_ptr& model) {
    return tool_reader(
             options_.tools,
             [this, &model](const fs::path& file, const yaml_node& node) {
               auto outside = std::exchange(names_, {});
               auto which = read_below(file, node, model);
               names_ = std::move(outside);
               return which;
             })
      .read(fields);
  }

  result<model_ptr> read_model(const field_reader& fields,
                               const model_ptr& inherited) {
    auto source = read_model_source(fields);
    if (!source)
      return source.error();
    if (options_.model)
      return options_.model;
    const auto at = fields.at("model");
    if (!*source) {
      if (inherited)
        return inherited;
      return fail_at(at,
                     "expected a field 'model', such as gemini-2.5-pro or "
                     "scripted:replies.json; --model gives one to every agent");
    }
    const auto base = at.file->parent_path();
    // Agents with the same source share one model: the replies of a script are
    // used up together, and limits hold for all of them.
    auto key = **source;
    if (key.name.starts_with(scripted_prefix))
      key.name
        = identity(base / key.name.substr(scripted_prefix.size())).string();
    const auto known = std::ranges::find(
      models_, key, &std::pair<model_source, model_ptr>::first);
    if (known != models_.end())
      return known->second;
    auto model
      = options_.open
          ? options_.open(**source, base)
          : open_model(
            **source,
            {.allowed_variables = options_.allowed_variables, .base = base});
    if (!model)
      return fail_at(at, model.error().message());
    models_.emplace_back(std::move(key), *model);
    return model;
  }

  result<std::vector<agent>> read_sub_agents(const fs::path& file,
                                             const field_reader& fields,
                                             const model_ptr& inherited) {
    auto items = fields.list("sub_agents");
    if (!items)
      return items.error();
    std::vector<agent> made;
    for (const auto& item : *items) {
      auto below = read_below(file, *item, inherited);
      if (!below)
        return below.error();
      made.push_back(std::move(*below));
    }
    return made;
  }

  // Reads an agent that is written here or named by a `config_path`.
  result<agent> read_below(const fs::path& file,
                           const yaml_node& item,
                           const model_ptr& inherited) {
    const auto* path
      = item.kind == yaml_node::form::map ? item.find("config_path") : nullptr;
    return path != nullptr ? follow(file, item, *path, inherited)
                           : make(file, item, inherited);
  }

  // Reads the agent in the file that a `config_path` names.
  result<agent> follow(const fs::path& file,
                       const yaml_node& item,
                       const yaml_node::field& path,
                       const model_ptr& inherited) {
    const file_place at{&file, path.line};
    if (path.value->kind != yaml_node::form::scalar || path.value->text.empty())
      return fail_at(at, "'config_path' must be the path of an agent file");
    for (const auto& [field, line, column, unused] : item.fields)
      if (field != "config_path")
        return fail_at(
          {&file, line},
          fmt::format("unknown field '{}' beside config_path", field));
    if (path.value->text.find('\0') != std::string::npos)
      return fail_at(at, "'config_path' holds a NUL");
    auto next = (file.parent_path() / path.value->text).lexically_normal();
    std::error_code failed;
    if (fs::is_directory(next, failed))
      next /= "root_agent.yaml";
    if (!fs::exists(next, failed))
      return fail_at(
        at, fmt::format("config_path '{}': no such file", path.value->text));
    const auto canonical = identity(next);
    const auto open = std::ranges::find(open_files_, canonical);
    if (open != open_files_.end()) {
      std::string chain;
      for (auto step = open; step != open_files_.end(); ++step)
        chain += step->filename().string() + " -> ";
      return fail_at(at,
                     fmt::format("config_path goes in a circle: {}{}",
                                 chain,
                                 canonical.filename().string()));
    }
    if (depth_ == agent_file_depth_max)
      return fail_at(
        at,
        fmt::format("agents are nested deeper than {}", agent_file_depth_max));
    auto made = load(std::move(next), inherited);
    if (!made && made.error().code() == errc::not_found)
      return fail_at(at, made.error().message());
    return made;
  }

  // Outlives the loader, which exists during one `load_agent_file`.
  const agent_file_options& options_;
  std::vector<std::unique_ptr<const fs::path>> files_;
  std::vector<fs::path> open_files_;
  std::size_t depth_ = 0;
  std::size_t agents_ = 0;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, std::string, std::less<>> names_;
  std::vector<std::pair<model_source, model_ptr>> models_;
  std::set<std::string, std::less<>> seen_;       // Names of all agents.
  std::set<std::string, std::less<>> overridden_; // Used overrides, by agent.
};

} // namespace

result<agent> load_agent_file(const std::filesystem::path& file,
                              const agent_file_options& options) {
  std::error_code unused;
  auto found = fs::is_directory(file, unused) ? file / "root_agent.yaml" : file;
  return agent_loader(options).load_root(std::move(found));
}

} // namespace troupe

#include "troupe/agents/agent_file.hpp"

#include "troupe/agents/files/access.hpp"
#include "troupe/agents/files/classes.hpp"
#include "troupe/agents/files/mcp_reader.hpp"
#include "troupe/agents/files/model_reader.hpp"
#include "troupe/agents/files/named_toolsets.hpp"
#include "troupe/agents/files/options_reader.hpp"
#include "troupe/agents/files/python_name.hpp"
#include "troupe/agents/files/stand_ins.hpp"
#include "troupe/agents/files/tool_reader.hpp"
#include "troupe/agents/files/vendor_tool_reader.hpp"
#include "troupe/agents/files/workflow_reader.hpp"
#include "troupe/agents/turns/name.hpp"
#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    : options_(options),
      access_(options.allowed_commands,
              options.allowed_variables,
              options.dotenv,
              options.only_shown) {}

  result<agent> load_root(fs::path shown) {
    const auto text = read_regular_file(shown, agent_file_bytes_max);
    if (!text)
      return error(
        text.error().code() == errc::not_found ? errc::not_found
                                               : errc::invalid_argument,
        fmt::format(
          "agent file {}: {}", shown.string(), text.error().message()));
    auto made = load(std::move(shown), *text, nullptr);
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
    if (auto opened = toolsets_.open(
          options_.only_shown ? shown_toolset : options_.open_toolset);
        !opened)
      return opened.error();
    return made;
  }

private:
  // `shown` is the path for error messages. The loader keeps it.
  result<agent>
  load(fs::path shown, const std::string& text, const model_ptr& inherited) {
    files_.push_back(std::make_unique<fs::path>(std::move(shown)));
    const auto& file = *files_.back();
    auto root = parse_file(file, text);
    if (!root)
      return root.error();
    if (auto counted = count(file, text, **root); !counted)
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
    auto body = read_options(fields, *kind, options_.callbacks);
    if (!body)
      return body.error();
    if (*kind == agent_class::workflow) {
      if (auto filled = read_common_options(fields, options_.callbacks, *body);
          !filled)
        return filled.error();
      return make_workflow(fields,
                           std::move(*name),
                           std::move(std::get<compiled_workflow>(*body)),
                           inherited);
    }
    auto* llm = std::get_if<llm_options>(&*body);
    if (llm != nullptr)
      if (auto filled = read_model_and_tools(fields, inherited, *llm); !filled)
        return filled.error();
    if (llm != nullptr)
      llm->before_tool.insert(llm->before_tool.begin(),
                              options_.before_tool.begin(),
                              options_.before_tool.end());
    if (auto filled = read_common_options(fields, options_.callbacks, *body);
        !filled)
      return filled.error();
    std::visit([&name](auto& options) { options.name = std::move(*name); },
               *body);
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

  result<agent> make_workflow(const field_reader& fields,
                              std::string name,
                              compiled_workflow common,
                              const model_ptr& inherited) {
    const node_sources sources{
      .read_agent =
        [&](const fs::path& file, const yaml_node& node) {
          return read_below(file, node, inherited);
        },
      .read_tool
      = [&](const fs::path& file, const yaml_node& item) -> result<tool> {
        yaml_node list;
        list.kind = yaml_node::form::list;
        list.items.push_back(std::make_shared<yaml_node>(item));
        yaml_node outer;
        outer.kind = yaml_node::form::map;
        outer.line = item.line;
        outer.fields.push_back(
          {"tools", item.line, 0, std::make_shared<yaml_node>(list)});
        auto made = read_tools(field_reader(file, outer), inherited);
        if (!made)
          return made.error();
        return std::move(made->front());
      },
      .find_tool = [&](const std::string& wanted) -> std::optional<tool> {
        const auto found = options_.tools.find(wanted);
        if (found != options_.tools.end())
          return options_.only_shown ? shown_tool(found->second)
                                     : found->second;
        return options_.only_shown ? shown_program_tool(wanted) : std::nullopt;
      }};
    auto made = read_workflow(fields, sources);
    if (!made)
      return made.error();
    made->name = std::move(name);
    made->description = std::move(common.description);
    made->before_agent = std::move(common.before_agent);
    made->after_agent = std::move(common.after_agent);
    try {
      return workflow(std::move(*made));
    } catch (const error& failure) {
      return fail_at(fields.at("edges"), failure.message());
    }
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

  result<void> read_model_and_tools(const field_reader& fields,
                                    const model_ptr& inherited,
                                    llm_options& options) {
    auto model = read_model(fields, inherited);
    if (!model)
      return model.error();
    options.model = std::move(*model);
    auto tools = read_tools(fields, options.model);
    if (!tools)
      return tools.error();
    options.tools = std::move(*tools);
    if (auto read = read_toolsets(fields, options); !read)
      return read;
    return read_tools_of_vendor(fields, options);
  }

  // Checks each tool by itself, to name its line.
  result<void> read_tools_of_vendor(const field_reader& fields,
                                    llm_options& options) {
    auto read = read_vendor_tools(fields, options_.tools);
    if (!read)
      return read.error();
    const bool beside_functions
      = !options.tools.empty() || !options.toolsets.empty();
    for (auto& each : *read) {
      if (auto fit
          = options.model->check_vendor_tools({each.which}, beside_functions);
          !fit)
        return fail_at(each.at,
                       fmt::format("agent '{}': {}",
                                   fields.find("name")->text,
                                   fit.error().message()));
      options.vendor_tools.push_back(std::move(each.which));
    }
    return {};
  }

  // The sets are opened when the whole tree was read. Until then the agent has
  // a stand-in.
  result<void> read_toolsets(const field_reader& fields, llm_options& options) {
    auto items = fields.list("tools");
    if (!items)
      return items.error();
    for (const auto& item : *items) {
      if (!is_mcp_toolset(*item))
        continue;
      const field_reader of(fields.file(), *item);
      if (!options_.open_toolset && !options_.only_shown)
        return fail_at(of.at(),
                       "this program starts no MCP servers; set "
                       "agent_file_options::open_toolset to a function that "
                       "calls mcp_tools, or remove McpToolset");
      auto source = read_mcp_toolset(of, access_);
      if (!source)
        return source.error();
      options.toolsets.push_back(toolsets_.add(of.at(), *source));
    }
    return {};
  }

  // Each agent that is a tool has its own tree. Its names may repeat names of
  // this tree.
  result<std::vector<tool>> read_tools(const field_reader& fields,
                                       const model_ptr& model) {
    auto made = tool_reader(
                  options_.tools,
                  access_,
                  [this, &model](const fs::path& file, const yaml_node& node) {
                    auto outside = std::exchange(names_, {});
                    auto which = read_below(file, node, model);
                    names_ = std::move(outside);
                    return which;
                  })
                  .read(fields);
    if (made && options_.only_shown)
      std::ranges::transform(*made, made->begin(), shown_tool);
    return made;
  }

  result<model_ptr> read_model(const field_reader& fields,
                               const model_ptr& inherited) {
    auto sources = read_model_sources(fields);
    if (!sources)
      return sources.error();
    if (options_.model)
      return options_.model;
    if (sources->empty() && inherited)
      return inherited;
    // Such an agent runs with `agent_file_options::model` only.
    if (sources->empty() && options_.only_shown)
      return shown_model({});
    if (sources->empty())
      return fail_at(fields.at("model"),
                     "expected a field 'model', such as gemini-2.5-pro or "
                     "scripted:replies.json; --model gives one to every agent");
    std::vector<model_ptr> opened;
    for (const auto& each : *sources) {
      auto model = open_source(each.source, {&fields.file(), each.line});
      if (!model)
        return model;
      opened.push_back(std::move(*model));
    }
    return opened.size() == 1 ? opened.front() : in_turn(std::move(opened));
  }

  // Agents with the same source share one model: the replies of a script are
  // used up together, and limits hold for all of them.
  result<model_ptr> open_source(const model_source& source,
                                const file_place& at) {
    const auto base = at.file->parent_path();
    auto key = source;
    if (key.name.starts_with(scripted_prefix))
      key.name
        = identity(base / key.name.substr(scripted_prefix.size())).string();
    const auto known = std::ranges::find(
      models_, key, &std::pair<model_source, model_ptr>::first);
    if (known != models_.end())
      return known->second;
    open_model_options usual;
    usual.allowed_variables = options_.allowed_variables;
    usual.allowed_commands = options_.allowed_commands;
    usual.dotenv = options_.dotenv;
    usual.base = base;
    auto model = options_.only_shown ? shown_model(source.name)
                 : options_.open     ? options_.open(source, usual)
                                     : open_model(source, usual);
    if (!model)
      return fail_at(at, model.error().message());
    models_.emplace_back(std::move(key), *model);
    return model;
  }

  // Agents with the same list share it, and so the knowledge of which of its
  // models rest.
  model_ptr in_turn(std::vector<model_ptr> models) {
    auto& known = lists_[models];
    if (!known)
      known = std::make_shared<fallback_model>(
        std::move(models),
        fallback_options{.on_fallback = options_.on_fallback});
    return known;
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
    if (const auto* code = item.find("code"); code != nullptr)
      return fail_on_python({&file, code->line},
                            code->value->text.empty() ? "code"
                                                      : code->value->text,
                            python_code::agent);
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
    for (const auto& [field, line, column, unused, is_quoted] : item.fields)
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
    const auto text = read_regular_file(next, agent_file_bytes_max);
    if (!text)
      return fail_at(at,
                     fmt::format("config_path '{}': {}",
                                 path.value->text,
                                 text.error().message()));
    return load(std::move(next), *text, inherited);
  }

  // Outlives the loader, which exists during one `load_agent_file`.
  const agent_file_options& options_;
  const file_access access_;
  std::vector<std::unique_ptr<const fs::path>> files_;
  std::vector<fs::path> open_files_;
  std::size_t depth_ = 0;
  std::size_t agents_ = 0;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, std::string, std::less<>> names_;
  std::vector<std::pair<model_source, model_ptr>> models_;
  std::map<std::vector<model_ptr>, model_ptr> lists_;
  named_toolsets toolsets_;
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

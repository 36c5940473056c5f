#include "troupe/agents/agent_file.hpp"

#include "troupe/agents/name.hpp"
#include "troupe/agents/yaml_tree.hpp"
#include "troupe/models/scripted_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view scripted_prefix = "scripted:";
constexpr std::size_t agent_file_bytes_max = std::size_t{1} << 20U;
constexpr std::size_t script_bytes_max = std::size_t{16} << 20U;
// An agent written inline takes two levels, its own and that of the list that
// it stands in.
constexpr std::size_t yaml_depth_max = 2 * agent_file_depth_max + 8;

// -- places and errors --------------------------------------------------------

struct place {
  const fs::path* file;
  int line;
};

std::string to_string(const place& at) {
  return fmt::format("{}:{}", at.file->string(), at.line);
}

error fail_at(const place& at, std::string_view why) {
  return {errc::invalid_argument, fmt::format("{}: {}", to_string(at), why)};
}

result<std::string> read_file(const fs::path& file, std::size_t bytes_max) {
  std::error_code unused;
  if (fs::is_directory(file, unused))
    return error(errc::invalid_argument, "is a folder");
  errno = 0;
  std::ifstream source(file, std::ios::binary);
  if (!source)
    return error(errc::not_found, std::generic_category().message(errno));
  std::string text;
  std::array<char, 65'536>
    piece; // Bounded, since a device or a pipe has no size to ask for.
  while (source.read(piece.data(), piece.size()) || source.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(source.gcount()));
    if (text.size() > bytes_max)
      return error(errc::too_large,
                   fmt::format("has more than {} bytes", bytes_max));
  }
  if (source.bad())
    return error(errc::invalid_argument, "cannot be read");
  return text;
}

// The same file under any of its names; a name that cannot be followed stays as
// it is and fails where it is read.
fs::path identity(const fs::path& file) {
  std::error_code failed;
  auto canonical = fs::weakly_canonical(file, failed);
  return failed ? file.lexically_normal() : canonical;
}

// -- the tree of a file -------------------------------------------------------

result<yaml_node_ptr> parse_file(const fs::path& file,
                                 const std::string& text) {
  auto root = parse_yaml(
    text,
    {.depth_max = yaml_depth_max, .json_only = file.extension() == ".json"});
  if (!root)
    return fail_at({&file, root.error().line}, root.error().why);
  if (!*root)
    return fail_at({&file, 1},
                   "expected an agent, a mapping with 'name'; it is empty");
  return std::move(*root);
}

// -- fields -------------------------------------------------------------------

enum class agent_class : std::uint8_t { llm, sequential, parallel, loop };

struct class_name {
  std::string_view name;
  agent_class kind;
};

constexpr std::array class_names{
  class_name{"LlmAgent", agent_class::llm},
  class_name{"SequentialAgent", agent_class::sequential},
  class_name{"ParallelAgent", agent_class::parallel},
  class_name{"LoopAgent", agent_class::loop},
};

struct field_rule {
  std::string_view name;
  std::optional<agent_class> only; // Unset: fits every class.
};

constexpr std::array field_rules{
  field_rule{"agent_class", std::nullopt},
  field_rule{"name", std::nullopt},
  field_rule{"description", std::nullopt},
  field_rule{"sub_agents", std::nullopt},
  field_rule{"model", agent_class::llm},
  field_rule{"instruction", agent_class::llm},
  field_rule{"output_key", agent_class::llm},
  field_rule{"include_contents", agent_class::llm},
  field_rule{"tools", agent_class::llm},
  field_rule{"max_iterations", agent_class::loop},
};

std::string_view to_string(agent_class kind) {
  return std::ranges::find(class_names, kind, &class_name::kind)->name;
}

// `"a, b, c"` of the names in a range.
template <class Range, class Name>
std::string list_names(const Range& range, Name name) {
  std::string listed;
  for (const auto& element : range)
    listed += fmt::format("{}{}", listed.empty() ? "" : ", ", name(element));
  return listed;
}

// The fields of one agent, or of one small mapping, in one file.
class field_reader {
public:
  field_reader(const fs::path& file, const yaml_node& node)
    : file_(&file),
      node_(&node) {}

  place at() const { return {file_, node_->line}; }

  // The place of a field, or of the whole where it is left out.
  place at(std::string_view name) const {
    const auto* found = node_->find(name);
    return {file_, found != nullptr ? found->line : node_->line};
  }

  // The field, or null if it is left out or null.
  const yaml_node* find(std::string_view name) const {
    const auto* found = node_->find(name);
    return found == nullptr || found->value->kind == yaml_node::form::null
             ? nullptr
             : found->value.get();
  }

  result<std::optional<std::string>> text(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr)
      return std::optional<std::string>();
    if (found->kind != yaml_node::form::scalar)
      return expected(name, "text", *found);
    return std::optional(found->text);
  }

  result<std::optional<std::uint64_t>> count(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr)
      return std::optional<std::uint64_t>();
    std::uint64_t read = 0;
    const auto* const last = found->text.data() + found->text.size();
    const auto [end, failed] = std::from_chars(found->text.data(), last, read);
    if (found->kind != yaml_node::form::scalar || found->quoted || end != last
        || failed != std::errc() || read == 0)
      return fail_at(at(name),
                     fmt::format("'{}' must be a whole number of at least 1; "
                                 "leave it out for no limit",
                                 name));
    return std::optional(read);
  }

  result<std::vector<yaml_node_ptr>> list(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr)
      return std::vector<yaml_node_ptr>();
    if (found->kind != yaml_node::form::list)
      return expected(name, "a list", *found);
    return found->items;
  }

private:
  error expected(std::string_view name,
                 std::string_view what,
                 const yaml_node& found) const {
    return fail_at(
      at(name),
      fmt::format(
        "'{}' must be {}, not {}", name, what, to_string(found.kind)));
  }

  const fs::path* file_;
  const yaml_node* node_;
};

// -- the tree of agents -------------------------------------------------------

class agent_loader {
public:
  explicit agent_loader(const agent_file_options& options)
    : options_(options) {}

  // `shown` is the path as errors name it; it stays valid as long as the
  // loader.
  result<agent> load(fs::path shown, const model_ptr& inherited) {
    files_.push_back(std::make_unique<fs::path>(std::move(shown)));
    const auto& file = *files_.back();
    auto text = read_file(file, agent_file_bytes_max);
    if (!text)
      return error(
        text.error().code() == errc::not_found ? errc::not_found
                                               : errc::invalid_argument,
        fmt::format(
          "agent file {}: {}", file.string(), text.error().message()));
    auto root = parse_file(file, *text);
    if (!root)
      return root.error();
    open_files_.push_back(identity(file));
    auto made = make(file, **root, inherited);
    open_files_.pop_back();
    return made;
  }

private:
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

  result<agent> make_below(const fs::path& file,
                           const yaml_node& node,
                           const model_ptr& inherited) {
    const field_reader fields(file, node);
    if (node.kind != yaml_node::form::map)
      return fail_at(fields.at(),
                     fmt::format("expected an agent, a mapping with 'name', "
                                 "not {}",
                                 to_string(node.kind)));
    auto kind = read_class(fields);
    if (!kind)
      return kind.error();
    if (auto checked = check_fields(file, node, *kind); !checked)
      return checked.error();
    auto name = read_name(fields);
    if (!name)
      return name.error();
    auto description = fields.text("description");
    if (!description)
      return description.error();

    auto below = inherited;
    agent::body body;
    switch (*kind) {
    case agent_class::llm: {
      auto options = read_llm(fields, inherited);
      if (!options)
        return options.error();
      below = options->model;
      body = std::move(*options);
      break;
    }
    case agent_class::sequential:
      body = sequential_options();
      break;
    case agent_class::parallel:
      body = parallel_options();
      break;
    case agent_class::loop: {
      auto iterations = fields.count("max_iterations");
      if (!iterations)
        return iterations.error();
      body = loop_options{.max_iterations = *iterations};
      break;
    }
    }
    std::visit(
      [&](auto& options) {
        options.name = std::move(*name);
        options.description = description->value_or("");
      },
      body);
    auto sub_agents = read_sub_agents(file, fields, below);
    if (!sub_agents)
      return sub_agents.error();
    try {
      return make_agent(std::move(body), std::move(*sub_agents));
    } catch (const error& failure) {
      return fail_at(fields.at(), failure.message());
    }
  }

  static result<agent_class> read_class(const field_reader& fields) {
    auto named = fields.text("agent_class");
    if (!named)
      return named.error();
    if (!*named)
      return agent_class::llm;
    const auto known
      = std::ranges::find(class_names, **named, &class_name::name);
    if (known == class_names.end())
      return fail_at(fields.at("agent_class"),
                     fmt::format("unknown agent_class '{}'; expected one of {}",
                                 **named,
                                 list_names(class_names, [](const auto& row) {
                                   return row.name;
                                 })));
    return known->kind;
  }

  static result<void>
  check_fields(const fs::path& file, const yaml_node& node, agent_class kind) {
    const auto fits = [kind](const field_rule& rule) {
      return !rule.only || *rule.only == kind;
    };
    for (const auto& [name, line, column, unused] : node.fields) {
      const auto known
        = std::ranges::find(field_rules, name, &field_rule::name);
      if (known != field_rules.end() && fits(*known))
        continue;
      std::vector<field_rule> fitting;
      std::ranges::copy_if(field_rules, std::back_inserter(fitting), fits);
      return fail_at(
        {&file, line},
        fmt::format(
          "{} '{}'; {} has {}",
          known == field_rules.end() ? "unknown field"
                                     : "this class has no field",
          name,
          to_string(kind),
          list_names(fitting, [](const auto& rule) { return rule.name; })));
    }
    return {};
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
    if (names_.size() > agent_file_agents_max)
      return fail_at(
        at,
        fmt::format("the tree has more than {} agents", agent_file_agents_max));
    return std::move(**name);
  }

  result<llm_options> read_llm(const field_reader& fields,
                               const model_ptr& inherited) {
    llm_options options;
    auto instruction = fields.text("instruction");
    if (!instruction)
      return instruction.error();
    options.instruction = instruction->value_or("");

    auto output_key = fields.text("output_key");
    if (!output_key)
      return output_key.error();
    if (*output_key)
      if (auto checked = check_key(**output_key); !checked)
        return fail_at(
          fields.at("output_key"),
          fmt::format("output_key: {}", checked.error().message()));
    options.output_key = output_key->value_or("");

    auto contents = fields.text("include_contents");
    if (!contents)
      return contents.error();
    const auto which = contents->value_or("default");
    if (which != "default" && which != "none")
      return fail_at(fields.at("include_contents"),
                     fmt::format("unknown include_contents '{}'; expected "
                                 "default or none",
                                 which));
    if (which == "none")
      options.include_contents = include_contents::none;

    auto tools = read_tools(fields);
    if (!tools)
      return tools.error();
    options.tools = std::move(*tools);

    auto model = read_model(fields, inherited);
    if (!model)
      return model.error();
    options.model = std::move(*model);
    return options;
  }

  result<std::vector<tool>> read_tools(const field_reader& fields) const {
    auto items = fields.list("tools");
    if (!items)
      return items.error();
    std::vector<tool> tools;
    std::set<std::string> names;
    for (const auto& item : *items) {
      const place at{fields.at().file, item->line};
      auto name = read_tool_name(*at.file, *item);
      if (!name)
        return name.error();
      const auto known = options_.tools.find(*name);
      if (known == options_.tools.end())
        return fail_at(
          at,
          fmt::format("unknown tool '{}'; known tools: {}",
                      *name,
                      options_.tools.empty()
                        ? "none"
                        : list_names(options_.tools, [](const auto& row) {
                            return row.first;
                          })));
      if (!names.insert(*name).second)
        return fail_at(at, fmt::format("the tool '{}' comes twice", *name));
      tools.push_back(known->second);
    }
    return tools;
  }

  static result<std::string> read_tool_name(const fs::path& file,
                                            const yaml_node& item) {
    if (item.kind == yaml_node::form::scalar)
      return item.text;
    const auto* name = item.find("name");
    if (name == nullptr || name->value->kind != yaml_node::form::scalar)
      return fail_at({&file, item.line}, "expected a tool's name or {name: …}");
    for (const auto& [field, line, column, unused] : item.fields)
      if (field != "name")
        return fail_at(
          {&file, line},
          fmt::format("unknown field '{}'; a tool has name", field));
    return name->value->text;
  }

  result<model_ptr> read_model(const field_reader& fields,
                               const model_ptr& inherited) {
    auto spec = fields.text("model");
    if (!spec)
      return spec.error();
    if (options_.model)
      return options_.model;
    const auto at = fields.at("model");
    if (!*spec) {
      if (inherited)
        return inherited;
      return fail_at(at,
                     "expected a field 'model', such as scripted:replies.json; "
                     "--model gives one to every agent");
    }
    const auto base = at.file->parent_path();
    // One script is one model, so that its replies are used up together.
    const auto name
      = (**spec).starts_with(scripted_prefix)
          ? identity(base / (**spec).substr(scripted_prefix.size())).string()
          : **spec;
    auto& opened = models_[name];
    if (!opened) {
      auto model = open_model(**spec, base);
      if (!model)
        return fail_at(at, model.error().message());
      opened = std::move(*model);
    }
    return opened;
  }

  result<std::vector<agent>> read_sub_agents(const fs::path& file,
                                             const field_reader& fields,
                                             const model_ptr& inherited) {
    auto items = fields.list("sub_agents");
    if (!items)
      return items.error();
    std::vector<agent> made;
    for (const auto& item : *items) {
      const auto* path = item->kind == yaml_node::form::map
                           ? item->find("config_path")
                           : nullptr;
      auto below = path != nullptr ? follow(file, *item, *path, inherited)
                                   : make(file, *item, inherited);
      if (!below)
        return below.error();
      made.push_back(std::move(*below));
    }
    return made;
  }

  // The agent in the file that a `config_path` names.
  result<agent> follow(const fs::path& file,
                       const yaml_node& item,
                       const yaml_node::field& path,
                       const model_ptr& inherited) {
    const place at{&file, path.line};
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

  // Outlives the loader, which lives for one call of load_agent_file.
  const agent_file_options& options_;
  std::vector<std::unique_ptr<const fs::path>> files_;
  std::vector<fs::path> open_files_;
  std::size_t depth_ = 0;
  std::map<std::string, std::string, std::less<>> names_;
  std::map<std::string, model_ptr> models_;
};

} // namespace

result<agent> load_agent_file(const std::filesystem::path& file,
                              const agent_file_options& options) {
  std::error_code unused;
  auto found = fs::is_directory(file, unused) ? file / "root_agent.yaml" : file;
  return agent_loader(options).load(std::move(found), nullptr);
}

result<model_ptr> open_model(std::string_view spec,
                             const std::filesystem::path& base) {
  if (!spec.starts_with(scripted_prefix))
    return error(
      errc::invalid_argument,
      fmt::format("model '{}' is not available; there are only "
                  "scripted:FILE models, and --model puts one in its "
                  "place",
                  spec));
  const auto failed = [spec](const error& failure) {
    return error(errc::invalid_argument,
                 fmt::format("model '{}': {}", spec, failure.message()));
  };
  const auto name = spec.substr(scripted_prefix.size());
  if (name.empty() || name.find('\0') != std::string_view::npos)
    return failed({errc::invalid_argument, "expected a file behind scripted:"});
  auto text = read_file(base / name, script_bytes_max);
  if (!text)
    return failed(text.error());
  auto data = parse_json(*text);
  if (!data)
    return failed(data.error());
  auto replies = script_from_json(*data);
  if (!replies)
    return failed(replies.error());
  return model_ptr(
    std::make_shared<scripted_model>(std::move(*replies), std::string(spec)));
}

} // namespace troupe

#include "troupe/agents/agent_file.hpp"

#include "troupe/agents/name.hpp"
#include "troupe/models/scripted_model.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

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
#include <sstream>
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

// -- YAML ---------------------------------------------------------------------

struct yaml_node;
using node_ptr = std::shared_ptr<const yaml_node>;

// A YAML tree with lines; aliases share their node, so expanding them costs
// nothing.
struct yaml_node {
  struct field {
    std::string name;
    int line;
    int column;
    node_ptr value;
  };

  enum class form : std::uint8_t { null, scalar, list, map };

  form kind = form::null;
  int line = 1;
  int column = 0;
  std::string text;
  bool quoted = false;
  std::vector<node_ptr> items;
  std::vector<field> fields;

  const field* find(std::string_view name) const {
    const auto found = std::ranges::find(fields, name, &field::name);
    return found == fields.end() ? nullptr : &*found;
  }
};

std::string_view to_string(yaml_node::form kind) {
  switch (kind) {
  case yaml_node::form::null:
    return "nothing";
  case yaml_node::form::scalar:
    return "a single value";
  case yaml_node::form::list:
    return "a list";
  case yaml_node::form::map:
    return "a mapping";
  }
  return "nothing";
}

struct yaml_failure {
  int line;
  std::string why;
};

// Builds the tree from the parser's events: yaml-cpp's own nodes keep the last
// of two equal keys and never say so, and follow aliases into themselves.
class tree_builder : public YAML::EventHandler {
public:
  /// `text` is what the parser reads, and outlives the builder.
  explicit tree_builder(std::string_view text) {
    while (!text.empty()) {
      lines_.push_back(text);
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
  }

  node_ptr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_)
      throw yaml_failure{line_of(mark),
                         "a second document begins; expected one"};
  }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_colon(mark);
    add(make(yaml_node::form::null, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = finished_.find(anchor);
    if (found == finished_.end())
      throw yaml_failure{line_of(mark),
                         "an alias stands inside its own anchor"};
    add_value(found->second, line_of(mark), -1);
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(mark, tag);
    auto made = make(yaml_node::form::scalar, mark);
    made->text = text;
    made->column = mark.column;
    made->quoted = tag == "!";
    check_quotes(mark);
    add(std::move(made), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    enter(make(yaml_node::form::list, mark), anchor);
  }

  void OnSequenceEnd() override { leave(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    enter(make(yaml_node::form::map, mark), anchor);
  }

  void OnMapEnd() override { leave(); }

private:
  struct open_node {
    std::shared_ptr<yaml_node> made;
    YAML::anchor_t anchor;
    std::optional<yaml_node::field> pending;
    std::set<std::string, std::less<>> names;
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  // From a place to the end of the file.
  std::string_view text_at(int line, int column) const {
    const auto index = static_cast<std::size_t>(line - 1);
    if (line < 1 || index >= lines_.size())
      return {};
    const auto& found = lines_[index];
    return found.substr(
      std::min(found.size(), static_cast<std::size_t>(std::max(column, 0))));
  }

  static void check_tag(const YAML::Mark& mark, std::string_view tag) {
    constexpr std::array core_types{
      "str", "int", "float", "bool", "null", "seq", "map"};
    constexpr std::string_view core = "tag:yaml.org,2002:";
    if (tag.empty() || tag == "?" || tag == "!"
        || (tag.starts_with(core)
            && std::ranges::find(core_types, tag.substr(core.size()))
                 != core_types.end()))
      return;
    throw yaml_failure{line_of(mark), fmt::format("unknown tag '{}'", tag)};
  }

  // yaml-cpp takes the end of the file for the end of a text in quotes.
  void check_quotes(const YAML::Mark& mark) const {
    auto text = text_at(line_of(mark), mark.column);
    // An anchor and a tag may stand before the text itself.
    constexpr std::string_view blanks = " \t\r\n";
    while (text.starts_with('&') || text.starts_with('!')) {
      text.remove_prefix(std::min(text.find_first_of(blanks), text.size()));
      text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    }
    if (!text.starts_with('"') && !text.starts_with('\''))
      return;
    const char quote = text.front();
    text.remove_prefix(1);
    while (!text.empty()) {
      const bool doubled = quote == '\'' && text.starts_with("''");
      if (doubled || (quote == '"' && text.front() == '\\')) {
        text.remove_prefix(std::min<std::size_t>(2, text.size()));
        continue;
      }
      if (text.front() == quote)
        return;
      text.remove_prefix(1);
    }
    throw yaml_failure{line_of(mark),
                       "the text that starts here has no closing quote"};
  }

  // yaml-cpp takes a name at the end of a mapping for a field without a value.
  void check_colon(const YAML::Mark& mark) const {
    if (open_.empty() || !open_.back().pending)
      return;
    const auto& name = *open_.back().pending;
    const auto said = text_at(line_of(mark), mark.column);
    if (name.column < 0 || said.starts_with('~') || said.starts_with("null")
        || said.starts_with("Null") || said.starts_with("NULL"))
      return; // An alias, or a null that somebody wrote.
    const auto row = text_at(name.line, 0);
    const auto column = static_cast<std::size_t>(name.column);
    const auto before = row.substr(0, column);
    const auto last = before.find_last_not_of(" \t");
    if (last != std::string_view::npos && before[last] == '?')
      return; // YAML's long form of a name.
    auto rest = row.substr(std::min(column, row.size()));
    rest = rest.substr(0, rest.find('\n'));
    rest = rest.substr(0, rest.find(" #"));
    if (rest.find(':') == std::string_view::npos)
      throw yaml_failure{name.line,
                         fmt::format("expected ':' behind '{}'", name.name)};
  }

  static std::shared_ptr<yaml_node> make(yaml_node::form kind,
                                         const YAML::Mark& mark) {
    auto made = std::make_shared<yaml_node>();
    made->kind = kind;
    made->line = line_of(mark);
    return made;
  }

  void enter(std::shared_ptr<yaml_node> made, YAML::anchor_t anchor) {
    if (open_.size() == yaml_depth_max)
      throw yaml_failure{
        made->line,
        fmt::format("nested deeper than {} levels", yaml_depth_max)};
    if (!open_.empty() && open_.back().made->kind == yaml_node::form::map
        && !open_.back().pending)
      throw yaml_failure{made->line, "expected a field name before this"};
    open_.push_back({std::move(made), anchor, {}, {}});
  }

  void leave() {
    auto closed = std::move(open_.back());
    open_.pop_back();
    add(std::move(closed.made), closed.anchor);
  }

  void add(node_ptr made, YAML::anchor_t anchor) {
    if (anchor != 0)
      finished_[anchor] = made;
    const auto line = made->line;
    const auto column = made->column;
    add_value(std::move(made), line, column);
  }

  void add_value(node_ptr made, int line, int column) {
    if (open_.empty()) {
      root_ = std::move(made);
      return;
    }
    auto& [parent, anchor, pending, names] = open_.back();
    if (parent->kind == yaml_node::form::list) {
      parent->items.push_back(std::move(made));
    } else if (pending) {
      pending->value = std::move(made);
      parent->fields.push_back(std::move(*pending));
      pending.reset();
    } else {
      if (made->kind != yaml_node::form::scalar)
        throw yaml_failure{line, "expected a field name"};
      if (!names.insert(made->text).second)
        throw yaml_failure{
          line, fmt::format("the field '{}' comes twice", made->text)};
      pending = yaml_node::field{made->text, line, column, nullptr};
    }
  }

  std::vector<std::string_view> lines_; // Each with all that follows.
  node_ptr root_;
  std::vector<open_node> open_;
  std::map<YAML::anchor_t, node_ptr> finished_;
};

// What yaml-cpp would misread in silence: it ends a text at byte 4, and takes
// other bytes for Latin-1.
std::optional<yaml_failure> find_bad_text(std::string_view text) {
  int line = 1;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto row = text.substr(0, end);
    if (!is_utf8(row))
      return yaml_failure{line, "not UTF-8"};
    for (const char next : row)
      if (static_cast<unsigned char>(next) < 0x20 && next != '\t'
          && next != '\r')
        return yaml_failure{line,
                            fmt::format("the control character {:#04x}",
                                        static_cast<unsigned char>(next))};
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
  }
  return std::nullopt;
}

std::optional<unsigned> hex4(std::string_view digits) {
  unsigned read = 0;
  if (digits.size() < 4)
    return std::nullopt;
  const auto* const last = digits.data() + 4;
  const auto [end, failed] = std::from_chars(digits.data(), last, read, 16);
  return failed == std::errc() && end == last ? std::optional(read)
                                              : std::nullopt;
}

// JSON writes what is outside the basic plane as two escapes, the one thing in
// it that YAML does not know.
std::string join_surrogates(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    if (text.front() != '\\' || text.size() < 2) {
      joined += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto high = text[1] == 'u' ? hex4(text.substr(2)) : std::nullopt;
    const auto low = high && text.substr(6).starts_with("\\u")
                       ? hex4(text.substr(8))
                       : std::nullopt;
    if (low && *high >= 0xD800 && *high < 0xDC00 && *low >= 0xDC00
        && *low < 0xE000) {
      joined += fmt::format(
        "\\U{:08x}", 0x10000 + ((*high - 0xD800) << 10U) + (*low - 0xDC00));
      text.remove_prefix(12);
    } else {
      joined += text.substr(0, 2);
      text.remove_prefix(2);
    }
  }
  return joined;
}

result<node_ptr> parse_yaml(const fs::path& file, const std::string& text) {
  const auto failed = [&file](int line, std::string_view why) {
    return fail_at({&file, std::max(line, 1)}, why);
  };
  if (auto bad = find_bad_text(text))
    return failed(bad->line, bad->why);
  const bool is_json = file.extension() == ".json";
  auto yaml = is_json ? join_surrogates(text) : text;
  // The parser drops the mark too, and counts columns behind it.
  if (yaml.starts_with("\xEF\xBB\xBF"))
    yaml.erase(0, 3);
  tree_builder builder(yaml);
  try {
    std::istringstream source(yaml);
    YAML::Parser parser(source);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const yaml_failure& failure) {
    return failed(failure.line, failure.why);
  } catch (const YAML::Exception& failure) {
    return failed(failure.mark.line + 1,
                  fmt::format("malformed YAML: {}", failure.msg));
  }
  if (!builder.root())
    return failed(1, "expected an agent, a mapping with 'name'; it is empty");
  // YAML allows more than JSON, and its parser more than YAML.
  if (is_json)
    if (auto strict = parse_json(text); !strict)
      return failed(1, strict.error().message());
  return builder.root();
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

  result<std::vector<node_ptr>> list(std::string_view name) const {
    const auto* found = find(name);
    if (found == nullptr)
      return std::vector<node_ptr>();
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
    auto root = parse_yaml(file, *text);
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
      options->name = *name;
      options->description = description->value_or("");
      below = options->model;
      body = std::move(*options);
      break;
    }
    case agent_class::sequential:
      body = agent::sequence();
      break;
    case agent_class::parallel:
      body = parallel_options{*name, {}, {}};
      break;
    case agent_class::loop: {
      auto iterations = fields.count("max_iterations");
      if (!iterations)
        return iterations.error();
      body = loop_options{*name, {}, *iterations};
      break;
    }
    }
    auto sub_agents = read_sub_agents(file, fields, below);
    if (!sub_agents)
      return sub_agents.error();
    try {
      return make_agent(std::move(*name),
                        description->value_or(""),
                        std::move(body),
                        std::move(*sub_agents));
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

#include "troupe/agents/files/yaml_tree.hpp"

#include "troupe/core/json.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// Builds the tree from the parser's events. yaml-cpp's own nodes silently keep
// the last of two equal keys, and follow aliases into themselves.
class tree_builder : public YAML::EventHandler {
public:
  /// `text` is the parser's input. Both outlive the builder.
  tree_builder(std::string_view text, const yaml_rules& rules) : rules_(rules) {
    while (!text.empty()) {
      lines_.push_back(text);
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
  }

  yaml_node_ptr root() const { return root_; }

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
      throw yaml_failure{line_of(mark), "an alias is inside its own anchor"};
    const auto& [made, size] = found->second;
    if (open_.size() + size.levels > rules_.depth_max)
      throw too_deep(line_of(mark));
    count(size, line_of(mark));
    add_value(made, size.levels, line_of(mark), -1);
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
  // Size of a subtree in which every alias is replaced by its target.
  struct extent {
    std::size_t nodes = 0;
    std::size_t bytes = 0;  // In scalars.
    std::size_t levels = 0; // Lists and mappings.
  };

  struct open_node {
    std::shared_ptr<yaml_node> made;
    YAML::anchor_t anchor;
    extent before; // Sum of all nodes before this one.
    std::size_t levels_below = 0;
    std::optional<yaml_node::field> pending = {};
    bool merges = false; // The pending field is a merge key.
    std::set<std::string, std::less<>> names = {};
    std::vector<yaml_node_ptr> merged = {}; // Mappings of the merge key.
  };

  struct finished_node {
    yaml_node_ptr made;
    extent size;
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  // The text from a position to the end of the file.
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

  // yaml-cpp accepts the end of the file as the end of a quoted text.
  void check_quotes(const YAML::Mark& mark) const {
    auto text = text_at(line_of(mark), mark.column);
    // An anchor and a tag may come before the text.
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

  // yaml-cpp accepts a name at the end of a mapping, without a colon, as a
  // field without value.
  void check_colon(const YAML::Mark& mark) const {
    if (open_.empty() || !open_.back().pending)
      return;
    const auto& name = *open_.back().pending;
    const auto said = text_at(line_of(mark), mark.column);
    if (name.column < 0 || said.starts_with('~') || said.starts_with("null")
        || said.starts_with("Null") || said.starts_with("NULL"))
      return; // An alias, or an explicit null.
    const auto row = text_at(name.line, 0);
    const auto column = static_cast<std::size_t>(name.column);
    const auto before = row.substr(0, column);
    const auto last = before.find_last_not_of(" \t");
    if (last != std::string_view::npos && before[last] == '?')
      return; // YAML's long form of a key.
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
    if (open_.size() == rules_.depth_max)
      throw too_deep(made->line);
    if (!open_.empty() && open_.back().made->kind == yaml_node::form::map
        && !open_.back().pending)
      throw yaml_failure{made->line, "expected a field name before this"};
    const auto before = total_;
    count({.nodes = 1}, made->line);
    open_.push_back({std::move(made), anchor, before});
  }

  void leave() {
    auto closed = std::move(open_.back());
    open_.pop_back();
    merge_fields(closed);
    finish(std::move(closed.made),
           closed.anchor,
           {.nodes = total_.nodes - closed.before.nodes,
            .bytes = total_.bytes - closed.before.bytes,
            .levels = closed.levels_below + 1});
  }

  // Adds the fields of the merged mappings that the mapping itself does not
  // have; the first mapping that has a field gives it. Their size was counted
  // with the value of the merge key.
  static void merge_fields(open_node& closed) {
    for (const auto& source : closed.merged)
      for (const auto& field : source->fields)
        if (closed.names.insert(field.name).second)
          closed.made->fields.push_back(field);
  }

  // Keeps the value of the merge key `<<`: a mapping, or a list of mappings.
  static void
  keep_merged(open_node& open, const yaml_node_ptr& made, int line) {
    const auto is_map = [](const yaml_node_ptr& node) {
      return node->kind == yaml_node::form::map;
    };
    if (is_map(made))
      open.merged = {made};
    else if (made->kind == yaml_node::form::list
             && std::ranges::all_of(made->items, is_map))
      open.merged = made->items;
    else
      throw yaml_failure{
        line, "'<<' merges a mapping or a list of mappings, such as *base"};
  }

  void add(yaml_node_ptr made, YAML::anchor_t anchor) {
    const extent size{.nodes = 1, .bytes = made->text.size()};
    count(size, made->line);
    finish(std::move(made), anchor, size);
  }

  void finish(yaml_node_ptr made, YAML::anchor_t anchor, const extent& size) {
    if (anchor != 0)
      finished_[anchor] = {made, size};
    const auto line = made->line;
    const auto column = made->column;
    add_value(std::move(made), size.levels, line, column);
  }

  // Readers of the tree copy the target of an alias for each alias, so nodes
  // and bytes are counted as readers will see them.
  void count(const extent& added, int line) {
    total_.nodes += added.nodes;
    total_.bytes += added.bytes;
    if (total_.nodes > rules_.nodes_max)
      throw yaml_failure{
        line,
        fmt::format("more than {} values, with those that aliases repeat",
                    rules_.nodes_max)};
    if (total_.bytes > rules_.bytes_max)
      throw yaml_failure{
        line,
        fmt::format("more than {} bytes of text, with those that aliases "
                    "repeat",
                    rules_.bytes_max)};
  }

  yaml_failure too_deep(int line) const {
    return {line,
            fmt::format("nested deeper than {} levels", rules_.depth_max)};
  }

  void add_value(yaml_node_ptr made, std::size_t levels, int line, int column) {
    if (open_.empty()) {
      root_ = std::move(made);
      return;
    }
    // Merged fields stand in this mapping, not in one below.
    if (open_.back().pending && open_.back().merges)
      levels -= std::min<std::size_t>(
        levels, made->kind == yaml_node::form::list ? 2 : 1);
    auto& levels_below = open_.back().levels_below;
    levels_below = std::max(levels_below, levels);
    const auto& parent = open_.back().made;
    auto& pending = open_.back().pending;
    auto& names = open_.back().names;
    if (parent->kind == yaml_node::form::list) {
      parent->items.push_back(std::move(made));
    } else if (pending && open_.back().merges) {
      keep_merged(open_.back(), made, pending->line);
      pending.reset();
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
      open_.back().merges = made->text == "<<" && !made->quoted;
      pending
        = yaml_node::field{made->text, line, column, nullptr, made->quoted};
    }
  }

  const yaml_rules& rules_;
  std::vector<std::string_view> lines_; // From each line to the end.
  yaml_node_ptr root_;
  std::vector<open_node> open_;
  extent total_;
  std::map<YAML::anchor_t, finished_node> finished_;
};

// Finds bytes that yaml-cpp would silently misread: it ends a text at byte 4,
// and reads other bytes as Latin-1.
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

// Joins surrogate escapes: JSON writes a character outside the basic plane as
// two escapes, which YAML does not know.
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

} // namespace

const yaml_node::field* yaml_node::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &field::name);
  return found == fields.end() ? nullptr : &*found;
}

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

tl::expected<yaml_node_ptr, yaml_failure> parse_yaml(const std::string& text,
                                                     const yaml_rules& rules) {
  const auto failed = [](int line, std::string why) {
    return tl::unexpected(yaml_failure{std::max(line, 1), std::move(why)});
  };
  if (auto bad = find_bad_text(text))
    return tl::unexpected(std::move(*bad));
  auto yaml = rules.json_only ? join_surrogates(text) : text;
  // yaml-cpp drops the byte order mark, too, and counts columns behind it.
  if (yaml.starts_with("\xEF\xBB\xBF"))
    yaml.erase(0, 3);
  tree_builder builder(yaml, rules);
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
  // YAML allows more than JSON, and yaml-cpp allows more than YAML.
  if (builder.root() && rules.json_only)
    if (auto strict = parse_json(text); !strict)
      return failed(1, strict.error().message());
  return builder.root();
}

} // namespace troupe

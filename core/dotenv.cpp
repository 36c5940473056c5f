#include "troupe/core/dotenv.hpp"

#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t dotenv_bytes_max = std::size_t{1} << 20U;
// Of all values: a small file can name a long value again and again.
constexpr std::size_t value_bytes_max = 4 * dotenv_bytes_max;

using variables = std::map<std::string, std::string>;
using outside_look_up
  = std::function<result<std::optional<std::string>>(const std::string& name)>;

// The rules are those of python-dotenv 1.x (`parser.py`, `variables.py`).
class dotenv_reader {
public:
  dotenv_reader(std::string_view text, const outside_look_up& outside)
    : text_(text),
      outside_(outside) {}

  result<variables> read() {
    for (;;) {
      skip(" \t\r\n\v\f");
      if (at_ == text_.size())
        return std::move(found_);
      count_lines();
      if (auto done = read_statement(); !done)
        return done.error();
    }
  }

private:
  void count_lines() {
    const auto passed = text_.substr(counted_, at_ - counted_);
    line_ += std::ranges::count(passed, '\n');
    counted_ = at_;
  }

  bool is_next(char wanted) const noexcept {
    return at_ < text_.size() && text_[at_] == wanted;
  }

  bool is_at_line_end() const noexcept {
    return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
  }

  void skip(std::string_view which) {
    at_ = std::min(text_.find_first_not_of(which, at_), text_.size());
  }

  std::string_view take_until(std::string_view which) {
    const auto begin = at_;
    at_ = std::min(text_.find_first_of(which, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  error failure(std::string_view why) const {
    return {errc::invalid_argument, fmt::format("line {}: {}", line_, why)};
  }

  result<void> read_statement() {
    if (const auto rest = text_.substr(at_);
        rest.starts_with("export ") || rest.starts_with("export\t")) {
      at_ += std::string_view("export").size();
      skip(blanks);
    }
    if (is_next('#')) {
      take_until("\r\n");
      return {};
    }
    auto name = read_name();
    if (!name)
      return name.error();
    skip(blanks);
    std::optional<std::string> value;
    if (is_next('=')) {
      ++at_;
      skip(blanks);
      auto read = read_value();
      if (!read)
        return read.error();
      value = std::move(*read);
    }
    skip(blanks);
    if (is_next('#'))
      take_until("\r\n");
    if (!is_at_line_end())
      return failure("expected the end of the line after the value");
    if (!value) {
      found_.erase(*name);
      return {};
    }
    auto resolved = resolve(*value);
    if (!resolved)
      return resolved.error();
    if (resolved->find('\0') != std::string::npos)
      return failure("a value cannot hold a NUL");
    found_.insert_or_assign(std::move(*name), std::move(*resolved));
    return {};
  }

  result<std::string> read_name() {
    std::string_view name;
    if (is_next('\'')) {
      ++at_;
      name = take_until("'");
      if (!is_next('\''))
        return failure("a quoted name has no end");
      ++at_;
    } else {
      name = take_until("=# \t\r\n\v\f");
    }
    if (name.empty() || name.find('\0') != std::string_view::npos)
      return failure("expected NAME=value");
    return std::string(name);
  }

  result<std::string> read_value() {
    if (is_next('\'') || is_next('"'))
      return read_quoted(text_[at_]);
    // A `#` begins a comment only behind white space.
    const auto begin = at_;
    auto value = take_until("\r\n");
    for (std::size_t at = 0; at < value.size(); ++at)
      if (value[at] == '#'
          && blanks.find(text_[begin + at - 1]) != blanks.npos) {
        value = value.substr(0, at);
        break;
      }
    const auto last = value.find_last_not_of(blanks);
    return std::string(value.substr(0, last + 1));
  }

  result<std::string> read_quoted(char quote) {
    constexpr std::string_view names = "abfnrtv";
    constexpr std::string_view meant = "\a\b\f\n\r\t\v";
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return value;
      }
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      const bool is_escape = c == '\\';
      if (is_escape
          && (next == '\\' || next == '\'' || (next == '"' && quote == '"'))) {
        value += next;
        ++at_;
      } else if (const auto found = names.find(next); is_escape && quote == '"'
                                                      && next != '\0'
                                                      && found != names.npos) {
        value += meant[found];
        ++at_;
      } else {
        value += c;
      }
    }
    return failure(fmt::format("a value in {} has no end", quote));
  }

  // Replaces `${NAME}` and `${NAME:-default}`.
  result<std::string> resolve(std::string_view value) {
    std::string made;
    while (!value.empty()) {
      const auto begin = value.find("${");
      made += value.substr(0, begin);
      if (begin == std::string_view::npos)
        break;
      value.remove_prefix(begin);
      const auto end = value.find('}');
      const auto inner
        = end == std::string_view::npos ? "" : value.substr(2, end - 2);
      const auto colon = inner.find(':');
      const bool has_default
        = colon != std::string_view::npos && inner.substr(colon, 2) == ":-";
      if (end == std::string_view::npos
          || (colon != std::string_view::npos && !has_default)) {
        made += "${";
        value.remove_prefix(2);
        continue;
      }
      const std::string name(inner.substr(0, colon));
      if (const auto known = found_.find(name); known != found_.end()) {
        made += known->second;
      } else {
        auto held = outside_(name);
        if (!held)
          return failure(held.error().message());
        if (*held)
          made += **held;
        else if (has_default)
          made += inner.substr(colon + 2);
      }
      value.remove_prefix(end + 1);
      if (value_bytes_ + made.size() > value_bytes_max)
        return failure("the values have more than 4 MiB");
    }
    value_bytes_ += made.size();
    return made;
  }

  static constexpr std::string_view blanks = " \t\v\f";

  const std::string_view text_;
  const outside_look_up& outside_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0; // Place up to which lines were counted.
  std::ptrdiff_t line_ = 1;
  std::size_t value_bytes_ = 0;
  variables found_;
};

std::optional<fs::path> nearest_file(fs::path folder) {
  for (;;) {
    std::error_code failed;
    if (auto found = folder / ".env"; fs::is_regular_file(found, failed))
      return found;
    auto above = folder.parent_path();
    if (above == folder)
      return std::nullopt;
    folder = std::move(above);
  }
}

} // namespace

result<variables> read_dotenv(std::string_view text,
                              const outside_look_up& outside) {
  // As Python reads a file: without the mark of UTF-8 that some editors write.
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark))
    text.remove_prefix(mark.size());
  return dotenv_reader(text, outside).read();
}

result<dotenv_file>
find_dotenv(const fs::path& agent_file,
            const std::vector<std::string>& allowed_variables) {
  std::error_code failed;
  auto folder = fs::absolute(agent_file, failed).lexically_normal();
  if (!fs::is_directory(folder, failed) || !folder.has_filename())
    folder = folder.parent_path();
  const auto found = nearest_file(folder);
  if (!found)
    return dotenv_file();
  dotenv_file made;
  made.file = *found;
  made.is_beside_agent
    = found->parent_path() == folder && !fs::is_symlink(*found, failed);
  auto text = read_text_file(*found, dotenv_bytes_max);
  if (!text)
    return error(
      errc::invalid_argument,
      fmt::format("{}: {}", found->string(), text.error().message()));
  const auto look_up
    = [&](const std::string& name) -> result<std::optional<std::string>> {
    // Safe as long as no thread changes the environment.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* held = std::getenv(name.c_str());
    if (held == nullptr)
      return std::optional<std::string>();
    if (made.is_beside_agent
        && std::ranges::find(allowed_variables, name)
             == allowed_variables.end())
      return error(errc::invalid_argument,
                   fmt::format("the file wants to use the environment variable "
                               "{}; allow it with --allow-env {}",
                               name,
                               name));
    return std::optional<std::string>(held);
  };
  auto values = read_dotenv(*text, look_up);
  if (!values)
    return error(errc::invalid_argument,
                 fmt::format("{}: {}; correct the file, or leave it out with "
                             "--no-dotenv",
                             found->string(),
                             values.error().message()));
  made.values = std::move(*values);
  return made;
}

} // namespace troupe

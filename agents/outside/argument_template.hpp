// The words of a command line, with placeholders for the arguments of a call.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <string>
#include <vector>

namespace troupe {

/// In a word, `{NAME}` stands for the argument NAME, and `{{NAME}}` is the
/// text `{NAME}`. A name begins with a letter or `_`, and continues with
/// letters, digits, `_` and `-`; other braces are text. Immutable; thread-safe.
class argument_template {
public:
  /// Reads the words after the program's name. Throws `errc::invalid_argument`
  /// for a placeholder whose name is no property of `parameters`, a JSON
  /// Schema, and for one that follows an option and is not among its `required`
  /// ones.
  argument_template(const std::vector<std::string>& words,
                    const json& parameters);

  /// Returns true if a word has a placeholder.
  bool has_placeholders() const noexcept { return has_placeholders_; }

  /// Replaces the placeholders with the arguments. Each word stays one word:
  /// nothing is split or interpreted. A text is inserted as it is, any other
  /// value as compact JSON. A word is left out if its argument is missing.
  ///
  /// Fails with `errc::invalid_argument` for an argument with a NUL, and for
  /// one that begins a word with `-`, unless a word `--` comes before: the
  /// program would take it for an option.
  result<std::vector<std::string>> fill(const json& args) const;

private:
  struct piece {
    std::string text; // Of the word, or the name of an argument.
    bool is_placeholder;
  };

  using word = std::vector<piece>;

  void check_option(const word& next, const json& parameters) const;

  std::vector<word> words_;
  bool has_placeholders_ = false;
};

} // namespace troupe

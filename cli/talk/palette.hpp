// Colours of a dialogue.

#pragma once

#include <string>
#include <string_view>

namespace troupe::cli {

class palette {
public:
  /// Without colours, text stays as it is.
  explicit palette(bool has_colours) noexcept : has_colours_(has_colours) {}

  /// For a terminal on stdout: colours unless `NO_COLOR` is set and not empty
  /// (no-color.org), or `TERM` is `dumb`.
  static palette of_terminal();

  bool has_colours() const noexcept { return has_colours_; }

  /// The name of an author.
  std::string name(std::string_view text) const { return in("1", text); }

  /// Tool calls, state changes and advice. Each line is coloured for itself.
  std::string quiet(std::string_view text) const;

  /// Failures.
  std::string alarm(std::string_view text) const { return in("31", text); }

private:
  std::string in(std::string_view code, std::string_view text) const;

  bool has_colours_;
};

} // namespace troupe::cli

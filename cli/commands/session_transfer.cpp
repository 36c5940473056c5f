#include "troupe/cli/commands/session_transfer.hpp"

#include "troupe/cli/adk/source.hpp"
#include "troupe/cli/adk/target.hpp"
#include "troupe/cli/sessions/export.hpp"
#include "troupe/cli/sessions/import.hpp"
#include "troupe/cli/sessions/portable.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

// -- export -------------------------------------------------------------------

export_choice choice_of(const session_transfer& chosen) {
  return {
    .app = chosen.app.value(), .user = chosen.user, .session = chosen.session};
}

std::string counted(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

int export_to_stdout(const session_transfer& chosen,
                     runtime_options options,
                     interrupts& signals) {
  signals.begin();
  output target(STDOUT_FILENO, signals.descriptor());
  const auto done
    = export_sessions(choice_of(chosen), std::move(options), target);
  return end(done, target, signals);
}

// A missing address and an unknown scheme do not parse.
int report_of_address(const session_transfer& chosen,
                      std::string_view forms,
                      const error& failure) {
  if (chosen.file == "-")
    return report(
      error(
        errc::invalid_argument,
        fmt::format("a database of ADK needs FILE, its address: {}", forms)),
      exit_usage);
  return report(failure,
                is_store_scheme(chosen.file) ? exit_failed : exit_usage);
}

int export_to_adk(const session_transfer& chosen,
                  runtime_options options,
                  interrupts& signals) {
  signals.begin();
  auto target = adk_target::open(chosen.file, signals.token());
  if (!target)
    return report_of_address(
      chosen, "sqlite:PATH of a new file", target.error());
  const auto done
    = export_sessions(choice_of(chosen), std::move(options), **target);
  if (done)
    std::cerr << fmt::format("exported {} with {}\n",
                             counted((*target)->session_count(), "session"),
                             counted((*target)->event_count(), "event"));
  const output unused(STDOUT_FILENO, signals.descriptor());
  return end(done, unused, signals);
}

} // namespace

int write_sessions(const session_transfer& chosen,
                   runtime_options options,
                   interrupts& signals) {
  if (chosen.is_for_adk)
    return export_to_adk(chosen, std::move(options), signals);
  if (chosen.file != "-")
    return report(error(errc::invalid_argument,
                        fmt::format("'{}' needs --to adk", chosen.file)),
                  exit_usage);
  return export_to_stdout(chosen, std::move(options), signals);
}

namespace {

// -- import -------------------------------------------------------------------

result<std::string> read_all(std::istream& source, const std::string& name) {
  std::string text;
  std::array<char, 65'536> piece;
  do {
    source.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(source.gcount()));
  } while (source);
  if (source.bad())
    return error(errc::invalid_argument, fmt::format("cannot read {}", name));
  return text;
}

result<std::string> read_session_file(const std::string& path) {
  if (path == "-")
    return read_all(std::cin, "stdin");
  std::ifstream source(path, std::ios::binary);
  if (!source)
    return error(errc::invalid_argument,
                 fmt::format("cannot open {}{}",
                             path,
                             is_store_scheme(path)
                               ? "; a database of ADK needs --from adk"
                               : ""));
  return read_all(source, path);
}

result<std::vector<portable_session>>
sessions_to_import(const session_transfer& chosen) {
  const auto text = read_session_file(chosen.file);
  if (!text)
    return text.error();
  auto read = read_portable_sessions(*text);
  if (!read)
    return read;
  for (auto& from : *read) {
    from.key.app = chosen.app.value_or(from.key.app);
    from.key.user = chosen.user.value_or(from.key.user);
    from.key.id = chosen.session.value_or(from.key.id);
  }
  return read;
}

int import_from_file(const session_transfer& chosen,
                     runtime_options options,
                     interrupts& signals) {
  // A signal during reading and checking ends the program at once: nothing has
  // been changed yet.
  auto read = sessions_to_import(chosen);
  if (!read)
    return report(read.error());
  signals.begin();
  output target(STDOUT_FILENO, signals.descriptor());
  const auto done = import_sessions(std::move(*read),
                                    std::move(options),
                                    chosen.skips_existing,
                                    target,
                                    signals.token());
  return end(done ? result<void>() : done.error(), target, signals);
}

int import_from_adk(const session_transfer& chosen,
                    runtime_options options,
                    interrupts& signals) {
  auto tables = open_adk_tables(chosen.file);
  if (!tables)
    return report_of_address(
      chosen, "sqlite:PATH or postgres:URL", tables.error());
  const auto source = make_adk_source(
    std::move(*tables),
    {.app = chosen.app, .user = chosen.user, .session = chosen.session});
  if (!source)
    return report(source.error());
  signals.begin();
  output target(STDOUT_FILENO, signals.descriptor());
  const auto done = import_sessions(*source,
                                    std::move(options),
                                    chosen.skips_existing,
                                    target,
                                    signals.token());
  if (done)
    std::cerr << fmt::format(
      "imported {} with {}{}\n",
      counted(done->sessions, "session"),
      counted(done->events, "event"),
      done->skipped > 0
        ? fmt::format("; {} existed already", counted(done->skipped, "session"))
        : std::string());
  return end(done ? result<void>() : done.error(), target, signals);
}

} // namespace

int read_sessions(const session_transfer& chosen,
                  runtime_options options,
                  interrupts& signals) {
  return chosen.is_for_adk
           ? import_from_adk(chosen, std::move(options), signals)
           : import_from_file(chosen, std::move(options), signals);
}

} // namespace troupe::cli

#include "troupe/cli/commands/init.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/core/error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::cli {

// The files of cli/templates/.
namespace detail {

extern const std::string_view init_agent;
extern const std::string_view init_plain_agent;
extern const std::string_view init_script;
extern const std::string_view init_plain_script;
extern const std::string_view init_experiment;
extern const std::string_view init_main;
extern const std::string_view init_cmake;
extern const std::string_view init_gitignore;

} // namespace detail

struct init_command::arguments {
  std::string folder;
  bool no_program = false;
};

namespace {

namespace fs = std::filesystem;

using file_list = std::vector<std::pair<std::string, std::string_view>>;

file_list files_of(bool with_program) {
  if (!with_program)
    return {{"root_agent.yaml", detail::init_plain_agent},
            {"script.json", detail::init_plain_script},
            {"experiment.yaml", detail::init_experiment}};
  return {{"root_agent.yaml", detail::init_agent},
          {"script.json", detail::init_script},
          {"experiment.yaml", detail::init_experiment},
          {"main.cpp", detail::init_main},
          {"CMakeLists.txt", detail::init_cmake},
          {".gitignore", detail::init_gitignore}};
}

// The name is that of an agent and of a CMake target.
bool is_name(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  constexpr std::string_view others = "abcdefghijklmnopqrstuvwxyz"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  return !text.empty() && digits.find(text.front()) == digits.npos
         && std::ranges::all_of(text, [&](char each) {
              return digits.find(each) != digits.npos
                     || others.find(each) != others.npos;
            });
}

void replace_all(std::string& text,
                 std::string_view mark,
                 std::string_view by) {
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at))
    text.replace(at, mark.size(), by);
}

std::string filled(std::string_view text, std::string_view name) {
  constexpr std::string_view version = TROUPE_VERSION;
  std::string made(text);
  replace_all(made, "@NAME@", name);
  // Without the patch number: programs are built again for each minor version.
  replace_all(made, "@VERSION@", version.substr(0, version.rfind('.')));
  return made;
}

error failed(const fs::path& what, const std::error_code& why) {
  return {errc::invalid_argument,
          fmt::format("{}: {}", what.string(), why.message())};
}

result<void> write_file(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return failed(path, {errno, std::generic_category()});
  return {};
}

// Makes the folder complete or not at all: the files are written into another
// folder beside it, which then takes its name.
result<void>
make_folder(const fs::path& folder, const std::string& name, bool program) {
  auto pattern = (folder.string() + ".XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr)
    return failed(folder, {errno, std::generic_category()});
  const fs::path made = pattern;
  result<void> done;
  for (const auto& [file, text] : files_of(program))
    if (done)
      done = write_file(made / file, filled(text, name));
  std::error_code why;
  if (done) {
    // `mkdtemp` gives rights to the owner alone.
    fs::permissions(made,
                    fs::perms::owner_all | fs::perms::group_read
                      | fs::perms::group_exec | fs::perms::others_read
                      | fs::perms::others_exec,
                    why);
    if (!why)
      fs::rename(made, folder, why);
    if (why)
      done = failed(folder, why);
  }
  if (!done)
    fs::remove_all(made, why);
  return done;
}

} // namespace

init_command::init_command(CLI::App& program, std::string program_name)
  : program_command(program,
                    "init",
                    "Make a folder with an agent and a program, to start from"),
    program_name_(std::move(program_name)),
    arguments_(std::make_unique<arguments>()) {
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe run hello --input 'Hello!'");
  parser()
    .add_option("FOLDER",
                arguments_->folder,
                "Folder to make; its name is also that of the agent and the "
                "program")
    ->required();
  parser().add_flag("--no-program",
                    arguments_->no_program,
                    "Only the agent, without a program and a tool in C++");
  parser().footer(
    "Makes an agent file, a script of answers in place of a model, an "
    "experiment file, and\na C++ program with a tool, which is troupe with "
    "this tool. Prints the next commands.\n"
    "Exit codes: 0 done; 1 the folder exists and is not empty, or the command "
    "failed; 2 the\ncommand line is wrong.");
}

init_command::~init_command() = default;

int init_command::execute(interrupts& /*signals*/) const {
  auto folder = fs::path(arguments_->folder).lexically_normal();
  if (!folder.has_filename())
    folder = folder.parent_path();
  const auto name = folder.filename().string();
  if (!is_name(name) || name == "user")
    return report(error(
      errc::invalid_argument,
      fmt::format("'{}' cannot be the name of an agent: use letters, digits "
                  "and _, no digit at the start, and not 'user'",
                  name)));
  std::error_code why;
  const bool exists = fs::exists(fs::symlink_status(folder, why));
  if (exists && (!fs::is_directory(folder, why) || !fs::is_empty(folder, why)))
    return report(error(
      errc::already_exists,
      fmt::format("{} exists already; name another folder", folder.string())));
  const bool with_program = !arguments_->no_program;
  if (auto made = make_folder(folder, name, with_program); !made)
    return report(made.error());
  const auto next
    = with_program
        ? fmt::format("cmake -S {0} -B {0}/build\n"
                      "cmake --build {0}/build\n"
                      "{0}/build/{1} run {0} --input 'When are you open?'\n",
                      folder.string(),
                      name)
        : fmt::format("{1} run {0} --input 'Hello!'\n"
                      "{1} experiment {0}/experiment.yaml\n",
                      folder.string(),
                      program_name_);
  std::fputs(fmt::format("made {}; next:\n", folder.string()).c_str(), stderr);
  return print(next);
}

} // namespace troupe::cli

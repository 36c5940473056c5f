#include "troupe/actors/running/holder_name.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

namespace troupe::actors {

namespace {

// The part of a name behind its id. The views are into the name.
struct process_parts {
  pid_t pid = 0;
  std::string_view start; // In ticks since the boot.
  std::string_view namespaces;
  std::string_view boot;
};

// One line of `/proc/PID/stat`.
struct process_status {
  std::string state;
  std::string threads;
  std::string start;
};

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = name.find('/');
    parts.push_back(name.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    name.remove_prefix(end + 1);
  }
}

bool is_number(std::string_view text) noexcept {
  return !text.empty()
         && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<process_parts> parse(std::string_view name) {
  const auto parts = split(name);
  if (parts.size() != 5)
    return std::nullopt;
  process_parts found{0, parts[2], parts[3], parts[4]};
  const auto pid = parts[1];
  const auto [end, failure]
    = std::from_chars(pid.data(), pid.data() + pid.size(), found.pid);
  // Other numbers stand for groups of processes.
  if (failure != std::errc() || end != pid.data() + pid.size() || found.pid <= 0
      || !is_number(found.start) || found.namespaces.empty()
      || found.boot.empty())
    return std::nullopt;
  return found;
}

// Empty if the file cannot be read.
std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number in a link such as `pid:[4026531836]`; empty if there is none.
std::string number_of_link(const std::string& path, std::error_code& failure) {
  const auto target = std::filesystem::read_symlink(path, failure).string();
  const auto from = target.find('[');
  if (failure || from == std::string::npos || !target.ends_with(']'))
    return {};
  auto number = target.substr(from + 1, target.size() - from - 2);
  return is_number(number) ? number : std::string();
}

// Unset if the file cannot be read. The name of the program, in brackets, may
// hold spaces and brackets.
std::optional<process_status> read_status(const std::string& path) {
  constexpr std::size_t threads_field = 17; // Counted from the state.
  constexpr std::size_t start_field = 19;
  const auto line = read_line(path);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos)
    return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  const std::vector<std::string> fields{
    std::istream_iterator<std::string>(rest), {}};
  if (fields.size() <= start_field || !is_number(fields[start_field]))
    return std::nullopt;
  return process_status{
    fields.front(), fields[threads_field], fields[start_field]};
}

// Start times count from the boot as the namespace of times sees it. Kernels
// before 5.6 have no such namespaces.
std::string read_namespaces(const std::string& folder) {
  std::error_code failure;
  const auto processes = number_of_link(folder + "/self/ns/pid", failure);
  auto times = number_of_link(folder + "/self/ns/time", failure);
  if (failure == std::errc::no_such_file_or_directory)
    times = "0";
  if (processes.empty() || times.empty())
    return {};
  return fmt::format("{}-{}", processes, times);
}

// A process that has ended, and whose parent has not asked for its status. Its
// first thread may also end before the others.
bool is_zombie(const process_status& found) {
  return (found.state == "Z" || found.state == "X")
         && (found.threads == "0" || found.threads == "1");
}

} // namespace

std::string make_holder_name(std::string id, const std::string& folder) {
  std::error_code failure;
  const auto pid = std::to_string(::getpid());
  const auto self = std::filesystem::read_symlink(folder + "/self", failure);
  const auto status = read_status(folder + "/self/stat");
  const auto namespaces = read_namespaces(folder);
  const auto boot = read_line(folder + "/sys/kernel/random/boot_id");
  if (failure || self != pid || !status || namespaces.empty() || boot.empty()
      || boot.find('/') != std::string::npos)
    return id;
  return fmt::format(
    "{}/{}/{}/{}/{}", id, pid, status->start, namespaces, boot);
}

bool has_died(std::string_view holder,
              std::string_view own,
              const std::string& folder) {
  const auto other = parse(holder);
  const auto here = parse(own);
  if (!other || !here || other->namespaces != here->namespaces
      || other->boot != here->boot)
    return false;
  if (const auto found
      = read_status(fmt::format("{}/{}/stat", folder, other->pid)))
    return found->start != other->start || is_zombie(*found);
  // The files of other users' processes may be hidden; their ids are not.
  return ::kill(other->pid, 0) != 0 && errno == ESRCH;
}

} // namespace troupe::actors

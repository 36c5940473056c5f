#include "troupe/load/machine.hpp"

#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace troupe::load {

namespace {

// The text after `separator` in the first line that starts with `name`.
std::string field_of(const char* file, std::string_view name, char separator) {
  std::ifstream source(file);
  for (std::string line; std::getline(source, line);) {
    if (!line.starts_with(name))
      continue;
    const auto at = line.find(separator);
    if (at == std::string::npos)
      return {};
    const auto begin = line.find_first_not_of(" \t\"", at + 1);
    const auto end = line.find_last_not_of(" \t\"");
    return begin == std::string::npos ? std::string()
                                      : line.substr(begin, end - begin + 1);
  }
  return {};
}

std::string build_kind() {
#ifdef __SANITIZE_ADDRESS__
  return ", sanitizers";
#elif defined(NDEBUG)
  return ", release";
#else
  return ", with assertions";
#endif
}

} // namespace

machine this_machine() {
  machine found;
  found.cpu = field_of("/proc/cpuinfo", "model name", ':');
  found.cores = std::thread::hardware_concurrency();
  found.memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES))
                 * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  utsname names{};
  if (uname(&names) == 0)
    found.kernel = fmt::format("{} {}", names.sysname, names.release);
  found.system = field_of("/etc/os-release", "PRETTY_NAME", '=');
  return found;
}

std::string to_text(const machine& on) {
  auto text = fmt::format("{} x {}, {} GiB",
                          on.cores,
                          on.cpu.empty() ? "unknown CPU" : on.cpu,
                          (on.memory + (1U << 29U)) >> 30U);
  for (const auto* more : {&on.system, &on.kernel})
    if (!more->empty())
      text += ", " + *more;
  return text;
}

json to_json(const machine& on) {
  auto written = json::object();
  written["cpu"] = on.cpu;
  written["cores"] = on.cores;
  written["memoryBytes"] = on.memory;
  written["kernel"] = on.kernel;
  written["system"] = on.system;
  return written;
}

versions these_versions(std::string_view store) {
  versions used;
  used.troupe = TROUPE_VERSION;
#ifdef __clang__
  used.compiler = fmt::format("clang {}{}", __clang_version__, build_kind());
#else
  used.compiler = fmt::format("g++ {}{}", __VERSION__, build_kind());
#endif
  const auto address = read_store_address(store);
  used.store = address ? store_version(address->kind) : "custom";
  return used;
}

json to_json(const versions& used) {
  auto written = json::object();
  written["troupe"] = used.troupe;
  written["compiler"] = used.compiler;
  written["store"] = used.store;
  return written;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t whole = 0;
  std::uint64_t resident = 0;
  file >> whole >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

} // namespace troupe::load

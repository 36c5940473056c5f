#include "ledger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace troupe::testing {

namespace {

constexpr std::size_t name_size = sizeof("e00000000.000.00000000") - 1;

[[noreturn]] void fail(const char* attempt) {
  throw std::system_error(errno, std::generic_category(), attempt);
}

} // namespace

std::string to_string(const job_name& job) {
  return fmt::format("e{:08}.{:03}.{:08}", job.run, job.thread, job.number);
}

job_name job_name_from(const std::string& id) {
  const auto part = [&id](std::size_t start, std::size_t length) {
    return static_cast<std::uint32_t>(std::stoul(id.substr(start, length)));
  };
  if (id.size() != name_size)
    throw std::invalid_argument("no name of a job: " + id);
  const job_name job{part(1, 8), part(10, 3), part(14, 8)};
  if (to_string(job) != id)
    throw std::invalid_argument("no name of a job: " + id);
  return job;
}

ledger::ledger(const std::filesystem::path& file)
  : file_(file),
    descriptor_(
      ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0)
    fail("open the ledger");
}

ledger::~ledger() {
  ::close(descriptor_);
}

void ledger::write(ledger_entry entry, const job_name& job) {
  const auto line
    = fmt::format("{} {}\n", static_cast<char>(entry), to_string(job));
  if (::write(descriptor_, line.data(), line.size())
      != static_cast<ssize_t>(line.size()))
    fail("write to the ledger");
}

std::vector<ledger_record> ledger::records() const {
  std::vector<ledger_record> all;
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);)
    all.push_back(
      {static_cast<ledger_entry>(line.at(0)), job_name_from(line.substr(2))});
  return all;
}

} // namespace troupe::testing

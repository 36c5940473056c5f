#include "troupe/core/support/passwords.hpp"
#include "troupe/stores/artifact_store.hpp"
#include "troupe/stores/artifacts/in_files.hpp"
#include "troupe/stores/artifacts/in_memory.hpp"
#include "troupe/stores/shared/path_rule.hpp"

#include <fmt/format.h>

#include <string>

namespace troupe {

namespace {

constexpr std::string_view memory_scheme = "memory:";
constexpr std::string_view file_scheme = "file:";

error refused_artifacts(std::string_view address, std::string_view why) {
  return {
    errc::invalid_argument,
    fmt::format("the artifact store '{}' {}", without_passwords(address), why)};
}

} // namespace

result<std::unique_ptr<artifact_store>>
open_artifact_store(std::string_view address, const artifact_options& options) {
  if (address == memory_scheme)
    return make_memory_artifacts(options);
  if (address.starts_with(memory_scheme))
    return refused_artifacts(address, "must be memory: without a path");
  if (!address.starts_with(file_scheme))
    return refused_artifacts(
      address, "has no known scheme; expected memory: or file:PATH");
  const std::string path(address.substr(file_scheme.size()));
  if (const auto flaw = path_flaw(path); !flaw.empty())
    return refused_artifacts(address, flaw);
  return open_file_artifacts(path, options);
}

} // namespace troupe

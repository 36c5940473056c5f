#include "troupe/stores/memory_entry.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace troupe {

std::string time_text(const memory_entry& entry) {
  const auto seconds
    = std::chrono::floor<std::chrono::seconds>(entry.timestamp);
  return fmt::format(
    "{:%Y-%m-%dT%H:%M:%S}Z",
    fmt::gmtime(static_cast<std::time_t>(seconds.time_since_epoch().count())));
}

json to_json(const memory_entry& entry) {
  auto shown = json::object();
  shown["content"] = to_json(entry.content);
  shown["id"] = entry.id;
  if (!entry.author.empty())
    shown["author"] = entry.author;
  shown["timestamp"] = time_text(entry);
  return shown;
}

} // namespace troupe

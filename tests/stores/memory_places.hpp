// The memory services of all kinds, for tests that each of them has to pass.

#pragma once

#include "troupe/stores/memories/in_memory.hpp"
#include "troupe/stores/memories/in_postgres.hpp"
#include "troupe/stores/memories/in_sqlite.hpp"
#include "troupe/stores/memory_service.hpp"

#include "../outcome.hpp"
#include "postgres_server.hpp"
#include "temporary_folder.hpp"
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

inline postgres_server& memory_server() {
  static postgres_server server;
  return server;
}

/// The URL of a schema that no other test uses.
inline std::string fresh_schema() {
  static int count = 0;
  return memory_server().url(fmt::format("memory_{}", ++count));
}

inline timestamp second(int count) {
  return timestamp(std::chrono::seconds(1'700'000'000 + count));
}

inline event_ptr said_by(const std::string& author,
                         const std::string& id,
                         const std::string& words,
                         int time = 0) {
  event said(content(author == "user" ? "user" : "model", {part(words)}));
  said.id = id;
  said.author = author;
  said.timestamp = second(time);
  return std::make_shared<const event>(std::move(said));
}

inline session session_of(const session_key& key,
                          const std::vector<event_ptr>& events) {
  event_log log;
  for (const auto& each : events)
    log.push_back(each);
  return {key, readonly_state(), log.slice(), second(0), events.size()};
}

inline memory_entry
note(const std::string& id, const std::string& words, int time = 0) {
  memory_entry made(content("user", {part(words)}));
  made.id = id;
  made.author = "user";
  made.timestamp = second(time);
  return made;
}

/// The ids of the found memories, the best first: `"e2 e1"`.
inline std::string ids_of(const result<std::vector<memory_entry>>& found) {
  if (!found)
    return code_of(found);
  std::string ids;
  for (const auto& each : *found)
    ids += (ids.empty() ? "" : " ") + each.id;
  return ids;
}

struct memories_in_memory {
  std::unique_ptr<memory_service> kept = make_transient_memories();
};

struct memories_in_sqlite {
  temporary_folder folder;
  std::unique_ptr<memory_service> kept
    = open_sqlite_memories(folder.path() / "m.db").value();
};

struct memories_in_postgres {
  std::unique_ptr<memory_service> kept
    = open_postgres_memories(fresh_schema()).value();
};

} // namespace troupe::testing

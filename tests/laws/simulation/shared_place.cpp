#include "shared_place.hpp"

#include "troupe/stores/sqlite/open.hpp"

#include "lossy_store.hpp"

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::testing {

namespace {

constexpr auto* file_name = "simulated.db";

std::filesystem::path make_folder() {
  auto name
    = (std::filesystem::temp_directory_path() / "simulation-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  return name;
}

} // namespace

shared_place::shared_place(place_kind kind, std::function<timestamp()> clock)
  : clock_(std::move(clock)) {
  if (kind == place_kind::memory)
    memory_ = make_memory_data(clock_);
  else
    folder_ = make_folder();
}

shared_place::~shared_place() {
  std::error_code ignored;
  if (!folder_.empty())
    std::filesystem::remove_all(folder_, ignored);
}

namespace {

std::unique_ptr<store> open_file(const std::filesystem::path& file) {
  sqlite_settings settings;
  settings.file = file;
  settings.options.durability = durability::none;
  // All processes run in one thread: none may wait for another.
  settings.takes_turns = false;
  return detail::open_sqlite_store(std::move(settings)).value();
}

// The sessions may get other incarnations. Runs that ended in the lost commits
// stay open, so no process counts as their holder.
void write(store& into, std::span<const store_change> changes) {
  for (auto each : changes) {
    if (each.past)
      each.past->incarnation = 0;
    for (auto& mark : each.runs) {
      mark.alone_after.reset();
      mark.taken_from.reset();
    }
    if (!into.commit({&each, 1}).value().moved.empty())
      throw std::logic_error("the written changes do not fit any more");
  }
  std::set<std::string> holders;
  for (const auto& change : changes)
    for (const auto& mark : change.runs)
      if (mark.opens)
        holders.insert(mark.holder);
  for (const auto& holder : holders)
    into.remove_holder(holder).value();
}

} // namespace

std::unique_ptr<store> shared_place::open() const {
  return memory_ ? make_lossy_store(*this) : open_file(folder_ / file_name);
}

void shared_place::lose_all_but(std::span<const store_change> kept) {
  ++losses_;
  if (memory_) {
    memory_ = make_memory_data(clock_);
    return write(*make_memory_store(memory_), kept);
  }
  const auto file = (folder_ / file_name).string();
  std::filesystem::remove(file + "-wal");
  std::filesystem::remove(file + "-shm");
  if (kept.empty()) {
    std::filesystem::remove(file);
    return;
  }
  const auto restored = folder_ / "restored.db";
  const auto made = open_file(restored);
  write(*made, kept);
  made->close().value();
  std::filesystem::rename(restored, file);
}

} // namespace troupe::testing

#include "troupe/stores/sqlite/log_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace troupe {

namespace {

using std::chrono::steady_clock;

// SQLite's default page size, which the layout keeps.
constexpr std::uint64_t page_size = 4'096;

// Space is reserved in steps of this size. Each reservation leaves between one
// and two steps free after the last frame. A frame is a page with a header of
// 24 bytes.
constexpr std::uint64_t step_bytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t frame_bytes = page_size + 24;

// Longer than a load of this process takes, so that its own readers end in
// time.
constexpr std::chrono::milliseconds patience(1'000);

constexpr std::chrono::milliseconds between_tries(2);

std::uint64_t mebibytes(std::uint64_t bytes) noexcept {
  return bytes >> 20U;
}

// Makes the log restart. Returns false if frames are not copied or a connection
// still reads from the log.
bool try_restart(const sqlite_database& writer) {
  const int code = sqlite3_wal_checkpoint_v2(
    writer.connection(), nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
    throw writer.failure("checkpoint");
  return code == SQLITE_OK;
}

} // namespace

// Only a durable store waits for syncs.
sqlite_log_space::sqlite_log_space(const sqlite_settings& settings) noexcept
  : bytes_max_(settings.options.durability == durability::durable
                 ? settings.options.log_bytes_max.value_or(UINT64_MAX)
                 : 0) {}

void sqlite_log_space::extend(const sqlite_database& writer,
                              int frames) noexcept {
  const auto step
    = static_cast<std::uint64_t>(std::max(frames, 0)) * frame_bytes / step_bytes
      + 2;
  // Also when the log has begun anew: its file may have been cut to nothing.
  if (step == std::exchange(step_, step) || step * step_bytes > bytes_max_)
    return;
  writer.reserve_log(step * step_bytes);
}

int warned_frames(const sqlite_settings& settings) noexcept {
  const auto bound = settings.options.log_bytes_max;
  const auto bytes = bound ? std::min(settings.log_bytes_warned, *bound / 2)
                           : settings.log_bytes_warned;
  return static_cast<int>(std::min<std::uint64_t>(
    bytes / page_size, std::numeric_limits<int>::max()));
}

sqlite_log_warning::sqlite_log_warning(const sqlite_settings& settings)
  : file_(settings.file.string()),
    on_warning_(settings.options.on_warning),
    frames_max_(warned_frames(settings)) {}

void sqlite_log_warning::note(int held_frames) {
  if (held_frames < frames_max_ / 2)
    is_told_ = false;
  if (held_frames < frames_max_ || is_told_)
    return;
  is_told_ = true;
  if (on_warning_)
    on_warning_(fmt::format(
      "{0}-wal has grown to more than {1} MiB, because a connection keeps "
      "reading an old state of {0}: end that program, or limit the file "
      "(log_bytes_max, --log-max)",
      file_,
      mebibytes(static_cast<std::uint64_t>(held_frames) * page_size)));
}

sqlite_log_bound::sqlite_log_bound(const sqlite_settings& settings)
  : settings_(settings) {}

bool sqlite_log_bound::is_reached() const noexcept {
  const auto bytes_max = settings_.options.log_bytes_max;
  return bytes_max
         && static_cast<std::uint64_t>(frames_) * page_size >= *bytes_max;
}

void sqlite_log_bound::make_room(sqlite_database& writer) {
  // A reader that stayed before is not waited for again: each commit would lose
  // a second.
  const auto give_up
    = steady_clock::now()
      + (is_held_ ? std::chrono::milliseconds::zero() : patience);
  writer.set_lock_timeout(between_tries);
  while (!try_restart(writer)) {
    if (steady_clock::now() < give_up) {
      std::this_thread::sleep_for(between_tries);
      continue;
    }
    is_held_ = true;
    throw error(
      errc::store_failed,
      fmt::format(
        "{0}-wal has reached its limit of {1} MiB, because a connection keeps "
        "reading an old state of {0}: end that program, then try again",
        settings_.file.string(),
        mebibytes(settings_.options.log_bytes_max.value())));
  }
  writer.set_lock_timeout(settings_.lock_timeout);
  is_held_ = false;
  frames_ = 0;
}

} // namespace troupe

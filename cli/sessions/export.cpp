#include "troupe/cli/sessions/export.hpp"

#include "troupe/cli/sessions/portable.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

// Number of events to read at once: few if they are large, many if they are
// small.
class piece_size {
public:
  std::uint64_t events() const noexcept { return events_; }

  /// Adapts to the size of the last piece, in bytes.
  void adapt(std::size_t bytes) noexcept {
    const auto fitting = events_ * bytes_wanted / std::max(bytes, bytes_min);
    events_ = std::clamp(fitting, std::uint64_t{1}, events_max);
  }

private:
  // At worst, 64 events of the largest size follow small ones: 64 MiB.
  static constexpr std::uint64_t events_max = 64;
  static constexpr std::size_t bytes_wanted = std::size_t{2} << 20U;
  static constexpr std::size_t bytes_min = 1'024;

  std::uint64_t events_ = 4;
};

// Bytes that are gathered for one write.
constexpr std::size_t write_bytes = std::size_t{64} << 10U;

constexpr std::string_view no_events = ",\"events\":[]";

// The sessions that were written. Keeps a 16-byte fingerprint instead of each
// key.
class written_sessions {
public:
  void add(const session_key& key) {
    const auto added = fingerprint_of(key);
    fingerprints_.insert(sorted_
                           ? std::ranges::upper_bound(fingerprints_, added)
                           : fingerprints_.end(),
                         added);
  }

  bool has(const session_key& key) {
    if (!std::exchange(sorted_, true))
      std::ranges::sort(fingerprints_);
    return std::ranges::binary_search(fingerprints_, fingerprint_of(key));
  }

private:
  using fingerprint = std::pair<std::uint64_t, std::uint64_t>;

  // Two independent hashes.
  static fingerprint fingerprint_of(const session_key& key) {
    // Ids contain no NUL.
    const auto text = key.app + '\0' + key.user + '\0' + key.id;
    std::uint64_t fnv = 0xcbf29ce484222325U;
    for (const auto each : text)
      fnv = (fnv ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    return {fnv, std::hash<std::string_view>()(text)};
  }

  std::vector<fingerprint> fingerprints_;
  bool sorted_ = false; // Sorted from the first `has` on.
};

class session_export {
public:
  session_export(session_service& sessions, store& kept, output& target)
    : sessions_(sessions),
      store_(kept),
      target_(target) {}

  result<void> write_one(const session_key& key) {
    const auto found = sessions_.get(key, {.num_recent_events = 1}).get();
    if (!found)
      return found.error();
    const session shown(
      key, found->state(), {}, found->last_update_time(), found->revision());
    const auto& events = found->events();
    return write(
      shown, events.size() == 0 ? std::string() : events[0]->id, true);
  }

  // Writes all sessions in passes over the list. A session that is updated
  // during a pass may move in front of the cursor, and the pass misses it. It
  // is newer now than the first row of that pass, so the next pass finds it
  // unless it moves again. A page shows one moment, so a pass of a single page
  // misses nothing.
  result<void> write_all(const export_choice& chosen) {
    // The second pass covers all sessions, too: an event with an older time
    // moves its session less far.
    constexpr std::size_t whole_passes = 2;
    row_place first;
    for (std::size_t count = 0;; ++count) {
      const auto before = first;
      const auto pages
        = write_pass(chosen,
                     count,
                     count < whole_passes ? timestamp::min() : before.time,
                     first);
      if (!pages)
        return pages.error();
      if (*pages == 1 || first == before)
        return {};
    }
  }

private:
  // Position of a row in the list.
  struct row_place {
    timestamp time;
    session_key key;

    bool operator==(const row_place&) const = default;
  };

  /// Writes the sessions that were updated at `oldest` or later and not written
  /// before. Sets `first` to the position of the first row. Returns the number
  /// of pages.
  result<std::size_t> write_pass(const export_choice& chosen,
                                 std::size_t number,
                                 timestamp oldest,
                                 row_place& first) {
    list_request request{chosen.app, chosen.user};
    for (std::size_t pages = 1;; ++pages) {
      const auto page = sessions_.list(request).get();
      if (!page)
        return page.error();
      const auto& rows = page->sessions;
      if (pages == 1 && !rows.empty())
        first = {rows.front().last_update_time(), rows.front().key()};
      if (auto written = write_rows(rows, number != 0); !written)
        return written.error();
      request.cursor = page->next_cursor;
      if (request.cursor.empty()
          || (!rows.empty() && rows.back().last_update_time() < oldest))
        return pages;
    }
  }

  // Reads the newest events of all rows at once: writing may be slow, and the
  // sessions may change meanwhile.
  result<void> write_rows(const std::vector<session>& rows, bool is_later) {
    std::vector<std::pair<const session*, std::string>> fresh;
    for (const auto& row : rows) {
      if (is_later && written_.has(row.key()))
        continue;
      std::string newest;
      if (row.revision() != 0) {
        const auto events
          = store_.load_events(row.key(), row.revision(), row.revision());
        if (!events)
          return events.error();
        newest = events->empty() ? "" : events->front()->id;
      }
      fresh.emplace_back(&row, std::move(newest));
    }
    for (const auto& [row, newest] : fresh) {
      if (auto done = write(*row, newest, false); !done)
        return done;
    }
    return {};
  }

  // Writes one session. `shown` has no events; they are read up to its
  // revision. Another process may delete the session meanwhile and create it
  // again. The id of its `newest` event tells whether state and events belong
  // to one session.
  result<void>
  write(const session& shown, const std::string& newest, bool is_required) {
    const auto text = visible_json(to_portable_json(shown)) + '\n';
    // Quotes in values are escaped, so this finds the field itself.
    const auto at = text.find(no_events);
    assert(at != std::string::npos && "a session without events");
    const auto behind = at + no_events.size() - 1;
    const std::string_view head(text.data(), behind);
    bool has_begun = false;
    piece_size size;
    for (std::uint64_t first = 1; first <= shown.revision();) {
      const auto last = std::min(shown.revision(), first + size.events() - 1);
      const auto events = store_.load_events(shown.key(), first, last);
      if (!events)
        return events.error();
      if (const auto same = check_events(shown, newest, *events, first, last);
          !same) {
        const bool is_left_out = same.error().code() == errc::not_found
                                 && !has_begun && !is_required;
        return is_left_out ? result<void>() : same;
      }
      std::string gathered(has_begun ? "" : head);
      std::size_t bytes = 0;
      for (const auto& said : *events) {
        if (std::exchange(has_begun, true))
          gathered += ',';
        gathered += visible_json(to_json(*said));
        if (gathered.size() < write_bytes && said != events->back())
          continue;
        if (auto written = target_.write(gathered); !written)
          return written;
        bytes += gathered.size();
        gathered.clear();
      }
      size.adapt(bytes);
      first = last + 1;
    }
    written_.add(shown.key());
    return target_.write(has_begun ? std::string_view(text).substr(behind)
                                   : text);
  }

  /// Fails unless `events` are number `first` to `last` of `shown`, whose last
  /// event has the id `newest`.
  result<void> check_events(const session& shown,
                            const std::string& newest,
                            const std::vector<event_ptr>& events,
                            std::uint64_t first,
                            std::uint64_t last) {
    const auto count = last - first + 1;
    if (events.size() == count
        && (last != shown.revision() || events.back()->id == newest))
      return {};
    const auto found
      = sessions_.get(shown.key(), {.num_recent_events = 0}).get();
    if (!found)
      return found.error();
    if (events.size() == count || found->revision() < last)
      return error(errc::not_found,
                   fmt::format("session {} was deleted while it was read",
                               to_string(shown.key())));
    return error(errc::corrupt,
                 fmt::format("session {} has {} of its events {} to {}",
                             to_string(shown.key()),
                             events.size(),
                             first,
                             last));
  }

  // All three outlive this, which exists during one call.
  session_service& sessions_;
  store& store_;
  output& target_;
  written_sessions written_;
};

} // namespace

result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target) {
  store_options reading{.durability = options.durability};
  reading.log_bytes_max = options.store_log_bytes_max;
  reading.on_warning = options.on_warning;
  auto opened = open_store(name_of(options.store), reading);
  if (!opened)
    return opened.error();
  const std::shared_ptr<store> kept = std::move(*opened);
  // The runtime gives states as of one moment. Events do not change, so they
  // are read from the store directly.
  options.store = kept;
  auto owners = runtime::open(std::move(options));
  if (!owners)
    return owners.error();
  session_export writing(owners->sessions(), *kept, target);
  if (chosen.session)
    return writing.write_one(
      {chosen.app, chosen.user.value_or(""), *chosen.session});
  return writing.write_all(chosen);
}

} // namespace troupe::cli

#include "troupe/cli/session_export.hpp"

#include "troupe/cli/portable_session.hpp"
#include "troupe/cli/visible_text.hpp"
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

// Read at once: few enough for large events, many enough for small ones.
constexpr std::uint64_t events_at_once = 256;

constexpr std::string_view no_events = ",\"events\":[]";

// Which sessions are written. Keeps a fingerprint of each key in place of the
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

  // Two hashes that have nothing to do with each other.
  static fingerprint fingerprint_of(const session_key& key) {
    // No id holds a NUL.
    const auto text = key.app + '\0' + key.user + '\0' + key.id;
    std::uint64_t fnv = 0xcbf29ce484222325U;
    for (const auto each : text)
      fnv = (fnv ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    return {fnv, std::hash<std::string_view>()(text)};
  }

  std::vector<fingerprint> fingerprints_;
  bool sorted_ = false; // From the first question on.
};

class session_export {
public:
  session_export(session_service& sessions, store& kept, output& target)
    : sessions_(sessions),
      store_(kept),
      target_(target) {}

  result<void> write_one(const session_key& key) {
    const auto found = sessions_.get(key, {.num_recent_events = 0});
    return found ? write(*found, true) : found.error();
  }

  result<void> write_all(const export_choice& chosen) {
    list_request request{.app = chosen.app, .user = chosen.user};
    // What is updated between two pages moves in front of both, so it is looked
    // for once more, as long as pages have sessions that are not written.
    for (const bool is_second : {false, true}) {
      request.cursor.clear();
      do {
        const auto page = sessions_.list(request);
        if (!page)
          return page.error();
        const auto fresh = write_page(*page, is_second);
        if (!fresh)
          return fresh.error();
        if (is_second && *fresh == 0)
          break;
        request.cursor = page->next_cursor;
      } while (!request.cursor.empty());
    }
    return {};
  }

private:
  /// How many sessions of the page were not written before.
  result<std::size_t> write_page(const session_page& page, bool is_second) {
    std::size_t fresh = 0;
    for (const auto& row : page.sessions) {
      if (is_second && written_.has(row.key()))
        continue;
      if (auto done = write(row, false); !done)
        return done.error();
      written_.add(row.key());
      ++fresh;
    }
    return fresh;
  }

  /// `shown` has no events; they are read up to its revision.
  result<void> write(const session& shown, bool is_required) {
    const auto text = visible_json(to_portable_json(shown)) + '\n';
    // Quotes in values are escaped, so this is the field.
    const auto at = text.find(no_events);
    assert(at != std::string::npos && "a session without events");
    const auto behind = at + no_events.size() - 1;
    const std::string_view head(text.data(), behind);
    bool has_begun = false;
    for (std::uint64_t first = 1; first <= shown.revision();
         first += events_at_once) {
      const auto last = std::min(shown.revision(), first + events_at_once - 1);
      const auto events = store_.load_events(shown.key(), first, last);
      if (!events)
        return events.error();
      if (events->size() != last - first + 1) {
        auto why = missing_events(shown.key(), first, last, events->size());
        const bool is_left_out
          = why.code() == errc::not_found && !has_begun && !is_required;
        return is_left_out ? result<void>() : why;
      }
      std::string piece(has_begun ? "" : head);
      for (const auto& said : *events) {
        if (std::exchange(has_begun, true))
          piece += ',';
        piece += visible_json(to_json(*said));
      }
      if (auto written = target_.write(piece); !written)
        return written;
    }
    return target_.write(has_begun ? std::string_view(text).substr(behind)
                                   : text);
  }

  error missing_events(const session_key& key,
                       std::uint64_t first,
                       std::uint64_t last,
                       std::size_t count) {
    const auto found = sessions_.get(key, {.num_recent_events = 0});
    if (!found)
      return found.error();
    if (found->revision() < last)
      return {errc::not_found,
              fmt::format("session {} was deleted while it was read",
                          to_string(key))};
    return {errc::corrupt,
            fmt::format("session {} has {} of its events {} to {}",
                        to_string(key),
                        count,
                        first,
                        last)};
  }

  // All three outlive this, which lives for one call.
  session_service& sessions_;
  store& store_;
  output& target_;
  written_sessions written_;
};

} // namespace

result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target) {
  auto opened = open_store(
    options.store,
    {.durability = options.durability, .on_warning = options.on_warning});
  if (!opened)
    return opened.error();
  const std::shared_ptr<store> kept = std::move(*opened);
  // For states as of one moment; events do not change, and are read from the
  // store itself.
  options.custom_store = kept;
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

#include "troupe/cli/sessions/export.hpp"

#include "troupe/cli/sessions/portable.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/rewind.hpp"
#include "troupe/core/support/recent_writes.hpp"
#include "troupe/stores/open_store.hpp"
#include "troupe/stores/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
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

// Writes each session as a line of JSON. The beginning of the line is written
// with the first events: a session that is deleted before them is left out.
class session_lines final : public session_sink {
public:
  explicit session_lines(output& target) : target_(target) {}

  result<void> begin(const session& shown) override {
    text_ = visible_json(to_portable_json(shown)) + '\n';
    // Quotes in values are escaped, so this finds the field itself.
    const auto at = text_.find(no_events);
    assert(at != std::string::npos && "a session without events");
    behind_ = at + no_events.size() - 1;
    has_begun_ = false;
    return {};
  }

  result<std::size_t> add(const std::vector<event_ptr>& events) override {
    std::string gathered(has_begun_ ? "" : text_.substr(0, behind_));
    std::size_t bytes = 0;
    for (const auto& said : events) {
      if (std::exchange(has_begun_, true))
        gathered += ',';
      gathered += visible_json(to_adk_json(*said));
      if (gathered.size() < write_bytes && said != events.back())
        continue;
      if (auto written = target_.write(gathered); !written)
        return written.error();
      bytes += gathered.size();
      gathered.clear();
    }
    return bytes;
  }

  result<void> end() override {
    const std::string_view text = text_;
    return target_.write(has_begun_ ? text.substr(behind_) : text);
  }

private:
  output& target_;         // Outlives this.
  std::string text_;       // The line without events.
  std::size_t behind_ = 0; // Place of the events in the line.
  bool has_begun_ = false;
};

class session_export {
public:
  session_export(session_service& sessions, store& kept, session_sink& target)
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

  // Lists by name: an update does not move a session in this order. So each
  // session is met once, and none has to be remembered.
  result<void> write_all(const export_choice& chosen) {
    name_query query{.app = chosen.app, .user = chosen.user};
    for (;;) {
      const auto rows = store_.list_by_name(query);
      if (!rows)
        return rows.error();
      if (auto written = write_rows(*rows); !written)
        return written;
      if (rows->size() < query.limit)
        return {};
      query.behind = rows->back().key;
    }
  }

private:
  // Reads the newest events of all rows at once: writing may be slow, and the
  // sessions may change meanwhile.
  result<void> write_rows(const std::vector<session_row>& rows) {
    std::vector<std::string> newest(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& row = rows[i];
      if (row.revision == 0)
        continue;
      const auto events
        = store_.load_events(row.key, row.revision, row.revision);
      // A session that was trimmed to its newest revision has no events.
      if (!events && events.error().code() != errc::gone)
        return events.error();
      if (events && !events->empty())
        newest[i] = events->front()->id;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& row = rows[i];
      auto user = row.user;
      auto app = row.app;
      hide_recent_writes(user);
      hide_recent_writes(app);
      const session shown(
        row.key,
        readonly_state({row.session, std::move(user), std::move(app), {}}),
        {},
        row.last_update_time,
        row.revision);
      if (auto done = write(shown, newest[i], false); !done)
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
    if (auto begun = target_.begin(shown); !begun)
      return begun;
    bool has_begun = false;
    piece_size size;
    for (std::uint64_t first = 1; first <= shown.revision();) {
      const auto last = std::min(shown.revision(), first + size.events() - 1);
      const auto events = store_.load_events(shown.key(), first, last);
      if (!events && events.error().code() == errc::gone && !has_begun) {
        const auto oldest = oldest_event(shown.key());
        if (!oldest)
          return oldest.error();
        first = std::max(*oldest, first + 1);
        continue;
      }
      if (!events)
        return events.error();
      if (const auto same = check_events(shown, newest, *events, first, last);
          !same) {
        const bool is_left_out = same.error().code() == errc::not_found
                                 && !has_begun && !is_required;
        return is_left_out ? result<void>() : same;
      }
      const auto bytes = target_.add(*events);
      if (!bytes)
        return bytes.error();
      has_begun = true;
      size.adapt(*bytes);
      first = last + 1;
    }
    return target_.end();
  }

  // Number of the first event that a trimmed session has.
  result<std::uint64_t> oldest_event(const session_key& key) {
    const auto found
      = store_.load_session(key, {.events_max = 0, .ids_max = 0});
    if (!found)
      return found.error();
    return *found ? (*found)->first_revision + 1 : 1;
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
  session_sink& target_;
};

} // namespace

result<void> session_sink::finish(session_service& /*sessions*/,
                                  const export_choice& /*chosen*/) {
  return {};
}

result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             session_sink& target) {
  store_options reading{.durability = options.durability};
  reading.log_bytes_max = options.store_log_bytes_max;
  reading.on_warning = options.on_warning;
  auto opened = open_store(name_of(options.store), reading);
  if (!opened)
    return opened.error();
  const std::shared_ptr<store> kept = std::move(*opened);
  // The runtime gives the state of a single session as of one moment. Lists and
  // events are read from the store directly.
  options.store = kept;
  auto owners = runtime::open(std::move(options));
  if (!owners)
    return owners.error();
  session_export writing(owners->sessions(), *kept, target);
  if (chosen.session) {
    const session_key key(
      chosen.app, chosen.user.value_or(""), *chosen.session);
    auto written = writing.write_one(key);
    return written ? target.finish(owners->sessions(), chosen) : written;
  }
  auto app = check_id(chosen.app, "app");
  if (!app)
    return app.error();
  export_choice checked{*std::move(app), {}, {}};
  if (chosen.user) {
    auto user = check_id(*chosen.user, "user");
    if (!user)
      return user.error();
    checked.user = *std::move(user);
  }
  auto written = writing.write_all(checked);
  return written ? target.finish(owners->sessions(), checked) : written;
}

result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target) {
  session_lines lines(target);
  return export_sessions(chosen, std::move(options), lines);
}

} // namespace troupe::cli

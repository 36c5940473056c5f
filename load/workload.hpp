// The plan of a load test: number of sessions and callers, and the content of
// each append. Equal settings and seed give equal appends.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/store.hpp"
#include "troupe/stores/store_options.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// Trigger of an append.
enum class arrival : std::uint8_t {
  closed, ///< Each caller waits for its answer, then appends again.
  open,   ///< Appends begin at a fixed rate.
};

/// Effect of an append on the state.
enum class append_kind : std::uint8_t {
  set,             ///< Sets the append's number under a key of the caller's.
  add,             ///< Adds one under a key that all callers share.
  append,          ///< Appends the append's number to a list of the caller's.
  compare_and_set, ///< Replaces the number of the caller's last append by that
                   ///< of the next, under a key of the caller's. Needs closed
                   ///< arrival.
};

/// One entry of the mix: a kind of append. An append changes one key in each
/// chosen scope, at least one.
struct mix_entry {
  append_kind kind = append_kind::add; ///< Operation on each of the keys.
  bool session = true;                 ///< Changes a key of the session.
  bool user = false;                   ///< Changes a key of the user.
  bool app = false;                    ///< Changes a key of the app.
  /// Share of the appends, relative to the other entries; above 0.
  double weight = 1;
};

/// Settings of a load test. `check_settings` checks their limits.
struct settings {
  /// Address: `memory:`, `sqlite:PATH` or `postgres:URL`. Or a store of your
  /// own, which is closed at the end.
  location<troupe::store> store = "memory:";
  /// Faults that acknowledged events survive.
  troupe::durability durability = durability::durable;
  /// Number of apps, at least 1.
  std::size_t apps = 1;
  /// Number of users, at least one per app.
  std::size_t users = 8;
  /// In total. Sessions are spread over the users in turn, users over the apps.
  std::size_t sessions = 64;
  /// Callers that append at the same time. With open arrival the appends are
  /// dealt to them in turn.
  std::size_t callers = 64;
  /// In total; unset: as many as fit into `duration`.
  std::optional<std::uint64_t> appends = {};
  /// Time limit of the test if `appends` is unset.
  std::chrono::milliseconds duration{10'000};
  /// Trigger of each append: the caller's previous answer, or the clock.
  load::arrival arrival = arrival::closed;
  /// Appends per second for open arrival, above 0 and at most 10,000,000; 0 for
  /// closed arrival.
  double rate = 0;
  /// Exponent of the Zipf distribution over sessions, at least 0; 0: uniform.
  /// Must be 0 if `hot` is set.
  double zipf = 0;
  /// All appends go to one session.
  bool hot = false;
  /// Kinds of appends by weight, at least one.
  std::vector<mix_entry> mix = {
    {append_kind::add, true, false, false, 7},
    {append_kind::add, true, true, false, 2},
    {append_kind::add, true, true, true, 1},
  };
  /// Bytes of text in each event.
  std::size_t payload = 64;
  /// Number of readers. Each reads the newest 20 events of one session after
  /// the other while appends are made.
  std::size_t readers = 0;
  /// Seed of the choice of sessions and kinds.
  std::uint64_t seed = 1;
};

/// Fails with `errc::invalid_argument` for settings that cannot be run.
result<void> check_settings(const settings& chosen);

/// Reads a mix: `SCOPES:KIND[=WEIGHT],…`, with scopes `session`, `user` and
/// `app` joined by `+`, and kinds `set`, `add`, `append`, `cas`. Fails with
/// `errc::invalid_argument`.
result<std::vector<mix_entry>> read_mix(std::string_view text);

/// The text of a mix.
std::string to_string(const std::vector<mix_entry>& mix);

/// One append: number, session and kind.
struct planned_append {
  std::uint32_t caller = 0;        ///< Index of the caller, from 0.
  std::uint64_t number = 0;        ///< Number of the caller's append, from 0.
  std::uint32_t session = 0;       ///< Index of the session.
  std::uint32_t entry = 0;         ///< Index in the mix.
  const mix_entry* what = nullptr; ///< That entry of the workload's mix.
};

/// Numbers of appends, in the order session, user, app; unset for none.
using numbers_before = std::array<std::optional<std::uint64_t>, 3>;

/// The scopes that an entry of the mix touches.
std::vector<scope> scopes_of(const mix_entry& entry);

/// The plan of one test. Immutable and thread-safe.
class workload {
public:
  /// `chosen` has passed `check_settings`. `run` distinguishes the sessions
  /// from those of other runs on the same store.
  workload(settings chosen, std::string run);

  /// The settings of this workload.
  const settings& chosen() const noexcept { return chosen_; }

  /// The key of a session by its index: `load-RUN-APP`, `user-USER`,
  /// `session-INDEX`.
  session_key session(std::size_t index) const;

  /// Index of a session's user. Sessions are dealt to the users in turn.
  std::size_t user_of(std::size_t session) const noexcept {
    return session % chosen_.users;
  }

  /// Index of a user's app. Users are dealt to the apps in turn.
  std::size_t app_of(std::size_t user) const noexcept {
    return user % chosen_.apps;
  }

  /// Name of an app by its index: `load-RUN-APP`.
  std::string app_name(std::size_t app) const;
  /// Name of a user by its index: `user-USER`.
  static std::string user_name(std::size_t user);

  /// Chooses session and kind of an append by hashes of the seed, the caller
  /// and the number. Equal arguments give equal appends.
  planned_append plan(std::uint32_t caller, std::uint64_t number) const;

  /// Makes the event. `before` holds, by scope, the numbers of the caller's
  /// last append under the same keys, which a compare-and-set expects.
  event make(const planned_append& planned, const numbers_before& before) const;

  /// Text of each event: `settings::payload` bytes.
  const std::string& payload() const noexcept { return payload_; }

  /// Author of each event.
  static constexpr std::string_view author = "load";

  /// Elements of a list before it starts anew, since values have a size limit.
  static constexpr std::uint64_t list_length = 256;

  /// Returns the id of an append's event, `load-CALLER-NUMBER`.
  static std::string id_of(std::uint32_t caller, std::uint64_t number);

  /// An append, as its id names it.
  struct identity {
    std::uint32_t caller; ///< Index of the caller.
    std::uint64_t number; ///< Number of the caller's append, from 0.
  };

  /// Reads an id; unset for an id that `id_of` does not make.
  static std::optional<identity> identity_of(std::string_view id);

  /// The key that an append changes in a scope, with prefix.
  static std::string key_of(const planned_append& planned, scope where);

private:
  settings chosen_;
  std::string run_;
  std::vector<double> sessions_; // Cumulative shares; empty: uniform.
  std::vector<double> mix_;      // Cumulative shares.
  std::string payload_;
};

/// The key that `append_kind::add` counts in, without prefix.
inline constexpr std::string_view counter_key = "appends";

} // namespace troupe::load

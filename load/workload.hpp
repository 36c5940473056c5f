// What a load test does: how many sessions and callers there are, and what each
// append is. The same settings and seed give the same appends.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/open_store.hpp"

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

enum class arrival : std::uint8_t {
  closed, ///< Each caller waits for its answer before it goes on.
  open,   ///< Appends begin at a fixed rate, whatever the answers do.
};

/// What an append does to state.
enum class append_kind : std::uint8_t {
  set,             ///< A value of its own under a key of the caller's.
  add,             ///< One more under a key that all callers share.
  append,          ///< An element more in a list of the caller's.
  compare_and_set, ///< Its number in place of the one before.
};

/// One entry of the mix: a kind, in all of these scopes at once.
struct mix_entry {
  append_kind kind = append_kind::add;
  bool session = true;
  bool user = false;
  bool app = false;
  /// Its share among all entries.
  double weight = 1;
};

struct settings {
  std::string store = "memory:";
  /// A store of one's own, in place of `store`, which is its name then. It is
  /// closed at the end.
  std::shared_ptr<troupe::store> custom_store = {};
  troupe::durability durability = durability::durable;
  std::size_t apps = 1;
  std::size_t users = 8;
  /// In total, dealt out to the users in turn, and these to the apps.
  std::size_t sessions = 64;
  std::size_t callers = 64;
  /// In total; unset: as many as there are in `duration`.
  std::optional<std::uint64_t> appends = {};
  std::chrono::milliseconds duration{10'000};
  load::arrival arrival = arrival::closed;
  /// Appends per second, with open arrival.
  double rate = 0;
  /// Of the Zipf distribution over sessions; 0: all alike.
  double zipf = 0;
  /// All appends go to one session.
  bool hot = false;
  std::vector<mix_entry> mix = {
    {append_kind::add, true, false, false, 7},
    {append_kind::add, true, true, false, 2},
    {append_kind::add, true, true, true, 1},
  };
  /// Bytes of text in each event.
  std::size_t payload = 64;
  /// Callers that read beside the others: the newest events of a session.
  std::size_t readers = 0;
  std::uint64_t seed = 1;
};

/// Fails with `errc::invalid_argument` on what could not be run.
result<void> check_settings(const settings& chosen);

/// Reads a mix: `SCOPES:KIND[=WEIGHT],…`, scopes being `session`, `user` and
/// `app` joined by `+`, kinds `set`, `add`, `append`, `cas`. Fails with
/// `errc::invalid_argument`.
result<std::vector<mix_entry>> read_mix(std::string_view text);

/// The reverse.
std::string to_string(const std::vector<mix_entry>& mix);

/// One append: which it is, where it goes and what it does.
struct planned_append {
  std::uint32_t caller = 0;
  std::uint64_t number = 0; ///< Of those of the caller, from 0.
  std::uint32_t session = 0;
  std::uint32_t entry = 0;         ///< Of the mix.
  const mix_entry* what = nullptr; ///< That entry, in the workload.
};

/// By scope: session, user, app.
using numbers_before = std::array<std::optional<std::uint64_t>, 3>;

/// The scopes that an entry of the mix touches.
std::vector<scope> scopes_of(const mix_entry& entry);

/// Immutable, thread-safe.
class workload {
public:
  /// `chosen` has been checked. `run` tells its sessions from those of other
  /// runs on the same store.
  workload(settings chosen, std::string run);

  const settings& chosen() const noexcept { return chosen_; }

  session_key session(std::size_t index) const;

  /// The user of a session, and the app of a user, by their numbers.
  std::size_t user_of(std::size_t session) const noexcept {
    return session % chosen_.users;
  }

  std::size_t app_of(std::size_t user) const noexcept {
    return user % chosen_.apps;
  }

  std::string app_name(std::size_t app) const;
  static std::string user_name(std::size_t user);

  planned_append plan(std::uint32_t caller, std::uint64_t number) const;

  /// The event; `before` are what a compare-and-set has to find, by scope: the
  /// numbers of the caller's appends before this one under the same keys.
  event make(const planned_append& planned, const numbers_before& before) const;

  /// What each event says, and who says it.
  const std::string& payload() const noexcept { return payload_; }

  static constexpr std::string_view author = "load";

  /// Elements that a list gets before it begins anew: values have a size limit.
  static constexpr std::uint64_t list_length = 256;

  /// The id of its event, and the reverse; nothing if it is none of ours.
  static std::string id_of(std::uint32_t caller, std::uint64_t number);

  struct identity {
    std::uint32_t caller;
    std::uint64_t number;
  };

  static std::optional<identity> identity_of(std::string_view id);

  /// The key that an append changes in a scope, with prefix.
  static std::string key_of(const planned_append& planned, scope where);

private:
  settings chosen_;
  std::string run_;
  std::vector<double> sessions_; // Cumulative shares; empty: all alike.
  std::vector<double> mix_;      // The same.
  std::string payload_;
};

/// The key under which `append_kind::add` counts, without a prefix.
inline constexpr std::string_view counter_key = "appends";

} // namespace troupe::load

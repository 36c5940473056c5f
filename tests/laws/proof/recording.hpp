// The app whose calls a history records: the names of its keys, and notes about
// the answers.

#pragma once

#include "troupe/core/shared_write.hpp"

#include "history.hpp"
#include "key_finder.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

using register_operation = register_spec::operation;

inline constexpr std::size_t registers_each = 4;
inline constexpr std::uint32_t segments_max = 4'096;
inline constexpr std::int64_t balance_start = 100;
inline constexpr std::array account_keys
  = {"bal", "user:bal", "app:bal", "app:pot"};

/// The owner of a group of keys. Owner 0 is the app; users follow, then
/// sessions.
struct recorded_owner {
  scope where;
  std::string label;
  /// Number of tokens appended to its list.
  std::atomic<std::uint32_t> sent{0};
};

/// One call: its request and its answer.
struct recorded_call {
  std::string id; ///< Id of the event or of the write.
  /// The revision that a write to shared state has made; 0 for other calls.
  std::uint64_t revision = 0;
  /// For the second sending of a write: the first one.
  const recorded_call* first_sent = nullptr;
  /// The owner that a write was sent to.
  std::size_t written_at = 0;
  list_transaction lists;
  std::vector<std::pair<std::uint32_t, list_spec::operation>> list_calls;
  std::vector<std::pair<std::size_t, register_operation>> registers;
  std::optional<std::size_t> group; ///< Accounts moved or read.
  std::optional<transfer> moved;
  std::optional<balance_read> balances;
  bool may_be_refused = false;
  bool must_be_refused = false;
  std::string code;
};

/// The state that all threads share. Any thread may call its functions; each
/// `recorded_call` belongs to one call at a time.
class recording {
public:
  /// Creates the sessions of the app `name`.
  recording(std::vector<session_service*> services,
            std::string name,
            const workload& chosen);

  // -- names ----

  std::size_t user_of(std::size_t session) const;
  session_key key_of(std::size_t session) const;
  std::size_t owner_of(std::size_t session) const;
  std::array<std::size_t, 3> owners_of(std::size_t session) const;
  std::string list_key(std::size_t at, std::uint32_t part) const;
  std::string register_key(std::size_t at, std::size_t number) const;
  std::string account(const char* key, std::size_t session) const;
  std::uint32_t segment(std::uint32_t sent) const;
  static std::uint32_t list_id(std::size_t at, std::uint32_t part);
  std::uint64_t tick();

  // -- answers ----

  // These note parts of an answer in `on`, for the owner `at`.
  void read_list(recorded_call& on,
                 std::size_t at,
                 std::uint32_t part,
                 const key_finder& find);
  void
  read_registers(recorded_call& on, std::size_t at, const key_finder& find);
  void
  read_accounts(recorded_call& on, std::size_t session, const key_finder& find);
  /// Takes the results of the operations from the stored event.
  void look_at_stored(recorded_call& on, const event& stored);
  /// Takes the results of the operations from an answer.
  void look_at_results(recorded_call& on, const key_finder& find);
  /// Notes the answer of an append.
  void look(recorded_call& on, const result<event_ptr>& answer);
  /// Notes the answer of a write to shared state, which has one operation.
  void look(recorded_call& on, const result<shared_write>& answer);

  // -- data ----

  const std::vector<session_service*> sessions;
  const std::string app;
  const workload wanted;
  const std::size_t session_count;
  std::deque<recorded_owner> owners;
  /// The newest value seen in each register by any thread; below 0: no value.
  std::vector<std::atomic<std::int64_t>> last_seen;
  std::atomic<std::uint64_t> clock{0};
  std::atomic<token> tokens{0};
};

/// Returns `ok`, or the code of the error.
template <class T>
std::string recorded_code(const result<T>& answer) {
  return answer ? "ok" : std::string(to_string(answer.error().code()));
}

} // namespace troupe::testing

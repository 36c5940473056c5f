// Many threads on one app, and what each of them asked, when, and what it was
// told: for the checkers.
//
// Each thread blocks for some of its calls and keeps others under way. Most of
// them fall on a few sessions and keys. Every `get` reads many keys at once.

#pragma once

#include "troupe/runtime/session_service.hpp"

#include "append_order.hpp"
#include "conserved_sums.hpp"
#include "linearizability.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

struct workload {
  std::uint64_t seed = 1;
  std::size_t threads = 6;
  /// Calls that a thread keeps under way.
  std::size_t in_flight = 16;
  /// Calls of all threads.
  std::size_t operations = 10'000;
  std::size_t users = 3;
  std::size_t sessions_per_user = 3;
  /// A list goes on under a new key after so many tokens.
  std::size_t list_length = 500;
  /// Whether calls may be answered with `errc::store_failed`.
  bool store_fails = false;
};

struct history {
  std::size_t operations = 0;
  std::map<std::string, std::size_t> answers; ///< By code.
  std::vector<std::string> unexpected;        ///< Answers that cannot be.

  std::vector<list_transaction> lists;
  std::vector<std::string> list_names;
  std::map<std::string, std::vector<timed_call<list_spec::operation>>>
    list_calls;
  std::map<std::string, std::vector<timed_call<register_spec::operation>>>
    registers;

  /// Accounts that are read together, by session.
  struct account_group {
    std::int64_t total = 0;
    std::vector<transfer> transfers;
    std::vector<balance_read> reads;
  };

  std::vector<account_group> accounts;
};

/// Creates the sessions of `app`, runs the workload on them, and reads
/// everything once more in the end. With several services, which share a place,
/// each thread uses one of them.
history record_history(const std::vector<session_service*>& sessions,
                       const std::string& app,
                       const workload& wanted);

/// What the checkers say of it.
struct judgement {
  std::vector<std::string> findings;
  std::size_t keys = 0;    ///< That were searched for an order.
  std::uint64_t steps = 0; ///< Of all searches.
  order_verdict order;
  std::size_t sums = 0;
};

judgement judge(const history& told, time_order time);

/// Its findings; empty if all holds.
std::string to_string(const judgement& made);

} // namespace troupe::testing

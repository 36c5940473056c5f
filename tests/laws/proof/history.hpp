// Records a history for the checkers: many threads call one app, and each call
// is kept with its times of question and answer and with its answer.
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
  /// Number of calls that each thread keeps under way.
  std::size_t in_flight = 16;
  /// Number of calls of all threads together.
  std::size_t operations = 10'000;
  std::size_t users = 3;
  std::size_t sessions_per_user = 3;
  /// Number of tokens after which a list continues under a new key.
  std::size_t list_length = 500;
  /// True if `errc::store_failed` is an expected answer.
  bool store_fails = false;
};

struct history {
  std::size_t operations = 0;
  std::map<std::string, std::size_t> answers; ///< Number of answers by code.
  std::vector<std::string> unexpected;        ///< Answers that are impossible.

  std::vector<list_transaction> lists;
  std::vector<std::string> list_names;
  std::map<std::string, std::vector<timed_call<list_spec::operation>>>
    list_calls;
  std::map<std::string, std::vector<timed_call<register_spec::operation>>>
    registers;

  /// The accounts of one session, which are read together.
  struct account_group {
    std::int64_t total = 0;
    std::vector<transfer> transfers;
    std::vector<balance_read> reads;
  };

  std::vector<account_group> accounts;
};

/// Creates the sessions of `app`, runs the workload on them, and reads
/// everything once more at the end. With several services on one place, each
/// thread uses one of them.
history record_history(const std::vector<session_service*>& sessions,
                       const std::string& app,
                       const workload& wanted);

/// The findings of all checkers.
struct judgement {
  std::vector<std::string> findings;
  std::size_t keys = 0;    ///< Number of keys searched for an order.
  std::uint64_t steps = 0; ///< Steps of all searches.
  order_verdict order;
  std::size_t sums = 0;
};

judgement judge(const history& told, time_order time);

/// The findings as text; empty if all checks hold.
std::string to_string(const judgement& made);

} // namespace troupe::testing

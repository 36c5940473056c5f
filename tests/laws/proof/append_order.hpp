// Checks that a history of appends to lists agrees on one order, in the manner
// of Elle.
//
// Every appended token is unique. A list that was read therefore names the
// appends that it contains, and their order. The checker derives from it which
// appends were lost, doubled or reordered, and which transaction precedes
// which. A cycle of these dependencies is an anomaly with a name by Adya.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

using token = std::uint32_t;

enum class fate : std::uint8_t {
  done,
  refused, ///< Had no effect.
  unknown, ///< Never answered; may have an effect at any time.
};

/// The appends and the reads of one call; all of them take effect at one
/// moment.
struct list_transaction {
  struct append {
    std::uint32_t key;
    token what;
    /// The place in the list, from 1, if the answer has it; else 0.
    std::size_t place = 0;
  };

  struct read {
    std::uint32_t key;
    std::vector<token> list;
  };

  std::size_t process = 0;
  /// Calls of one process on one channel take effect in the order of the calls,
  /// even when they overlap.
  std::size_t channel = 0;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  fate came_to = fate::done;
  std::vector<append> appends = {};
  std::vector<read> reads = {};
};

/// Selects the pairs of calls that must keep their order when one was answered
/// before the other was asked. Dependencies by reads and writes always count.
enum class time_order : std::uint8_t {
  none,
  process, ///< Pairs of one process.
  channel, ///< Pairs of one channel, by any process.
  all,
};

struct order_rules {
  time_order time = time_order::none;
  /// Names of keys in findings; a key without one is `key 3`.
  std::vector<std::string> key_names = {};
};

struct order_verdict {
  /// Number of findings by kind: `lost`, `duplicate`, `ghost`, `aborted read
  /// (G1a)`, `G-single`, ….
  std::map<std::string, std::size_t> counts;
  /// A text for the first finding of each kind.
  std::vector<std::string> findings;
  std::size_t appends = 0;
  std::size_t reads = 0;
  /// Edges of the graph, by kind: `ww`, `wr`, `rw`, `time`.
  std::map<std::string, std::size_t> edges;

  bool holds() const noexcept { return counts.empty(); }
};

/// All findings, one per line; empty if there are none.
std::string to_string(const order_verdict& found);

order_verdict check_append_order(const std::vector<list_transaction>& history,
                                 const order_rules& rules = {});

} // namespace troupe::testing

// Whether histories of appends to lists agree on one order, in the manner of
// Elle.
//
// Every appended token is unique, so a list that was read says which appends it
// has seen, and in which order they took effect. From that follow, for the
// transactions of all callers: what was lost, doubled or reordered, and who
// must have come before whom; a cycle among these is an anomaly by Adya's
// names.

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

/// What one call has appended and read, all of it at one moment.
struct list_transaction {
  struct append {
    std::uint32_t key;
    token what;
    /// From 1, if the answer told it.
    std::size_t place = 0;
  };

  struct read {
    std::uint32_t key;
    std::vector<token> list;
  };

  std::size_t process = 0;
  /// Calls of one process on one channel take effect in the order in which
  /// they were asked, also when they overlap.
  std::size_t channel = 0;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  fate came_to = fate::done;
  std::vector<append> appends = {};
  std::vector<read> reads = {};
};

/// Which calls have to keep their order when one was answered before the other
/// was asked, besides what follows from what they have seen.
enum class time_order : std::uint8_t {
  none,
  process, ///< Those of one process.
  channel, ///< Those on one channel, by whatever process.
  all,
};

struct order_rules {
  time_order time = time_order::none;
  /// Names keys in findings; unset: `key 3`.
  std::vector<std::string> key_names = {};
};

struct order_verdict {
  /// By kind: `lost`, `duplicate`, `ghost`, `aborted read (G1a)`, `G-single`,
  /// ….
  std::map<std::string, std::size_t> counts;
  /// The first of each kind, in words.
  std::vector<std::string> findings;
  std::size_t appends = 0;
  std::size_t reads = 0;
  /// Edges of the graph, by kind: `ww`, `wr`, `rw`, `time`.
  std::map<std::string, std::size_t> edges;

  bool holds() const noexcept { return counts.empty(); }
};

/// All findings, one below the other; empty if there are none.
std::string to_string(const order_verdict& found);

order_verdict check_append_order(const std::vector<list_transaction>& history,
                                 const order_rules& rules = {});

} // namespace troupe::testing

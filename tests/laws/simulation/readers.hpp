// Readers of a simulation that follow sessions: some are fast, some are slow,
// and some are closed.

#pragma once

#include "troupe/runtime/follower.hpp"

#include "dice.hpp"
#include "history.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "world.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::testing {

class readers {
public:
  /// `programs` may hold null for a while, as for `traffic`.
  readers(world& in,
          history& told,
          const plan& chosen,
          std::vector<std::unique_ptr<program>>& programs);

  /// Sometimes starts a reader on `key`, for a client in a burst of calls.
  void start_sometimes(std::size_t client,
                       std::size_t burst,
                       const session_key& key);

  /// Lets all readers read to the end, and records their places.
  void finish();

private:
  program* program_of(const follow_record& record) const;
  void read(const std::shared_ptr<follower>& from, follow_record& record);
  void end(follow_record& record, const result<event_ptr>& last);

  world& world_;
  history& told_;
  const plan& plan_;
  std::vector<std::unique_ptr<program>>& programs_;
  // Its own, so that seeds without readers keep their histories.
  dice chance_;
  std::vector<std::pair<std::weak_ptr<follower>, follow_record*>> started_;
};

} // namespace troupe::testing

// A session without a store. Its decisions take effect at once, and all its
// events stay in memory.
//
// Invariant: an answer is sent after the list index and the view of the runs
// show the change.

#pragma once

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/sessions/earlier_states.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors {

class memory_session final : public session_actor {
public:
  /// `idle` is the state of the session; null if it does not exist.
  memory_session(caf::actor_config& config,
                 std::shared_ptr<setup> shared,
                 user_actor& user,
                 std::shared_ptr<const user_names> names,
                 std::string id,
                 std::unique_ptr<idle_session> idle);

protected:
  void commit() override;
  bool start_remove(std::unique_ptr<remove> removal) override;
  session read_earlier(const get_options& options) override;
  void take_past(forked_past& past) override;
  void share_past(const get_options& options, forked_past& past) override;
  void trim(const wanted_trim& wish) override;
  void publish() override;
  void renew_view(get& wanted) override;
  std::uint64_t incarnation() override;
  void part() override;

private:
  void note_states();
  event_slice events_up_to(std::uint64_t revision) const;
  std::unique_ptr<idle_session> become_idle();

  earlier_states earlier_;
  std::unique_ptr<listing> listing_; // Null if the session does not exist.
};

} // namespace troupe::actors

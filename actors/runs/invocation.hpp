// One run: the root lane, the owner of `temp:`, and the only sender of the
// run's events to the session.
//
// It is the narrowest owner of a climb: it judges `temp:` operations before the
// event goes up, and installs them when the event is committed.

#pragma once

#include "troupe/actors/runs/lane.hpp"
#include "troupe/actors/runs/start_wait.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <memory>
#include <optional>

namespace troupe::actors {

class invocation_actor final : public lane_actor {
public:
  invocation_actor(caf::actor_config& config,
                   std::shared_ptr<run_shared> run,
                   agent which,
                   scope_state temp);

  void emit(emit_request& request) override;

protected:
  void deliver(letter_ptr received) override;
  void finish(result<agent_end> outcome) override;
  task<agent_end> body() override;

private:
  void receive(std::unique_ptr<append> answered);
  void receive(std::unique_ptr<actors::emit> sent);
  void receive(std::unique_ptr<start_run> granted);
  void receive(std::unique_ptr<refused_run> refused);
  void receive(std::unique_ptr<struct try_again> told);
  void receive_message(const append& answered);
  void keep_out(std::unique_ptr<append> message);
  bool waits_for_pause(const append& answered) const;
  void recover(const recorded_run& found);
  void receive(std::unique_ptr<struct cancel> wished);
  void take(lane_actor& from, emit_request& request);
  void send(lane_actor& from, emit_request& request);
  void send_with_temp(lane_actor& from, emit_request& request);
  void wait_for_temp(lane_actor& from, emit_request& request);
  bool judge_temp(lane_actor& from, emit_request& request);
  void send_on(lane_actor& from, emit_request& request);
  void keep_nested(lane_actor& from, emit_request& request);
  void
  answer(lane_actor& from, emit_request& request, result<event_ptr> outcome);
  void leave_session();
  void end(result<void> outcome);
  void release();
  void released(const append& answered);
  void leave_session(result<void> outcome);
  void note_opened(const append& message);
  void leave_claimed(const run_claim& claim);
  bool stays_open(const result<void>& outcome) const;
  void close_if_over(const run_claim& refused);
  void close_in_store(const result<void>& outcome);

  // The message, which may be stored, opens the run in the store.
  bool is_open_ = false;
  bool started_ = false;
  // The message while another process' run keeps it out, or while a recovery
  // looks for its run again; sent again later.
  std::unique_ptr<append> kept_out_;
  // Tells when to send it; null if that was never so.
  std::shared_ptr<start_wait> start_wait_;
  // Set while the run gives back a claimed pause; holds the run's outcome.
  std::optional<result<void>> releasing_;
  int release_tries_ = 0;
};

} // namespace troupe::actors

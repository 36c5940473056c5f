// Invariant: while letters wait in the inbox, the actor is scheduled or
// running, exactly once. The sender that finds it asleep schedules it; `resume`
// lets it sleep only while the inbox is empty.

#include "troupe/actors/engine/inbox_actor.hpp"

#include "troupe/actors/engine/blocked_thread.hpp"
#include "troupe/actors/engine/caf_error.hpp"
#include "troupe/actors/engine/scheduler.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <caf/actor_system.hpp>
#include <caf/system_messages.hpp>

#include <new>
#include <optional>

namespace troupe::actors {

namespace {

// A CAF message on its way through the inbox.
struct wrapped : letter {
  explicit wrapped(caf::mailbox_element_ptr sent)
    : letter(wrapped_letter),
      element(std::move(sent)) {}

  // The same answer as CAF's own closed mailbox gives, with our reason.
  void fail(const error& why) override {
    if (element->sender && element->mid.is_request())
      element->sender->enqueue(nullptr,
                               element->mid.response_id(),
                               caf::make_message(to_caf(why)),
                               nullptr);
  }

  caf::mailbox_element_ptr element;
};

// CAF messages that would end the actor. They are ignored: our actors end only
// when their parents tell them, since letters would be left unanswered
// otherwise.
bool ends_actors(caf::mailbox_element& sent) {
  const auto& content = sent.content();
  return content.match_elements<caf::exit_msg>()
         || content.match_elements<caf::down_msg>()
         || (content.match_elements<caf::error>() && !sent.mid.is_response());
}

// Number of batches that are handled before other actors run.
constexpr int rounds_max = 4;

} // namespace

inbox_actor::inbox_actor(caf::actor_config& config,
                         std::shared_ptr<execution> on)
  : caf::event_based_actor(config),
    on_(std::move(on)) {
  // CAF catches an exception from the start of an actor, and ends the actor.
  // Those that wait for its answer would wait forever.
  set_exception_handler(
    [](caf::scheduled_actor* self, std::exception_ptr& thrown) {
      end_if_out_of_memory(thrown);
      return default_exception_handler(self, thrown);
    });
  on_->actors.enter(0);
}

void inbox_actor::wake() {
  // The scheduler releases this reference after the job.
  intrusive_ptr_add_ref(ctrl());
  // The letter is in the inbox: without a job it would never be handled.
  with_memory_or_end([this] {
    if (is_brief())
      schedule_brief(*on_, this);
    else
      schedule(*on_, this);
  });
}

void inbox_actor::tell(letter_ptr sent) {
  switch (inbox_.push(sent)) {
  case inbox::pushed::wake:
    wake();
    break;
  case inbox::pushed::closed:
    turn_away(std::move(sent));
    break;
  case inbox::pushed::quiet:
    break;
  }
}

void inbox_actor::enqueue(caf::mailbox_element_ptr sent, caf::execution_unit*) {
  letter_ptr carried = std::make_unique<wrapped>(std::move(sent));
  switch (inbox_.push(carried)) {
  case inbox::pushed::wake:
    wake();
    break;
  case inbox::pushed::closed:
    turn_away(std::move(carried));
    break;
  case inbox::pushed::quiet:
    break;
  }
}

void inbox_actor::launch(caf::execution_unit*, bool, bool hide) {
  // The actor is scheduled by its first letter, so spawning it costs no job.
  if (!hide)
    register_at_system();
}

void inbox_actor::handle(letter_ptr received) {
  if (received->kind == wrapped_letter) {
    auto& element = *static_cast<wrapped&>(*received).element;
    if (!ends_actors(element))
      reactivate(element);
  } else {
    deliver(std::move(received));
  }
}

// Without memory a letter may be half done, so `resume` ends the program. Any
// other exception is a defect: the destructor of the dropped letter answers it,
// and the actor continues.
void inbox_actor::handle_safely(letter_ptr received) {
  try {
    handle(std::move(received));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return;
  }
}

// `letters_max` bounds the letters of this activation. Workers pass no bound.
caf::resumable::resume_result inbox_actor::resume(caf::execution_unit* unit,
                                                  std::size_t letters_max) {
  return with_memory_or_end([&] { return activation(unit, letters_max); });
}

caf::resumable::resume_result inbox_actor::activation(caf::execution_unit* unit,
                                                      std::size_t letters_max) {
  if (!activate(unit))
    return done;
  std::optional<brief_job> brief;
  if (is_brief())
    brief.emplace();
  else
    start_long_job();
  const wake_batch woken;
  for (int round = 0; round < rounds_max; ++round) {
    if (taken_.empty())
      taken_ = inbox_.take();
    for (; !taken_.empty() && letters_max > 0 && !getf(is_shutting_down_flag);
         --letters_max)
      handle_safely(taken_.pop_front());
    if (getf(is_shutting_down_flag))
      while (!taken_.empty())
        leave_behind(taken_.pop_front());
    else
      rest();
    const no_timeouts none;
    if (finalize())
      return done;
    if (letters_max == 0 && !taken_.empty())
      return resume_later;
    // Last access to the actor: after this a sender may schedule it on another
    // thread.
    if (inbox_.try_sleep())
      return awaiting_message;
  }
  return resume_later;
}

void inbox_actor::on_exit() {
  // Order matters: `let_go` may still send letters to this actor, `close` makes
  // later senders call `turn_away`, and `part` tells the parent when nothing is
  // left to answer.
  let_go();
  for (auto left = inbox_.close(); !left.empty();)
    leave_behind(left.pop_front());
  part();
  on_->actors.leave(0);
}

} // namespace troupe::actors

#include "troupe/actors/inbox_actor.hpp"

#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/scheduler.hpp"
#include "troupe/actors/setup.hpp"

#include <caf/actor_system.hpp>
#include <caf/system_messages.hpp>

#include <optional>

namespace troupe::actors {

namespace {

// A CAF message on its way through the inbox.
struct wrapped : letter {
  explicit wrapped(caf::mailbox_element_ptr sent)
    : letter(letter_kind::wrapped),
      element(std::move(sent)) {}

  // What CAF's own mailbox does when it is closed, with our reason.
  void fail(const error& why) override {
    if (element->sender && element->mid.is_request())
      element->sender->enqueue(nullptr,
                               element->mid.response_id(),
                               caf::make_message(to_caf(why)),
                               nullptr);
  }

  caf::mailbox_element_ptr element;
};

// Our actors end when their parents say so: one that somebody outside could
// end, by a link or an exit message, would leave letters unanswered.
bool ends_actors(caf::mailbox_element& sent) {
  const auto& content = sent.content();
  return content.match_elements<caf::exit_msg>()
         || content.match_elements<caf::down_msg>()
         || (content.match_elements<caf::error>() && !sent.mid.is_response());
}

// Letters handled before other actors get their turn.
constexpr int rounds_max = 4;

} // namespace

inbox_actor::inbox_actor(caf::actor_config& config,
                         std::shared_ptr<setup> shared)
  : caf::event_based_actor(config),
    shared_(std::move(shared)) {
  shared_->actors.enter(0);
}

void inbox_actor::wake() {
  // The scheduler holds a reference while the actor is queued.
  intrusive_ptr_add_ref(ctrl());
  schedule(*shared_, this);
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
  // Nothing runs before the first letter: spawning costs no turn of the
  // scheduler.
  if (!hide)
    register_at_system();
}

void inbox_actor::handle(letter_ptr received) {
  if (received->kind == letter_kind::wrapped) {
    auto& element = *static_cast<wrapped&>(*received).element;
    if (!ends_actors(element))
      reactivate(element);
  } else {
    deliver(std::move(received));
  }
}

// Out of memory, or a defect: the letter at hand is dropped, which answers it,
// and its owner goes on.
void inbox_actor::handle_safely(letter_ptr received) noexcept {
  try {
    handle(std::move(received));
  } catch (...) {
    return;
  }
}

caf::resumable::resume_result inbox_actor::resume(caf::execution_unit* unit,
                                                  std::size_t) {
  if (!activate(unit))
    return done;
  std::optional<brief_turn> brief;
  if (is_brief())
    brief.emplace();
  for (int round = 0; round < rounds_max; ++round) {
    auto letters = inbox_.take();
    while (!letters.empty() && !getf(is_shutting_down_flag))
      handle_safely(letters.pop_front());
    while (!letters.empty())
      leave_behind(letters.pop_front());
    if (!getf(is_shutting_down_flag))
      rest();
    const no_timeouts none;
    if (finalize())
      return done;
    if (inbox_.try_sleep())
      return awaiting_message;
  }
  return resume_later;
}

void inbox_actor::on_exit() {
  let_go();
  for (auto left = inbox_.close(); !left.empty();)
    leave_behind(left.pop_front());
  part();
  shared_->actors.leave(0);
}

} // namespace troupe::actors

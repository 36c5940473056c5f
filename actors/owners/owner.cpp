// Invariant: an owner decides only on state that it has loaded and that was not
// stale when the letter was handled. Letters that arrive before are parked and
// handled in order after the load.

#include "troupe/actors/owners/owner.hpp"

#include "troupe/actors/owners/store_queue.hpp"

namespace troupe::actors {

owner_actor::owner_actor(caf::actor_config& config,
                         std::shared_ptr<setup> shared,
                         owner_name name)
  : inbox_actor(config, std::move(shared)),
    at_store_(this->shared().store ? std::make_unique<store_part>() : nullptr) {
  if (at_store_)
    at_store_->live
      = std::make_shared<live_owner>(live_owner{std::move(name), {}});
}

// -- loading ------------------------------------------------------------------

void owner_actor::deliver(letter_ptr received) {
  if (at_store_ && try_dispatch<load, reload>(received, [this](auto sent) {
        receive(std::move(sent));
      }))
    return;
  if (is_waiting() && !is_for_now(*received)) {
    note_parked(*received);
    at_store_->parked.push_back(std::move(received));
  } else {
    handle(std::move(received));
  }
}

// An owner without work that needs its state loads with its next letter. A load
// for each change of another process would cost reads that no caller needs.
void owner_actor::receive(std::unique_ptr<reload> told) {
  if (told->is_needed) {
    if (is_waiting() && !is_loading())
      load_again();
  } else if (is_loading() || needs_state()) {
    load_again();
  } else {
    load_on_demand();
  }
}

void owner_actor::start_load() {
  auto& owned = *at_store_->live;
  if (!owned.actor)
    owned.actor = ref<inbox_actor>(*this);
  at_store_->is_loading = true;
  // Cleared before the load enters the queue: a `reload` that arrives later
  // concerns the loaded state and must mark it stale again.
  at_store_->is_stale = false;
  at_store_->is_loaded = false;
  auto wanted = std::make_unique<load>();
  wanted->owner = at_store_->live;
  wanted->options = what_to_load();
  wanted->can_go_back = can_go_back();
  if (wanted->options.after == 0)
    wanted->events_from = oldest_to_load();
  shared().store->push(std::move(wanted));
}

void owner_actor::receive(std::unique_ptr<load> loaded) {
  at_store_->is_loading = false;
  if (!loaded->scope || !loaded->session) {
    const auto why
      = loaded->scope ? loaded->session.error() : loaded->scope.error();
    // The owner's own queues come first: their letters arrived before the
    // parked ones.
    refuse_waiting(why);
    for (auto waiting = std::exchange(at_store_->parked, letter_list());
         !waiting.empty();)
      refuse(waiting.pop_front(), why);
    return;
  }
  at_store_->is_loaded = true;
  at_store_->generation = loaded->generation;
  install(*loaded);
  handle_parked();
}

void owner_actor::handle_parked() {
  for (auto waiting = std::exchange(at_store_->parked, letter_list());
       !waiting.empty();) {
    auto next = waiting.pop_front();
    renew(*next);
    deliver(std::move(next));
  }
}

void owner_actor::refuse(letter_ptr received, const error& why) {
  received->fail(why);
}

void owner_actor::rest() {
  finish_letters();
  // Loads on demand only: after a failed load, the next letter tries again. The
  // load waits until `can_load`: letters under way were decided on the old
  // state and are settled first.
  if (is_waiting() && !at_store_->is_loading
      && (at_store_->is_stale || !at_store_->parked.empty()) && can_load())
    start_load();
  send_answers();
}

// -- answers ------------------------------------------------------------------

void owner_actor::answer(std::unique_ptr<call> answered) {
  answered_.push_back(std::move(answered));
}

void owner_actor::confirm(std::unique_ptr<call> held,
                          live_owners owners,
                          std::array<std::uint64_t, 3> generations,
                          owner_actor& app) {
  if (!at_store_)
    return answer(std::move(held));
  auto waiting = std::make_unique<struct confirm>();
  waiting->owners = std::move(owners);
  waiting->generations = generations;
  waiting->app = ref<inbox_actor>(app);
  waiting->held = std::move(held);
  shared().store->push(std::move(waiting));
}

void owner_actor::let_go() {
  release();
  if (at_store_) {
    while (!at_store_->parked.empty())
      leave_behind(at_store_->parked.pop_front());
    if (at_store_->live->actor) {
      auto left = std::make_unique<struct leave>();
      left->owner = at_store_->live;
      shared().store->push(std::move(left));
    }
  }
  send_answers();
}

void owner_actor::send_answers() {
  if (!answered_.empty())
    complete_later(shared(), std::exchange(answered_, letter_list()));
}

} // namespace troupe::actors

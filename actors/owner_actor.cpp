#include "troupe/actors/owner_actor.hpp"

#include "troupe/actors/store_queue.hpp"

#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>

namespace troupe::actors {

namespace {

// Callers' code runs here and not on the owner, which goes on with its next
// batch.
class completion_job final : public caf::resumable, public caf::ref_counted {
public:
  explicit completion_job(letter_list answered)
    : answered_(std::move(answered)) {}

  resume_result resume(caf::execution_unit*, std::size_t) override {
    while (!answered_.empty()) {
      const auto next = answered_.pop_front();
      static_cast<call&>(*next).complete();
    }
    return done;
  }

  subtype_t subtype() const override { return function_object; }

  void intrusive_ptr_add_ref_impl() override { intrusive_ptr_add_ref(this); }

  void intrusive_ptr_release_impl() override { intrusive_ptr_release(this); }

private:
  letter_list answered_;
};

} // namespace

void complete_later(setup& shared, letter_list answered) {
  // The scheduler takes over the reference that a new object starts with.
  schedule(shared, new completion_job(std::move(answered)));
}

inbox_actor& as_inbox(const caf::strong_actor_ptr& actor) noexcept {
  return static_cast<inbox_actor&>(*actor->get());
}

owner_actor::owner_actor(caf::actor_config& config,
                         std::shared_ptr<setup> shared,
                         owner_name name)
  : inbox_actor(config, std::move(shared)),
    live_(this->shared().store
            ? std::make_shared<live_owner>(live_owner{std::move(name), {}})
            : nullptr) {}

// -- loading
// -------------------------------------------------------------------

void owner_actor::receive(letter_ptr received) {
  switch (received->kind) {
  case letter_kind::load:
    return finish_load(take_as<load>(std::move(received)));
  case letter_kind::reload:
    stale_ = true;
    return;
  default:
    if (is_waiting() && !is_for_now(*received))
      parked_.push_back(std::move(received));
    else
      handle(std::move(received));
  }
}

void owner_actor::start_load() {
  if (!live_->actor)
    live_->actor = caf::actor_cast<caf::strong_actor_ptr>(this);
  loading_ = true;
  // Behind everything that this owner has decided: what is told stale from
  // here on is so again.
  stale_ = false;
  loaded_ = false;
  auto wanted = std::make_unique<load>();
  wanted->owner = live_;
  wanted->options = what_to_load();
  shared().store->push(std::move(wanted));
}

void owner_actor::finish_load(std::unique_ptr<load> loaded) {
  loading_ = false;
  if (!loaded->scope || !loaded->session) {
    const auto why
      = loaded->scope ? loaded->session.error() : loaded->scope.error();
    refuse_waiting(why);
    for (auto waiting = std::exchange(parked_, letter_list());
         !waiting.empty();)
      refuse(waiting.pop_front(), why);
    return;
  }
  loaded_ = true;
  generation_ = loaded->generation;
  install(*loaded);
  handle_parked();
}

void owner_actor::handle_parked() {
  for (auto waiting = std::exchange(parked_, letter_list()); !waiting.empty();)
    receive(waiting.pop_front());
}

void owner_actor::refuse(letter_ptr received, const error& why) {
  received->fail(why);
}

void owner_actor::rest() {
  settle();
  // Loaded on demand: when a load has failed, the next letter tries again.
  if (is_waiting() && !loading_ && (stale_ || !parked_.empty()) && can_load())
    start_load();
  send_answers();
}

// -- answers
// -------------------------------------------------------------------

void owner_actor::answer(std::unique_ptr<call> answered) {
  answered_.push_back(std::move(answered));
}

void owner_actor::confirm(std::unique_ptr<call> held,
                          live_owners owners,
                          std::array<std::uint64_t, 3> generations,
                          owner_actor& app) {
  if (!live_)
    return answer(std::move(held));
  auto waiting = std::make_unique<struct confirm>();
  waiting->owners = std::move(owners);
  waiting->generations = generations;
  waiting->app = caf::actor_cast<caf::strong_actor_ptr>(&app);
  waiting->held = std::move(held);
  shared().store->push(std::move(waiting));
}

void owner_actor::let_go() {
  release();
  const auto why = closed_reason();
  while (!parked_.empty())
    parked_.pop_front()->fail(why);
  if (live_ && live_->actor) {
    auto left = std::make_unique<struct leave>();
    left->owner = live_;
    shared().store->push(std::move(left));
  }
  send_answers();
}

void owner_actor::send_answers() {
  if (!answered_.empty())
    complete_later(shared(), std::exchange(answered_, letter_list()));
}

} // namespace troupe::actors

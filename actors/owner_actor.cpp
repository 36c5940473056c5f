#include "troupe/actors/owner_actor.hpp"

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

void owner_actor::answer(std::unique_ptr<call> answered) {
  answered_.push_back(std::move(answered));
}

void owner_actor::rest() {
  settle();
  send_answers();
}

void owner_actor::let_go() {
  release();
  send_answers();
}

void owner_actor::send_answers() {
  if (!answered_.empty())
    complete_later(shared(), std::exchange(answered_, letter_list()));
}

} // namespace troupe::actors

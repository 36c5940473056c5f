#include "troupe/runtime/session_writer.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/blocking_call.hpp"
#include "troupe/actors/session_letters.hpp"
#include "troupe/actors/write_order.hpp"

namespace troupe {

session_writer::session_writer(std::shared_ptr<detail::session_backend> backend,
                               session_key key)
  : backend_(std::move(backend)),
    key_(std::move(key)),
    order_(std::make_shared<actors::write_order>()) {}

template <class Event>
void session_writer::start(Event said,
                           append_options options,
                           completion<event_ptr> done) {
  if (actors::is_partial(said))
    return done(actors::as_shared(std::move(said)));
  const auto number = order_->enter();
  if (!number)
    return done(number.error());
  const actors::write_place place(order_, *number);
  actors::append_event(
    backend_->shared(),
    key_,
    std::move(said),
    options,
    [place, done = std::move(done)](result<event_ptr> outcome) {
      place.answer(done, std::move(outcome));
    },
    place);
}

void session_writer::append(event said,
                            append_options options,
                            completion<event_ptr> done) {
  start(std::move(said), options, std::move(done));
}

void session_writer::append(event_ptr said,
                            append_options options,
                            completion<event_ptr> done) {
  start(std::move(said), options, std::move(done));
}

result<event_ptr> session_writer::append(event said, append_options options) {
  return actors::wait_for<event_ptr>([&](completion<event_ptr> done) {
    append(std::move(said), options, std::move(done));
  });
}

result<event_ptr> session_writer::append(event_ptr said,
                                         append_options options) {
  return actors::wait_for<event_ptr>([&](completion<event_ptr> done) {
    append(std::move(said), options, std::move(done));
  });
}

result<void> session_writer::resume() {
  return actors::wait_for<void>(
    [this](completion<void> done) { resume(std::move(done)); });
}

void session_writer::resume(completion<void> done) {
  order_->resume(std::move(done));
}

} // namespace troupe

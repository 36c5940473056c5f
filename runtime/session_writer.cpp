#include "troupe/runtime/session_writer.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/parts/write_order.hpp"
#include "troupe/actors/pending_call.hpp"

namespace troupe {

struct session_writer::parts {
  std::shared_ptr<detail::session_backend> backend;
  session_key key;
  std::shared_ptr<actors::write_order> order;
};

session_writer::session_writer(std::shared_ptr<detail::session_backend> backend,
                               session_key key)
  : parts_(std::make_shared<const parts>(
    parts{std::move(backend),
          std::move(key),
          std::make_shared<actors::write_order>()})) {}

const session_key& session_writer::key() const noexcept {
  return parts_->key;
}

template <class Event>
pending<event_ptr> session_writer::append_any(Event said,
                                              append_options options) {
  return actors::make_pending<event_ptr>(
    parts_->backend->shared(),
    [to = parts_, said = std::move(said), options](
      completion<event_ptr> done) mutable {
      if (actors::is_partial(said))
        return done(actors::as_shared(std::move(said)));
      const auto number = to->order->take_place();
      if (!number)
        return done(number.error());
      const actors::write_place place(to->order, *number);
      actors::append_event(
        to->backend->shared(),
        to->key,
        std::move(said),
        options,
        [place, done = std::move(done)](result<event_ptr> outcome) {
          place.answer(done, std::move(outcome));
        },
        place);
    });
}

pending<event_ptr> session_writer::append(event said, append_options options) {
  return append_any(std::move(said), options);
}

pending<event_ptr> session_writer::append(event_ptr said,
                                          append_options options) {
  return append_any(std::move(said), options);
}

pending<void> session_writer::resume() {
  return actors::make_pending<void>(
    parts_->backend->shared(), [order = parts_->order](completion<void> done) {
      order->resume(std::move(done));
    });
}

} // namespace troupe

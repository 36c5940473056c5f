#include "troupe/actors/caf_door.hpp"

#include "troupe/actors/app_actor.hpp"
#include "troupe/actors/append_letter.hpp"
#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/session_letters.hpp"

#include <caf/actor_system.hpp>
#include <caf/mailbox_element.hpp>

namespace troupe::actors {

namespace {

constexpr auto category = caf::atom("troupe");

template <class T>
caf::message to_message(result<T> answer) {
  if (!answer)
    return caf::make_message(to_caf(answer.error()));
  if constexpr (std::is_same_v<T, session>)
    return caf::make_message(
      session_ptr(std::make_shared<const session>(std::move(*answer))));
  else
    return caf::make_message(std::move(*answer));
}

// Answers the message at hand later, from whichever thread completes the call:
// a `caf::response_promise` may only be kept on the thread of its actor.
template <class T>
completion<T> promise_of(owner_actor& self) {
  auto& asked = *self.current_mailbox_element();
  return [source = std::move(asked.sender),
          stages = std::move(asked.stages),
          id = asked.mid](result<T> answer) {
    auto content = to_message(std::move(answer));
    if (!stages.empty()) {
      auto left = stages;
      const auto next = std::move(left.back());
      left.pop_back();
      next->enqueue(caf::make_mailbox_element(
                      source, id, std::move(left), std::move(content)),
                    nullptr);
    } else if (source) {
      source->enqueue(nullptr, id.response_id(), std::move(content), nullptr);
    }
  };
}

} // namespace

caf::error to_caf(const error& failure) {
  // CAF's zero is "no error".
  return {static_cast<std::uint8_t>(static_cast<unsigned>(failure.code()) + 1),
          category,
          caf::make_message(failure.message())};
}

error to_error(const caf::error& failure) {
  if (failure.category() == category && failure.code() > 0
      && failure.code() <= static_cast<unsigned>(errc::internal) + 1
      && failure.context().match_elements<std::string>())
    return {static_cast<errc>(failure.code() - 1),
            failure.context().get_as<std::string>(0)};
  return {errc::internal,
          "an actor failed with code " + std::to_string(failure.code())};
}

caf::behavior closed_door() {
  return {[](append_atom) -> caf::result<void> {
    return to_caf({errc::invalid_argument, "this actor takes no messages"});
  }};
}

caf::behavior session_door(session_actor& self, std::shared_ptr<setup> shared) {
  return {
    [&self, shared](append_atom, const event_ptr& said) {
      append_event(*shared, self.key(), said, {}, promise_of<event_ptr>(self));
      return caf::delegated<event_ptr>();
    },
    [&self, shared](get_atom) {
      auto wanted = std::make_unique<get>();
      wanted->key = self.key();
      wanted->done = promise_of<session>(self);
      if (enter(*wanted, *shared))
        self.ask_app(std::move(wanted));
      return caf::delegated<session_ptr>();
    },
  };
}

caf::behavior app_door(app_actor& self,
                       std::shared_ptr<setup> shared,
                       const std::string& app) {
  return {
    [&self, shared, app](
      create_atom, const session_key& key, const json& state) {
      create_request request{
        key.app.empty() ? app : key.app, key.user, key.id, state};
      auto done = promise_of<session>(self);
      auto wanted = make_create(std::move(request), *shared);
      if (wanted && (*wanted)->key.app != app)
        wanted = error(errc::invalid_argument, "the session is another app's");
      if (!wanted) {
        done(wanted.error());
      } else {
        (*wanted)->created_done = std::move(done);
        if (enter(**wanted, *shared))
          self.tell(std::move(*wanted));
      }
      return caf::delegated<session_ptr>();
    },
    [&self, shared](get_atom, const session_key& key) {
      auto done = promise_of<session>(self);
      auto wanted = make_get(key, {});
      if (!wanted) {
        done(wanted.error());
      } else {
        (*wanted)->done = std::move(done);
        if (enter(**wanted, *shared))
          self.tell(std::move(*wanted));
      }
      return caf::delegated<session_ptr>();
    },
    [&self,
     shared](append_atom, const session_key& key, const event_ptr& said) {
      append_event(*shared, key, said, {}, promise_of<event_ptr>(self));
      return caf::delegated<event_ptr>();
    },
    [&self, shared](remove_atom, const session_key& key) {
      auto done = promise_of<bool>(self);
      auto wanted = make_remove(key);
      if (!wanted) {
        done(wanted.error());
      } else {
        (*wanted)->done = std::move(done);
        if (enter(**wanted, *shared))
          self.tell(std::move(*wanted));
      }
      return caf::delegated<bool>();
    },
  };
}

} // namespace troupe::actors

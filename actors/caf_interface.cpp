#include "troupe/actors/caf_interface.hpp"

#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/append_letter.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/session_letters.hpp"

#include <caf/actor_system.hpp>
#include <caf/mailbox_element.hpp>

namespace troupe::actors {

namespace {

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

// Answers the current CAF message later, from any thread. A
// `caf::response_promise` may only be used on the thread of its actor, so
// sender and id are kept instead.
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

completion<session>& done_of(create& wanted) {
  return wanted.created_done;
}

template <class T>
completion<T>& done_of(call_for<T>& wanted) {
  return wanted.done;
}

// The key of a request to the actor of `app`. An empty app means this one.
// Fails for another app: its sessions belong to another actor.
result<session_key> key_within(const std::string& app, session_key key) {
  if (key.app.empty())
    key.app = app;
  auto named = check_id(key.app, "app");
  if (!named)
    return named.error();
  if (*named != app)
    return error(errc::invalid_argument, "the session belongs to another app");
  return key;
}

create_request request_of(session_key key, json state) {
  create_request request(std::move(key));
  request.state = std::move(state);
  return request;
}

// Sends a call to the app. The answer, or the error of `wanted`, goes to the
// sender of the current CAF message.
template <class T, class Letter>
void start(app_actor& self,
           setup& shared,
           result<std::unique_ptr<Letter>> wanted) {
  auto done = promise_of<T>(self);
  if (!wanted) {
    done(wanted.error());
    return;
  }
  done_of(**wanted) = std::move(done);
  if (admit_call(**wanted, shared))
    self.tell(std::move(*wanted));
}

} // namespace

// Each lane of a run has it, so all share one.
caf::behavior closed_interface() {
  static const caf::behavior closed{[](append_atom) -> caf::result<void> {
    return to_caf({errc::invalid_argument, "this actor takes no messages"});
  }};
  return closed;
}

caf::behavior session_interface(session_actor& self,
                                std::shared_ptr<setup> shared) {
  return {
    [&self, shared](append_atom, const event_ptr& said) {
      append_event(*shared, self.key(), said, {}, promise_of<event_ptr>(self));
      return caf::delegated<event_ptr>();
    },
    [&self, shared](get_atom) {
      auto wanted = std::make_unique<get>();
      wanted->key = self.key();
      wanted->done = promise_of<session>(self);
      if (admit_call(*wanted, *shared))
        self.ask_app(std::move(wanted));
      return caf::delegated<session_ptr>();
    },
  };
}

caf::behavior app_interface(app_actor& self,
                            std::shared_ptr<setup> shared,
                            const std::string& app) {
  return {
    [&self, shared, app](
      create_atom, const session_key& key, const json& state) {
      auto within = key_within(app, key);
      auto wanted = within ? make_create(request_of(*within, state), *shared)
                           : result<std::unique_ptr<create>>(within.error());
      start<session>(self, *shared, std::move(wanted));
      return caf::delegated<session_ptr>();
    },
    [&self, shared, app](get_atom, const session_key& key) {
      const auto within = key_within(app, key);
      start<session>(self,
                     *shared,
                     within ? make_get(*within, {})
                            : result<std::unique_ptr<get>>(within.error()));
      return caf::delegated<session_ptr>();
    },
    [&self, shared, app](
      append_atom, const session_key& key, const event_ptr& said) {
      auto done = promise_of<event_ptr>(self);
      if (const auto within = key_within(app, key))
        append_event(*shared, *within, said, {}, std::move(done));
      else
        done(within.error());
      return caf::delegated<event_ptr>();
    },
    [&self, shared, app](remove_atom, const session_key& key) {
      const auto within = key_within(app, key);
      start<bool>(self,
                  *shared,
                  within ? make_remove(*within, {})
                         : result<std::unique_ptr<remove>>(within.error()));
      return caf::delegated<bool>();
    },
  };
}

} // namespace troupe::actors

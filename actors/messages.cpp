#include "troupe/actors/messages.hpp"

#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/mechanism.hpp"

namespace troupe::actors {

namespace {

// Callers' completions must not throw; the contract says so. One that does
// would take an unrelated thread with it.
template <class T>
void finish(call& answered, completion<T>& done, result<T> outcome) noexcept {
  if (auto receiver = std::exchange(done, nullptr))
    receiver(std::move(outcome));
  if (auto* gate = std::exchange(answered.gate, nullptr))
    gate->leave(0);
}

} // namespace

void session_view::write(step_view newest, std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  if (number < number_ && !is_broken(mechanism::newest_view))
    return;
  newest_ = std::move(newest);
  number_ = number;
}

template <class T>
call_for<T>::~call_for() {
  if (done)
    finish(*this, done, result<T>(error(errc::internal, "a call was dropped")));
}

template <class T>
void call_for<T>::complete() {
  finish(*this, done, std::move(outcome));
}

template <class T>
void call_for<T>::fail(const error& why) {
  finish(*this, done, result<T>(why));
}

template struct call_for<event_ptr>;
template struct call_for<session>;
template struct call_for<json>;
template struct call_for<bool>;
template struct call_for<session_page>;

void append::release() {
  if (auto* counted = std::exchange(admitted_to, nullptr))
    counted->leave(bytes);
  if (!admitted_by)
    return;
  as_session(admitted_by).leave(bytes);
  admitted_by.reset();
}

void append::refuse(error why) {
  place.refuse(why);
  for (auto* each = followers.empty() ? nullptr : &followers.front();
       each != nullptr;
       each = each->next)
    static_cast<append&>(*each).place.refuse(why);
  outcome = std::move(why);
}

void append::complete() {
  call_for::complete();
  // Last, so that shutting down waits for the caller's code too.
  release();
}

void append::fail(const error& why) {
  while (!followers.empty())
    followers.pop_front()->fail(why);
  outcome = why;
  if (!reply_to) {
    call_for::fail(why);
    release();
    return;
  }
  // The invocation gets an answer of its own; this letter is its sender's to
  // drop.
  auto answered = std::make_unique<append>();
  answered->outcome = why;
  answered->request = request;
  answered->lane = lane;
  as_inbox(reply_to).tell(std::move(answered));
}

create::~create() {
  if (created_done)
    finish(*this,
           created_done,
           result<session>(error(errc::internal, "a call was dropped")));
}

void create::complete() {
  finish(*this, created_done, std::move(created));
}

void create::fail(const error& why) {
  finish(*this, created_done, result<session>(why));
}

void get::complete() {
  if (outcome)
    renewed.publish();
  call_for::complete();
}

void commit::fail(const error& reason) {
  while (!letters.empty())
    letters.pop_front()->fail(reason);
}

void read_state::complete() {
  if (refusal)
    return fail(*refusal);
  auto shown = json::object();
  keys.for_each([&shown](std::string_view name, const value& held) {
    shown[std::string(name)] = held.data();
  });
  outcome = std::move(shown);
  call_for::complete();
}

list::list(std::shared_ptr<list_gather> into)
  : letter(letter_kind::list),
    gather(std::move(into)) {
  gather->enter();
}

list::~list() {
  gather->leave();
}

void list::fail(const error&) {
  // A session that went meanwhile is no row of the list.
}

void start_run::fail(const error& why) {
  auto refused = std::make_unique<append>();
  refused->outcome = why;
  refused->request = nullptr;
  as_inbox(invocation).tell(std::move(refused));
}

} // namespace troupe::actors

#include "troupe/actors/messages.hpp"

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/engine/scheduler.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/sessions/list_gather.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>

namespace troupe::actors {

namespace {

// Work on its way to a thread of the runtime.
struct postponed final : call {
  postponed(setup& counted_in, std::function<void()> to_do)
    : call(letter_kind::finished),
      shared(counted_in),
      work(std::move(to_do)) {
    is_of_blocked_thread = false;
    shared.calls.enter(0);
  }

  void refuse(error) override {} // Never called.

  void complete() override {
    // Released before the count, so that shutting down also waits for the
    // objects that the work holds.
    std::exchange(work, nullptr)();
    shared.calls.leave(0);
  }

  void fail(const error&) override {} // Never called.

  setup& shared; // The job that completes the call keeps it.
  std::function<void()> work;
};

template <class T>
void finish_now(call& answered, completion<T>& done, result<T>&& outcome) {
  if (auto receiver = std::exchange(done, nullptr)) {
    if (auto* const lent = lent_thread::activation_on();
        lent == nullptr || answered.is_of_blocked_thread) {
      receiver(std::move(outcome));
    } else {
      call_later(static_cast<setup&>(*lent),
                 [receiver = std::move(receiver),
                  outcome = std::move(outcome)]() mutable {
                   receiver(std::move(outcome));
                 });
    }
  }
  if (auto* gate = std::exchange(answered.gate, nullptr))
    gate->leave(0);
}

// Calls a completion. Completions must not throw, by their contract; `noexcept`
// ends the program instead of an unrelated owner.
template <class T>
void finish(call& answered, completion<T>& done, result<T> outcome) noexcept {
  with_memory_or_end([&] { finish_now(answered, done, std::move(outcome)); });
}

// Answers a call that is destroyed without an answer.
template <class T>
void finish_dropped(call& dropped, completion<T>& done) noexcept {
  if (done)
    with_memory_or_end([&] {
      finish(
        dropped, done, result<T>(error(errc::internal, "a call was dropped")));
    });
}

// Runs callers' completions, so that the owner can continue with its next
// batch. Keeps the runtime's data alive: when the last call has left the gate,
// another thread may release everything else.
class completion_job final : public recycled,
                             public caf::resumable,
                             public caf::ref_counted {
public:
  completion_job(std::shared_ptr<execution> on,
                 letter_list answered,
                 std::size_t count)
    : on_(std::move(on)),
      answered_(std::move(answered)),
      count_(count) {}

  resume_result resume(caf::execution_unit*, std::size_t) override {
    if (count_ >= worth_a_wake_up)
      ask_for_help();
    else
      start_long_job();
    with_memory_or_end([this] {
      while (!answered_.empty()) {
        const auto next = answered_.pop_front();
        static_cast<call&>(*next).complete();
      }
    });
    return done;
  }

  subtype_t subtype() const override { return function_object; }

  void intrusive_ptr_add_ref_impl() override { intrusive_ptr_add_ref(this); }

  void intrusive_ptr_release_impl() override { intrusive_ptr_release(this); }

private:
  // To run the callers' code for so many answers takes several times as long as
  // to wake a thread.
  static constexpr std::size_t worth_a_wake_up = 16;

  const std::shared_ptr<execution> on_;
  letter_list answered_;
  const std::size_t count_;
};

// Brings news to some readers. Counted as one call: a counter that two threads
// change for each reader costs as much as the rest of the delivery.
class delivery_job final : public recycled,
                           public caf::resumable,
                           public caf::ref_counted {
public:
  // Calls that arrive meanwhile wait for these deliveries at most.
  static constexpr std::size_t letters_max = 16;

  delivery_job(std::shared_ptr<execution> on, letter_list answered)
    : on_(std::move(on)),
      answered_(std::move(answered)) {
    calls().enter(0);
  }

  resume_result resume(caf::execution_unit*, std::size_t) override {
    start_long_job();
    with_memory_or_end([this] {
      while (!answered_.empty()) {
        const auto next = answered_.pop_front();
        static_cast<call&>(*next).complete();
      }
    });
    calls().leave(0);
    return done;
  }

  subtype_t subtype() const override { return function_object; }

  void intrusive_ptr_add_ref_impl() override { intrusive_ptr_add_ref(this); }

  void intrusive_ptr_release_impl() override { intrusive_ptr_release(this); }

private:
  load_gate& calls() const { return static_cast<setup&>(*on_).calls; }

  const std::shared_ptr<execution> on_;
  letter_list answered_;
};

// The first letter at least is counted as a call.
void deliver(execution& on, letter_list news) {
  if (news.empty())
    return;
  auto& calls = static_cast<setup&>(on).calls;
  // The counted letters may be complete before all jobs are made.
  calls.enter(0);
  while (!news.empty()) {
    letter_list some;
    for (std::size_t count = 0;
         count < delivery_job::letters_max && !news.empty();
         ++count)
      some.push_back(news.pop_front());
    schedule_behind(on,
                    new delivery_job(on.shared_from_this(), std::move(some)));
  }
  calls.leave(0);
}

} // namespace

void session_view::write(step_view newest, std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  if (number < number_)
    return;
  newest_ = std::move(newest);
  number_ = number;
}

template <class T>
call_for<T>::~call_for() {
  finish_dropped(*this, done);
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
template struct call_for<scope_keys>;
template struct call_for<shared_write>;
template struct call_for<bool>;
template struct call_for<std::string>;
template struct call_for<session_page>;
template struct call_for<std::vector<event_ptr>>;
template struct call_for<std::vector<std::string>>;
template struct call_for<std::vector<open_run>>;
template struct call_for<std::optional<open_run>>;

void call_later(setup& shared, std::function<void()> work) {
  letter_list jobs;
  jobs.push_back(std::make_unique<postponed>(shared, std::move(work)));
  complete_later(shared, std::move(jobs));
}

void complete_later(execution& on, letter_list answered) {
  letter_list later;
  letter_list news;
  std::size_t count = 0;
  while (!answered.empty()) {
    auto next = answered.pop_front();
    if (auto& known = static_cast<call&>(*next); known.is_of_blocked_thread) {
      known.complete();
    } else if (known.is_news) {
      news.push_back(std::move(next));
    } else {
      later.push_back(std::move(next));
      ++count;
    }
  }
  // The scheduler takes over the reference that a new object starts with.
  if (!later.empty())
    schedule(
      on, new completion_job(on.shared_from_this(), std::move(later), count));
  deliver(on, std::move(news));
}

void append::release() {
  if (auto* counted = std::exchange(admitted_to, nullptr))
    counted->leave(bytes);
  if (!admitted_by)
    return;
  admitted_by->leave(bytes);
  admitted_by.reset();
}

void append::refuse(error why) {
  if (claims)
    claims->is_over = false;
  place.refuse(why);
  for (auto* each = followers.empty() ? nullptr : &followers.front();
       each != nullptr;
       each = each->next)
    static_cast<append&>(*each).place.refuse(why);
  outcome = std::move(why);
}

void append::complete() {
  // A blocked thread may append again as soon as it is woken, and needs its
  // place then.
  if (is_of_blocked_thread)
    release();
  call_for::complete();
  // Released last, so that shutting down also waits for the caller's code.
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
  // The invocation gets a letter of its own, since the sender of this one
  // destroys it.
  auto answered = std::make_unique<append>();
  answered->outcome = why;
  answered->starts_run = starts_run;
  answered->request = request;
  answered->lane = lane;
  reply_to->tell(std::move(answered));
}

create::~create() {
  finish_dropped(*this, created_done);
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

template <letter_kind Kind, class Answer>
follow_call<Kind, Answer>::~follow_call() {
  if (receiver)
    fail({errc::internal, "a call was dropped"});
}

template <letter_kind Kind, class Answer>
void follow_call<Kind, Answer>::complete() {
  with_memory_or_end([this] {
    std::exchange(receiver, nullptr)->receive(std::move(outcome));
    stop_counting();
  });
}

template <letter_kind Kind, class Answer>
void follow_call<Kind, Answer>::fail(const error& why) {
  outcome = why;
  complete();
}

template <letter_kind Kind, class Answer>
void follow_call<Kind, Answer>::count_in(load_gate& calls) {
  calls.enter(0);
  this->gate = &calls;
}

template <letter_kind Kind, class Answer>
void follow_call<Kind, Answer>::stop_counting() {
  if (auto* const counted = std::exchange(this->gate, nullptr))
    counted->leave(0);
}

template struct follow_call<letter_kind::follow, followed>;
template struct follow_call<letter_kind::follow_state, followed_state>;

void commit::fail(const error& reason) {
  while (!letters.empty())
    letters.pop_front()->fail(reason);
}

void write_state::release() {
  if (auto* counted = std::exchange(admitted_to, nullptr))
    counted->leave(bytes);
}

// The order is that of `append::complete`.
void write_state::complete() {
  if (is_of_blocked_thread)
    release();
  call_for::complete();
  release();
}

void write_state::fail(const error& why) {
  call_for::fail(why);
  release();
}

forward::~forward() {
  directory.arrive(key);
}

list::list(std::shared_ptr<list_gather> into) : gather(std::move(into)) {
  gather->add_part();
}

list::~list() {
  gather->end_part();
}

void list::fail(const error&) {
  // A session that has ended meanwhile is left out of the list.
}

look_up* look_up_of(letter& sent) noexcept {
  look_up* found = nullptr;
  const auto find = [&]<class Letter>(std::type_identity<Letter>) {
    found = as<Letter>(sent);
    return found != nullptr;
  };
  static_cast<void>((find(std::type_identity<get>())
                     || find(std::type_identity<forward>())
                     || find(std::type_identity<start_run>())
                     || find(std::type_identity<end_run>())
                     || find(std::type_identity<create>())));
  return found;
}

void start_run::fail(const error& why) {
  invocation->tell(std::make_unique<refused_run>(why));
}

} // namespace troupe::actors

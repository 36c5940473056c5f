// Invariant of both answers: events of a run are taken as they come, so none
// wait in the run, and the run never waits for its client.

#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/run_request.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/server/http/event_stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// The answer to a run that failed before it had an event.
response failed_start(const run_request& wanted, const error& why) {
  if (why.code() != errc::not_found)
    return failure(why);
  return detail(404, fmt::format("Session not found: {}", wanted.key.id))
    .with("troupe-error", "not_found");
}

// The reader of one run, until its end. Its client may leave before.
class run_reader : public std::enable_shared_from_this<run_reader> {
public:
  run_reader(served_ptr on, run_request wanted, reply to)
    : on_(std::move(on)),
      wanted_(std::move(wanted)),
      to_(std::move(to)) {}

  run_reader(const run_reader&) = delete;
  run_reader& operator=(const run_reader&) = delete;
  virtual ~run_reader() = default;

  void start() {
    const auto& root = on_->apps.at(wanted_.key.app);
    user_message said(wanted_.message, wanted_.state_delta);
    said.trace = wanted_.trace;
    run_ = on_->runs.add(
      wanted_.key,
      on_->on.run(root, wanted_.key, std::move(said), on_->options.runs));
    to_.watch([self = shared_from_this()](departure how) { self->leave(how); });
    begin();
    ask();
  }

protected:
  virtual void begin() {}

  // Takes an event, and calls `ask` for the next one.
  virtual void take(const event& said) = 0;
  // Takes the end of the run.
  virtual void finish(const result<void>& outcome) = 0;

  void ask() {
    run_->handle.next().then(
      [self = shared_from_this()](const result<event_ptr>& next) {
        self->receive(next);
      });
  }

  const std::string& id() const { return run_->handle.invocation_id(); }

  bool has_left() const noexcept { return has_left_; }

  const served_ptr on_;
  const run_request wanted_;
  const reply to_;

private:
  void receive(const result<event_ptr>& next) {
    if (next && *next != nullptr)
      return pass(**next);
    on_->runs.remove(id(), !next);
    finish(next ? result<void>() : result<void>(next.error()));
  }

  // Without a client, events are dropped until the run ends.
  void pass(const event& said) {
    if (has_left_ || (said.partial && !wanted_.streams))
      ask();
    else
      take(said);
  }

  // A client that closes is first seen to end its half.
  void leave(departure how) {
    if (how == departure::whole)
      has_left_ = true;
    if (wanted_.ends_with_client)
      run_->handle.cancel();
  }

  active_run_ptr run_;
  std::atomic<bool> has_left_{false};
};

// -- /run ----

class whole_answer final : public run_reader {
public:
  using run_reader::run_reader;

private:
  void take(const event& said) override {
    text_ += text_.empty() ? '[' : ',';
    text_ += to_text(event_form(said));
    ask();
  }

  void finish(const result<void>& outcome) override {
    if (!outcome)
      return to_.send(failed_start(wanted_, outcome.error())
                        .with("troupe-invocation-id", id()));
    to_.send(json_text_response((text_.empty() ? "[" : text_) + "]")
               .with("troupe-invocation-id", id()));
  }

  std::string text_;
};

// -- /run_sse ----

// The lines that wait for a client are bounded. Above the bound, streamed
// pieces are left out, and stored events are read from the session again once
// the client has accepted the lines before them.
class streamed_answer final : public run_reader {
public:
  using run_reader::run_reader;

private:
  using lines = std::vector<std::string>;

  // A failure at the start is answered with a status. If the first event is
  // late, the answer begins without it, so that its client sees the run start.
  void begin() override {
    constexpr std::chrono::milliseconds patience{100};
    on_->threads->call_after(patience, [self = std::weak_ptr(shared())] {
      if (const auto held = self.lock())
        held->open();
    });
  }

  void take(const event& said) override {
    name_piece(said);
    keep(said);
    ask();
    send_next();
  }

  void finish(const result<void>& outcome) override {
    if (!outcome && begins_now())
      return to_.send(failed_start(wanted_, outcome.error())
                        .with("troupe-invocation-id", id()));
    end_with(outcome);
    send_next();
  }

  std::shared_ptr<streamed_answer> shared() {
    return std::static_pointer_cast<streamed_answer>(shared_from_this());
  }

  // -- lines ----

  // The pieces of one answer of a model have one id, as in ADK.
  void name_piece(const event& said) {
    auto& id = piece_ids_[said.author + '\n' + said.branch];
    if (!said.partial)
      id.clear();
    else if (id.empty())
      id = on_->on.environment()->new_id();
  }

  lines lines_of(const event& said) {
    auto form = event_form(said);
    if (said.partial)
      form["id"] = piece_ids_[said.author + '\n' + said.branch];
    if (!is_divided(form))
      return {to_text(form)};
    auto files = form;
    files.erase("content");
    form["actions"]["artifactDelta"] = json::object();
    return {to_text(form), to_text(files)};
  }

  // As in ADK: the page shows files of an event of their own.
  bool is_divided(const json& form) const {
    return !wanted_.names_call && form.contains("content")
           && !form["actions"]["artifactDelta"].empty();
  }

  // -- the queue ----

  void keep(const event& said) {
    auto made = lines_of(said);
    std::size_t size = 0;
    for (const auto& each : made)
      size += each.size();
    const std::lock_guard guard(mutex_);
    if (outcome_)
      return;
    const bool is_full
      = !waiting_.empty()
        && waiting_bytes_ + size > on_->options.limits.stream_bytes_max;
    if (first_missed_.empty() && !is_full) {
      waiting_bytes_ += size;
      waiting_.emplace_back(std::move(made), size);
    } else if (!said.partial) {
      if (first_missed_.empty())
        first_missed_ = said.id;
      last_missed_ = said.id;
    }
  }

  void end_with(const result<void>& outcome) {
    const std::lock_guard guard(mutex_);
    if (!outcome_)
      outcome_ = outcome;
  }

  // Sends the next lines, unless earlier ones are under way.
  void send_next() {
    std::unique_lock guard(mutex_);
    if (is_sending_)
      return;
    if (!waiting_.empty()) {
      is_sending_ = true;
      auto [made, size] = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= size;
      guard.unlock();
      return write(made);
    }
    if (!first_missed_.empty()) {
      is_sending_ = true;
      guard.unlock();
      return read_missed();
    }
    if (outcome_) {
      is_sending_ = true; // For good.
      guard.unlock();
      end();
    }
  }

  void write(const lines& made) {
    open();
    for (std::size_t index = 0; index + 1 < made.size(); ++index)
      stream_.write(made[index], {});
    stream_.write(made.back(), [self = shared()] {
      {
        const std::lock_guard guard(self->mutex_);
        self->is_sending_ = false;
      }
      self->send_next();
    });
  }

  void end() {
    open();
    if (!*outcome_)
      stream_.write(
        to_text(error_line(outcome_->error(), on_->on.environment()->now())),
        {});
    stream_.end();
  }

  // -- missed events ----

  void read_missed() {
    if (has_left())
      return give_up({errc::cancelled, "the client has left"});
    if (stored_)
      return read_stored();
    on_->on.sessions()
      .get(wanted_.key)
      .then([self = shared()](const result<session>& found) {
        if (found)
          self->follow(found->events());
        else
          self->give_up(found.error());
      });
  }

  void follow(const event_slice& events) {
    auto index = events.size();
    while (index > 0 && events[index - 1]->id != first_missed_)
      --index;
    if (index == 0)
      return give_up({errc::not_found,
                      fmt::format("the events of run {} were removed", id())});
    stored_.emplace(on_->on.sessions().follow(
      wanted_.key, {.from = events.number(index - 1) - 1}));
    read_stored();
  }

  void read_stored() {
    stored_->next().then([self = shared()](const result<event_ptr>& next) {
      if (!next)
        self->give_up(next.error());
      else if (*next == nullptr)
        self->give_up({errc::cancelled, "the runtime has shut down"});
      else
        self->take_stored(**next);
    });
  }

  // Other runs may have events in between.
  void take_stored(const event& said) {
    if (said.invocation_id != id())
      return read_stored();
    const bool is_last = catches_up_with(said);
    auto made = lines_of(said);
    if (is_last)
      stored_.reset();
    write(made);
  }

  // Returns true if no event is missed any more. Later ones are kept again.
  bool catches_up_with(const event& said) {
    const std::lock_guard guard(mutex_);
    if (said.id != last_missed_)
      return false;
    first_missed_.clear();
    last_missed_.clear();
    return true;
  }

  void give_up(const error& why) {
    {
      const std::lock_guard guard(mutex_);
      outcome_ = why;
      first_missed_.clear();
      waiting_.clear();
      is_sending_ = false;
    }
    send_next();
  }

  // -- the start ----

  // Returns true, once, if the answer has not begun.
  bool begins_now() {
    const std::lock_guard guard(mutex_);
    return !std::exchange(is_open_, true);
  }

  void open() {
    const std::lock_guard guard(mutex_);
    if (!std::exchange(is_open_, true))
      stream_ = event_stream(to_, {{"troupe-invocation-id", id()}});
  }

  std::mutex mutex_;
  bool is_open_ = false;
  event_stream stream_; // Written once, before its first use.

  // By author and branch. Only the thread that delivers an event uses it.
  std::map<std::string, std::string> piece_ids_;

  // Guarded by `mutex_`.
  std::deque<std::pair<lines, std::size_t>> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool is_sending_ = false;
  std::string first_missed_; // Ids of stored events that were not kept.
  std::string last_missed_;
  std::optional<result<void>> outcome_;

  std::optional<follower> stored_; // Used only while sending.
};

template <class Reader>
void start_run(const served_ptr& on, exchange asked) {
  auto read = read_run_request(*on, asked.who, asked.asked);
  if (auto* refused = std::get_if<response>(&read))
    return asked.to.send(std::move(*refused));
  std::make_shared<Reader>(
    on, std::move(std::get<run_request>(read)), std::move(asked.to))
    ->start();
}

// -- runs under way ----

void list_runs(const served_ptr& on, exchange asked) {
  asked.to.send(json_response({{"runs", on->runs.of(key_in(asked.path))}}));
}

void cancel_run(const served_ptr& on, exchange asked) {
  const auto found = on->runs.find(key_in(asked.path), asked.path["run"]);
  if (!found)
    return asked.to.send(
      detail(404, fmt::format("Run not found: {}", asked.path["run"]))
        .with("troupe-error", "not_found"));
  found->handle.cancel();
  asked.to.send(json_text_response("null", 202));
}

json form_of(const open_call& call) {
  json form = {{"id", call.id},
               {"tool", call.tool},
               {"args", call.args.data()},
               {"agent", call.agent}};
  if (call.question)
    form["question"] = {{"hint", call.question->hint},
                        {"payload", call.question->payload.data()}};
  return form;
}

void list_open_calls(const served_ptr& on, exchange asked) {
  on->on.sessions()
    .open_calls(key_in(asked.path))
    .then([to = asked.to](const result<std::vector<open_call>>& found) {
      if (!found)
        return to.send(failure(found.error()));
      auto calls = json::array();
      for (const auto& each : *found)
        calls.push_back(form_of(each));
      to.send(json_response({{"openCalls", std::move(calls)}}));
    });
}

} // namespace

void add_runs(router& routes, const served_ptr& on) {
  const std::string session = "/apps/{app}/users/{user}/sessions/{session}";
  routes.add("POST", "/run", handled_by(on, start_run<whole_answer>));
  routes.add("POST", "/run_sse", handled_by(on, start_run<streamed_answer>));
  routes.add("GET", session + "/runs", handled_by(on, list_runs));
  routes.add(
    "POST", session + "/runs/{run}/cancel", handled_by(on, cancel_run));
  routes.add("GET", session + "/open-calls", handled_by(on, list_open_calls));
}

} // namespace troupe::serving

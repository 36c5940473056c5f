// Invariant of both answers: the next event of a run is asked for when the
// former one was handed to the client, so a slow client holds a bounded number
// of bytes. The run itself never waits for its client.

#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/run_request.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/server/http/event_stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

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
    run_ = on_->runs.add(
      wanted_.key,
      on_->on.run(root,
                  wanted_.key,
                  user_message(wanted_.message, wanted_.state_delta),
                  on_->options.runs));
    to_.watch([self = shared_from_this()](departure how) { self->leave(how); });
    begin();
    ask();
  }

protected:
  virtual void begin() {}

  // Takes an event; `ask` is called for the next one.
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

  const served_ptr on_;
  const run_request wanted_;
  const reply to_;

private:
  void receive(const result<event_ptr>& next) {
    if (next && *next != nullptr)
      return pass(**next);
    on_->runs.remove(id());
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

class streamed_answer final : public run_reader {
public:
  using run_reader::run_reader;

private:
  // A failure at the start is answered with a status. If the first event is
  // late, the answer begins without it, so that its client sees the run start.
  void begin() override {
    constexpr std::chrono::milliseconds patience{100};
    on_->threads->call_after(
      patience, [self = std::weak_ptr<run_reader>(shared_from_this())] {
        if (const auto held = self.lock())
          static_cast<streamed_answer&>(*held).open();
      });
  }

  void take(const event& said) override {
    auto form = event_form(said);
    auto ready = [self = shared_from_this(), this] { ask(); };
    open();
    if (!is_divided(form))
      return stream_.write(to_text(form), std::move(ready));
    auto files = form;
    files.erase("content");
    form["actions"]["artifactDelta"] = json::object();
    stream_.write(to_text(form), {});
    stream_.write(to_text(files), std::move(ready));
  }

  void finish(const result<void>& outcome) override {
    if (!outcome && begins_now())
      return to_.send(failed_start(wanted_, outcome.error())
                        .with("troupe-invocation-id", id()));
    open();
    if (!outcome)
      stream_.write(
        to_text(error_line(outcome.error(), on_->on.environment()->now())), {});
    stream_.end();
  }

  // As in ADK: the page shows files of an event of their own.
  bool is_divided(const json& form) const {
    return !wanted_.names_call && form.contains("content")
           && !form["actions"]["artifactDelta"].empty();
  }

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
};

template <class Reader>
void start_run(const served_ptr& on, exchange asked) {
  auto read = read_run_request(*on, asked.who, asked.asked.body);
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
      detail(404, fmt::format("Run not found: {}", asked.path["run"])));
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

// Invariants. `mutex` guards the queues; no request is sent while it is held.
// Each kind of record has at most one request under way: its body stays in
// `body` until it is accepted or given up, so records of one kind arrive in
// order.

#include "troupe/telemetry/otlp/sender.hpp"

#include "troupe/core/support/passwords.hpp"
#include "troupe/telemetry/otlp/json_form.hpp"
#include "troupe/telemetry/otlp/post.hpp"
#include "troupe/telemetry/otlp/protobuf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace troupe::telemetry {

namespace {

// The address of a receiver for messages. The query of a URL may hold a key.
std::string shown_url(const receiver& to) {
  return without_passwords(to.url.substr(0, to.url.find('?')));
}

using moment = std::chrono::nanoseconds; // Of `environment::elapsed`.

constexpr moment never = moment::max();
constexpr moment warning_period = std::chrono::minutes(1);

nanoseconds_since_1970 wall_clock(environment& on) {
  return static_cast<nanoseconds_since_1970>(
    std::chrono::nanoseconds(on.now().time_since_epoch()).count());
}

origin origin_of(const options& chosen) {
  origin made;
  for (const auto& [key, value] : chosen.resource)
    made.resource.emplace_back(key, value);
  // Sums of several programs must not be taken for those of one.
  constexpr const char* instance = "service.instance.id";
  if (std::ranges::none_of(chosen.resource, [](const auto& each) {
        return each.first == instance;
      }))
    made.resource.emplace_back(instance, chosen.environment->new_id());
  made.scope = "troupe";
  made.version = TROUPE_VERSION;
  return made;
}

template <class Request>
std::string body_of(wire_form form, const origin& from, const Request& sent) {
  return form == wire_form::json ? to_text(json_of(from, sent))
                                 : protobuf_of(from, sent);
}

std::uint64_t rejected_in(wire_form form, const std::string& answer) {
  return form == wire_form::json ? rejected_in_json(answer)
                                 : rejected_in_protobuf(answer);
}

/// The request of one kind of record that is under way.
struct under_way {
  std::string body; // Empty: there is none.
  std::uint64_t records = 0;
  std::size_t tries = 0;
  moment due{};
};

/// The records of one kind that wait.
template <class Record>
struct record_queue {
  std::deque<Record> waiting;
  moment oldest{}; // Time of the first of them.
  under_way request;
};

} // namespace

struct sender::shared : std::enable_shared_from_this<shared> {
  shared(options with, std::vector<instrument> instruments)
    : chosen(std::move(with)),
      environment(*chosen.environment),
      from(origin_of(chosen)),
      table(std::move(instruments)),
      began(wall_clock(environment)),
      histograms_due(environment.elapsed() + chosen.metrics_period) {}

  // -- the callers' side ----

  template <class Record>
  void give(record_queue<Record>& queue, Record made) {
    const auto now = environment.elapsed();
    const std::lock_guard guard(mutex);
    if (queue.waiting.size() >= chosen.queue_max) {
      drop(1, "the queue is full");
      return;
    }
    if (queue.waiting.empty())
      queue.oldest = now;
    queue.waiting.push_back(std::move(made));
    const auto count = queue.waiting.size();
    if (count == 1 || count == chosen.batch_max)
      wake.notify_one();
  }

  // Requires `mutex`.
  void drop(std::uint64_t records, const std::string& reason) {
    if (records == 0)
      return;
    counts.dropped += records;
    untold += records;
    last_reason = reason;
    if (untold == records)
      wake.notify_one();
  }

  // -- the thread ----

  void work() {
    post line(gives_up);
    std::unique_lock lock(mutex);
    while (!is_stopping) {
      const auto now = environment.elapsed();
      tell_drops(lock, now);
      const bool has_sent = send_one(lock, line, spans, chosen.traces, now)
                            || send_one(lock, line, logs, chosen.logs, now)
                            || send_histograms(lock, line, now);
      if (has_sent)
        continue;
      if (flush_wanted > flushed && is_empty()) {
        flushed = flush_wanted;
        flush_ended.notify_all();
      }
      sleep(lock);
    }
    flush_ended.notify_all();
  }

  // Requires `mutex`.
  bool flushes() const noexcept { return flush_wanted > flushed; }

  // Requires `mutex`.
  bool is_empty() const noexcept {
    return spans.waiting.empty() && spans.request.body.empty()
           && logs.waiting.empty() && logs.request.body.empty()
           && summary.body.empty()
           && (chosen.metrics.url.empty()
               || histograms_flushed >= flush_wanted);
  }

  // The time at which the queue has a request to send.
  template <class Record>
  moment due_of(const record_queue<Record>& queue) const {
    if (!queue.request.body.empty())
      return flushes() ? moment::min() : queue.request.due;
    if (queue.waiting.empty())
      return never;
    return flushes() || queue.waiting.size() >= chosen.batch_max
             ? moment::min()
             : queue.oldest + chosen.batch_delay;
  }

  moment due_of_histograms() const {
    if (chosen.metrics.url.empty())
      return never;
    if (!summary.body.empty())
      return flushes() ? moment::min() : summary.due;
    return histograms_flushed < flush_wanted ? moment::min() : histograms_due;
  }

  moment due_of_warning() const { return untold == 0 ? never : warning_due; }

  // Waits until something is due or has changed. Requires the lock.
  void sleep(std::unique_lock<std::mutex>& lock) {
    const auto due = std::min(
      {due_of(spans), due_of(logs), due_of_histograms(), due_of_warning()});
    const auto now = environment.elapsed();
    if (is_stopping || due <= now)
      return;
    if (due != never && due < timer_due) {
      timer_due = due;
      // A timer of the environment, so that a simulated clock works, too.
      environment.call_after(due - now, [weak = weak_from_this(), due] {
        if (const auto held = weak.lock()) {
          const std::lock_guard guard(held->mutex);
          if (held->timer_due == due)
            held->timer_due = never;
          held->wake.notify_one();
        }
      });
    }
    wake.wait(lock);
  }

  template <class Record>
  bool send_one(std::unique_lock<std::mutex>& lock,
                post& line,
                record_queue<Record>& queue,
                const receiver& to,
                moment now) {
    if (due_of(queue) > now)
      return false;
    if (queue.request.body.empty()) {
      const auto count = std::min(queue.waiting.size(), chosen.batch_max);
      std::vector<Record> batch(
        std::make_move_iterator(queue.waiting.begin()),
        std::make_move_iterator(queue.waiting.begin()
                                + static_cast<std::ptrdiff_t>(count)));
      queue.waiting.erase(queue.waiting.begin(),
                          queue.waiting.begin()
                            + static_cast<std::ptrdiff_t>(count));
      queue.oldest = now;
      lock.unlock();
      auto body = encode(to.form, std::move(batch));
      lock.lock();
      queue.request = {std::move(body), count, 0, now};
    }
    try_request(lock, line, queue.request, to);
    return true;
  }

  std::string encode(wire_form form, std::vector<span> batch) const {
    return body_of(form, from, span_request{std::move(batch)});
  }

  std::string encode(wire_form form, std::vector<log_record> batch) const {
    return body_of(form, from, log_request{std::move(batch)});
  }

  bool
  send_histograms(std::unique_lock<std::mutex>& lock, post& line, moment now) {
    if (due_of_histograms() > now)
      return false;
    if (summary.body.empty()) {
      histograms_due = now + chosen.metrics_period;
      histograms_flushed = flush_wanted;
      lock.unlock();
      auto all = table.all();
      std::string body;
      if (!all.empty())
        body = body_of(
          chosen.metrics.form,
          from,
          histogram_request{std::move(all), began, wall_clock(environment)});
      lock.lock();
      if (body.empty())
        return true;
      // Sums are sent again in the next period, so none of them is lost.
      summary = {std::move(body), 0, 0, now};
    }
    try_request(lock, line, summary, chosen.metrics);
    return true;
  }

  // Sends the request once. Afterwards it is gone, or due again later.
  void try_request(std::unique_lock<std::mutex>& lock,
                   post& line,
                   under_way& request,
                   const receiver& to) {
    lock.unlock();
    const auto answer = line.send(to, request.body);
    lock.lock();
    ++request.tries;
    const auto reason = answer.status == 0
                          ? fmt::format("{}: {}", shown_url(to), answer.text)
                          : fmt::format("{} answered with status {}",
                                        shown_url(to),
                                        answer.status);
    switch (outcome_of(answer)) {
    case outcome::accepted: {
      const auto rejected
        = std::min(rejected_in(to.form, answer.text), request.records);
      counts.sent += request.records - rejected;
      drop(rejected, fmt::format("{} has rejected them", shown_url(to)));
      break;
    }
    case outcome::again:
      // A flush does not wait for a receiver that may never come back.
      if (request.tries < tries_max && !flushes()) {
        request.due
          = environment.elapsed() + wait_before_retry(answer, request.tries);
        return;
      }
      drop(request.records, reason);
      break;
    case outcome::refused:
      drop(request.records, reason);
      break;
    }
    request = {};
  }

  // Requires the lock, and releases it meanwhile.
  void tell_drops(std::unique_lock<std::mutex>& lock, moment now) {
    if (due_of_warning() > now)
      return;
    const auto warning
      = fmt::format("telemetry has lost {} spans and log records: {}",
                    std::exchange(untold, 0),
                    last_reason);
    warning_due = now + warning_period;
    lock.unlock();
    if (chosen.on_warning)
      chosen.on_warning(warning);
    else
      std::fputs(fmt::format("troupe: {}\n", warning).c_str(), stderr);
    lock.lock();
  }

  const options chosen;
  troupe::environment& environment;
  const origin from;
  histogram_table table;
  const nanoseconds_since_1970 began;

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable flush_ended;
  record_queue<span> spans;
  record_queue<log_record> logs;
  under_way summary; // Request of the histograms.
  moment histograms_due;
  std::uint64_t histograms_flushed = 0; // Number of the flush that sent them.
  std::uint64_t flush_wanted = 0;       // Number of the newest flush.
  std::uint64_t flushed = 0;            // Number of the last one that ended.
  sender_counts counts;
  std::uint64_t untold = 0; // Dropped records of the next warning.
  std::string last_reason;
  moment warning_due = moment::min();
  moment timer_due = never;
  bool is_stopping = false;
  std::atomic<bool> gives_up{false};
  std::thread thread;
};

sender::sender(options chosen, std::vector<instrument> instruments)
  : shared_(
    std::make_shared<shared>(std::move(chosen), std::move(instruments))) {
  shared_->thread = std::thread([on = shared_.get()] { on->work(); });
}

sender::~sender() {
  shared_->gives_up = true;
  {
    const std::lock_guard guard(shared_->mutex);
    shared_->is_stopping = true;
    shared_->wake.notify_all();
  }
  shared_->thread.join();
}

void sender::give(span made) {
  if (!shared_->chosen.traces.url.empty())
    shared_->give(shared_->spans, std::move(made));
}

void sender::give(log_record made) {
  if (!shared_->chosen.logs.url.empty())
    shared_->give(shared_->logs, std::move(made));
}

histogram_table& sender::histograms() noexcept {
  return shared_->table;
}

bool sender::flush(std::chrono::milliseconds limit) {
  auto& on = *shared_;
  std::unique_lock lock(on.mutex);
  const auto mine = ++on.flush_wanted;
  on.wake.notify_all();
  return on.flush_ended.wait_for(
    lock, limit, [&on, mine] { return on.flushed >= mine; });
}

sender_counts sender::counts() const {
  const std::lock_guard guard(shared_->mutex);
  return shared_->counts;
}

} // namespace troupe::telemetry

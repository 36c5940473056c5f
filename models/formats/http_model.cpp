#include "troupe/models/formats/http_model.hpp"

#include "troupe/core/support/scattered.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/key_rule.hpp"
#include "troupe/models/http/redirect.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using milliseconds = std::chrono::milliseconds;

constexpr std::size_t failed_body_bytes_max = std::size_t{64} << 10U;
constexpr double bytes_per_token = 4;
// Times that the server may pause one turn.
constexpr std::size_t pauses_max = 16;

bool is_good(int status) {
  return status >= 200 && status < 300;
}

bool is_same_name(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, [](char one, char other) {
    const auto lower = [](char next) {
      return next >= 'A' && next <= 'Z' ? static_cast<char>(next - 'A' + 'a')
                                        : next;
    };
    return lower(one) == lower(other);
  });
}

const std::string* find_header(const http_headers& headers,
                               std::string_view name) {
  const auto found = std::ranges::find_if(headers, [name](const auto& each) {
    return is_same_name(each.first, name);
  });
  return found == headers.end() ? nullptr : &found->second;
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(number >= 0)
      || number > 1e9)
    return std::nullopt;
  return number;
}

// Returns the wait that the server asks for, by RFC 9110 or in OpenAI's own
// way.
std::optional<milliseconds> retry_after(const http_headers& headers,
                                        timestamp now) {
  if (const auto* exact = find_header(headers, "retry-after-ms"))
    if (const auto number = number_of(*exact))
      return milliseconds(std::llround(*number));
  const auto* said = find_header(headers, "retry-after");
  if (said == nullptr)
    return std::nullopt;
  if (const auto number = number_of(*said))
    return milliseconds(std::llround(*number * 1'000));
  const auto date = curl_getdate(said->c_str(), nullptr);
  if (date < 0)
    return std::nullopt;
  const timestamp due{std::chrono::seconds(date)};
  return std::max(std::chrono::duration_cast<milliseconds>(due - now),
                  milliseconds(0));
}

// The last part of a model's full name at Vertex AI.
std::string_view short_name(std::string_view model) {
  return model.starts_with("projects/") ? model.substr(model.rfind('/') + 1)
                                        : model;
}

// The format of a request with these tools of the vendor.
wire_format_ptr needed_format(const http_model_options& options,
                              const std::vector<vendor_tool>& wanted,
                              const wire_options& with) {
  auto other = options.format->format_for(wanted, with);
  return other ? other : options.format;
}

} // namespace

// One model call with all of its attempts. Its steps run one after another,
// each on the thread of the event that it waited for. Only a stop comes from
// another thread at the same time.
//
// Invariant: `reply_` gets exactly one final response and nothing after it.
// `is_over_`, guarded by `mutex_`, is set once, by the stop or by the end; the
// first of them replies.
class http_model::call : public std::enable_shared_from_this<call> {
public:
  call(std::shared_ptr<const http_model_options> options,
       std::shared_ptr<std::atomic<std::uint64_t>> waits,
       model_request request,
       model_reply reply)
    : options_(std::move(options)),
      waits_(std::move(waits)),
      request_(std::move(request)),
      reply_(std::move(reply)) {}

  void begin() {
    if (request_.stop.stop_possible())
      stopped_.emplace(request_.stop, [weak = weak_from_this()] {
        if (const auto self = weak.lock())
          self->stop();
      });
    with_.model = options_->model;
    with_.base_url = options_->base_url;
    with_.streams = options_->streams;
    format_ = needed_format(*options_, request_.vendor_tools, with_);
    if (options_->token)
      return ask_for_token();
    if (options_->key)
      with_.key = options_->key();
    begin_with_key();
  }

private:
  void ask_for_token() {
    const auto& clock = request_.environment;
    options_->token->ask(
      clock ? clock->now() : timestamp(),
      [self = shared_from_this()](result<std::string> token) {
        try {
          if (!token)
            return self->end(self->named(token.error()));
          self->with_.key = std::move(*token);
          self->begin_with_key();
        } catch (const std::exception& thrown) {
          self->end(error(errc::internal, thrown.what()));
        }
      });
  }

  void begin_with_key() {
    if (!with_.key.empty())
      if (const auto flaw = key_flaw(with_.base_url); !flaw.empty())
        return end(named(error(errc::invalid_argument, flaw)));
    auto made = format_->make_request(request_, with_);
    if (!made)
      return end(named(made.error()));
    enter(std::move(*made));
  }

  void enter(http_request made) {
    sent_ = std::move(made);
    add_headers();
    sent_.timeouts = options_->timeouts;
    // Loopback bypasses the proxy: a proxy would read the key, and its own
    // loopback is another one.
    sent_.direct = !with_.key.empty() && is_plain_http(with_.base_url);
    expected_tokens_ = static_cast<double>(sent_.body.size()) / bytes_per_token;
    enter();
  }

  void add_headers() {
    if (!request_.trace.parent.empty()) {
      sent_.headers.emplace_back("traceparent", request_.trace.parent);
      if (!request_.trace.state.empty())
        sent_.headers.emplace_back("tracestate", request_.trace.state);
    }
    for (const auto& own : options_->headers)
      std::erase_if(sent_.headers, [&own](const auto& each) {
        return is_same_name(each.first, own.first);
      });
    sent_.headers.insert(
      sent_.headers.end(), options_->headers.begin(), options_->headers.end());
  }

  void enter() {
    if (!options_->limit)
      return send();
    if (!options_->limit->enter({
          .tokens = expected_tokens_,
          .go = [self = shared_from_this()] { self->send(); },
          .is_over = [self = shared_from_this()] { return self->is_over(); },
        }))
      end(
        named(error(errc::busy, "too many requests wait for its rate limit")));
  }

  bool is_over() {
    const std::lock_guard guard(mutex_);
    return is_over_;
  }

  void send() noexcept {
    try {
      begin_attempt();
    } catch (const std::exception& thrown) {
      end(error(errc::internal, thrown.what()));
    }
  }

  void begin_attempt() {
    status_ = 0;
    headers_.clear();
    body_.clear();
    events_ = sse_reader();
    reader_ = options_->streams ? format_->read_stream(with_) : nullptr;
    answer_bytes_ = 0;
    has_begun_ = false;
    is_enough_ = false;
    broken_.reset();
    early_.reset();
    ++attempts_;
    http_handler handler;
    handler.on_head
      = [self = shared_from_this()](int status, const http_headers& headers) {
          self->status_ = status;
          self->headers_ = headers;
        };
    handler.on_data = [self = shared_from_this()](std::string_view piece) {
      self->take(piece);
    };
    handler.on_end = [self = shared_from_this()](const http_end& ended) {
      // An exception must end the call, because the caller waits for a reply.
      try {
        self->receive_end(ended);
      } catch (const std::exception& thrown) {
        self->end(error(errc::internal, thrown.what()));
      }
    };
    const auto& client
      = options_->client ? options_->client : shared_http_client();
    // Holds the lock, because the first piece may arrive before `start`
    // returns, and would find no call to cancel.
    const std::lock_guard guard(mutex_);
    if (!is_over_)
      under_way_ = client->start(sent_, std::move(handler));
  }

  void take(std::string_view piece) {
    if (broken_ || early_ || is_over())
      return;
    if (!is_good(status_)) {
      body_.append(piece.substr(0, failed_body_bytes_max - body_.size()));
      if (body_.size() == failed_body_bytes_max && !is_enough_)
        read_no_more();
      return;
    }
    answer_bytes_ += piece.size();
    if (answer_bytes_ > options_->answer_bytes_max)
      return give_up(error(errc::model_failed,
                           fmt::format("the answer has more than {} bytes",
                                       options_->answer_bytes_max)));
    if (reader_ && !has_begun_)
      look_at_first(piece);
    if (reader_)
      take_events(piece);
    else
      body_.append(piece);
  }

  // Some servers answer in one piece although a stream was requested. A stream
  // of events does not begin with a bracket, and JSON always does. Cuts off the
  // bytes before the bracket: they may be the rest of a byte order mark that
  // came in two pieces.
  void look_at_first(std::string_view& piece) {
    const auto first = piece.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos)
      return;
    has_begun_ = true;
    if (piece[first] != '{' && piece[first] != '[')
      return;
    reader_.reset();
    piece.remove_prefix(first);
  }

  void take_events(std::string_view piece) {
    std::vector<sse_event> events;
    auto read = events_.take(piece, events);
    std::vector<model_response> pieces;
    for (const auto& each : events)
      if (read)
        read = reader_->take(each, pieces);
    for (auto& each : pieces)
      deliver(std::move(each));
    if (!read)
      give_up(read.error());
    else if (reader_->has_ended())
      end_early();
  }

  // The server may keep the connection open after the end of the stream. A
  // paused turn goes on after the connection has ended.
  void end_early() {
    auto answer = read();
    if (!answer)
      return give_up(answer.error());
    if (!format_->continued(*answer, with_))
      return end_with(std::move(answer));
    early_ = std::move(*answer);
    read_no_more();
  }

  // Breaks off the attempt; the rest of the answer is not needed.
  void give_up(error why) {
    broken_ = std::move(why);
    read_no_more();
  }

  void read_no_more() {
    is_enough_ = true;
    http_call ended;
    {
      const std::lock_guard guard(mutex_);
      ended = under_way_;
    }
    ended.cancel();
  }

  // Delivers a piece. A stop during the delivery leaves the final reply to this
  // function, so that it does not come before the piece.
  void deliver(model_response piece) {
    piece.partial = true;
    {
      const std::lock_guard guard(mutex_);
      if (is_over_)
        return;
      is_delivering_ = true;
    }
    has_delivered_ = true;
    reply_(std::move(piece));
    {
      const std::lock_guard guard(mutex_);
      is_delivering_ = false;
      if (!is_over_)
        return;
    }
    reply_(cancelled());
  }

  void receive_end(const http_end& told) {
    const auto& ended = told.outcome;
    if (is_over())
      return;
    if (broken_)
      return fail_as_told(*broken_);
    if (early_)
      return end_with(std::move(*early_));
    if (status_ == 0)
      return ended
               ? fail({errc::model_failed, "the server sent no answer"}, true)
               : fail(ended.error(), told.may_pass);
    // The received answer explains more than the end of the connection.
    if (!is_good(status_))
      return is_enough_ || ended || is_by_server(ended.error())
               ? fail_by_status()
               : fail(ended.error(), told.may_pass);
    auto answer = ended || (reader_ && is_by_server(ended.error()))
                    ? read()
                    : result<model_response>(ended.error());
    if (!ended && !answer)
      return fail(ended.error(), told.may_pass);
    end_with(std::move(answer));
  }

  static bool is_by_server(const error& why) {
    return why.code() == errc::model_failed
           || why.code() == errc::deadline_exceeded;
  }

  void end_with(result<model_response> answer) {
    if (!answer)
      return fail_as_told(answer.error());
    const auto before
      = with_.so_far ? total_tokens(*with_.so_far).value_or(0) : 0;
    if (const auto used = total_tokens(*answer).value_or(0) - before;
        used > 0 && options_->limit)
      options_->limit->correct(expected_tokens_, used);
    answer->partial = false;
    if (auto with = format_->continued(*answer, with_);
        with && ++pauses_ <= pauses_max)
      return go_on(std::move(*with));
    end(std::move(*answer));
  }

  // Lets the server continue a turn that it has paused.
  void go_on(wire_options with) {
    auto made = format_->make_request(request_, with);
    if (!made)
      return end(named(made.error()));
    with_ = std::move(with);
    attempts_ = 0;
    has_delivered_ = false; // Of this request.
    enter(std::move(*made));
  }

  result<model_response> read() {
    if (!reader_)
      return format_->read_answer(body_, with_);
    if (auto stray = format_->check_stray(events_.stray()); !stray)
      return stray.error();
    return reader_->finish();
  }

  // A format reports a failure that may pass as `busy`; for callers it is
  // `model_failed`.
  void fail_as_told(const error& why) {
    if (why.code() == errc::busy)
      return fail({errc::model_failed, why.message()}, true);
    fail(why, false);
  }

  // Sends the request again without a form that the server has refused. Returns
  // false if that is not possible.
  bool ask_without_refused() {
    auto with = format_->without_refused(status_, body_, with_);
    if (!with || attempts_ >= options_->retries.attempts_max)
      return false;
    auto made = format_->make_request(request_, *with);
    if (!made || made->body == sent_.body)
      return false; // The request did not contain the refused form.
    if (request_.retries && !request_.retries->take())
      return false;
    with_ = std::move(*with);
    enter(std::move(*made));
    return true;
  }

  // Sends the request again with a new token. Returns false if that is not
  // possible, or was done already.
  bool ask_with_new_token() {
    if (status_ != 401 || !options_->token || has_new_token_
        || attempts_ >= options_->retries.attempts_max
        || (request_.retries && !request_.retries->take()))
      return false;
    has_new_token_ = true;
    options_->token->refuse(with_.key);
    ask_for_token();
    return true;
  }

  void fail_by_status() {
    if (ask_without_refused() || ask_with_new_token())
      return;
    auto why = why_redirected();
    if (why.empty())
      why = format_->failure_of(status_, body_, with_.key);
    fail(error(errc::model_failed, fmt::format("status {}: {}", status_, why)),
         may_pass(status_));
  }

  // Returns where a redirect points to; empty for another status. The body of
  // a redirect rarely says so.
  std::string why_redirected() const {
    if (status_ < 300 || status_ > 399)
      return {};
    const auto* location = find_header(headers_, "location");
    const auto target = location != nullptr
                          ? redirect_target(sent_.url, *location)
                          : std::string();
    return target.empty()
             ? std::string()
             : fmt::format("the server redirects to {}, and redirects are not "
                           "followed: set base_url to that address, without "
                           "the path that each request appends",
                           target);
  }

  void fail(const error& why, bool may_retry) {
    if (may_retry && !has_delivered_)
      if (const auto delay = delay_of_retry()) {
        if (options_->on_retry)
          options_->on_retry(
            {request_.agent, named(why), attempts_ + 1, *delay});
        return wait(*delay);
      }
    if (may_retry && request_.outage)
      request_.outage->set();
    end(named(why));
  }

  // Returns the wait before the next attempt, or nothing if there is none.
  std::optional<milliseconds> delay_of_retry() {
    const auto& rule = options_->retries;
    if (attempts_ >= rule.attempts_max || !request_.environment)
      return std::nullopt;
    const auto wished = retry_after(headers_, request_.environment->now());
    if (wished && *wished > rule.retry_after_max)
      return std::nullopt;
    if (request_.retries && !request_.retries->take())
      return std::nullopt;
    const auto doublings = std::min<std::size_t>(attempts_ - 1, 20);
    const auto ceiling
      = std::min<milliseconds>(rule.first * (1LL << doublings), rule.longest);
    const milliseconds drawn(
      static_cast<std::int64_t>(static_cast<double>(ceiling.count())
                                * fraction_of(scattered(next_random()))));
    // The random part is added, so that not all requests come back exactly when
    // the server allows it.
    return wished.value_or(milliseconds(0)) + drawn;
  }

  // Without a seed, two models and two processes must not wait equally: they
  // would all come back to the server at the same time.
  std::uint64_t next_random() const {
    return options_->seed ? *options_->seed + waits_->fetch_add(1)
                          : fnv_hash(request_.environment->new_id());
  }

  void wait(milliseconds delay) {
    request_.environment->call_after(delay, [self = shared_from_this()] {
      if (!self->is_over())
        self->enter();
    });
  }

  error named(const error& why) const {
    return {why.code(),
            fmt::format("{} model '{}'{}: {}",
                        format_->provider(),
                        short_name(options_->model),
                        attempts_ > 1 ? fmt::format(", attempt {}", attempts_)
                                      : std::string(),
                        failure_line(why.message(), with_.key))};
  }

  static error cancelled() {
    return {errc::cancelled, "the model call was cancelled"};
  }

  void stop() {
    http_call ended;
    bool is_told = false;
    {
      const std::lock_guard guard(mutex_);
      if (std::exchange(is_over_, true))
        return;
      ended = under_way_;
      is_told = is_delivering_;
    }
    ended.cancel();
    if (!is_told)
      reply_(cancelled());
  }

  void end(result<model_response> outcome) {
    {
      const std::lock_guard guard(mutex_);
      if (std::exchange(is_over_, true))
        return;
    }
    reply_(std::move(outcome));
  }

  const std::shared_ptr<const http_model_options> options_;
  const std::shared_ptr<std::atomic<std::uint64_t>> waits_;
  const model_request request_;
  const model_reply reply_;
  wire_format_ptr format_;
  http_request sent_;
  wire_options with_;
  double expected_tokens_ = 0;
  std::size_t attempts_ = 0;   // Of the current request.
  std::size_t pauses_ = 0;     // Number of requests that continued a turn.
  bool has_new_token_ = false; // True after a token was refused.

  // State of the current attempt.
  int status_ = 0;
  http_headers headers_;
  std::string body_;
  std::size_t answer_bytes_ = 0;
  bool has_begun_ = false; // True after more than blanks have come.
  sse_reader events_;
  std::unique_ptr<stream_reader> reader_;
  std::optional<error> broken_;
  std::optional<model_response> early_; // Answer before the connection's end.
  bool is_enough_ = false;              // True if the rest is not read.
  bool has_delivered_ = false;

  std::mutex mutex_;
  bool is_over_ = false;
  bool is_delivering_ = false;
  http_call under_way_;
  // Last member, so that it is destroyed first: its callback uses the others.
  std::optional<std::stop_callback<std::function<void()>>> stopped_;
};

http_model::http_model(http_model_options options)
  : shared_(std::make_shared<const http_model_options>(std::move(options))) {}

result<void>
http_model::check_vendor_tools(const std::vector<vendor_tool>& wanted,
                               bool beside_functions) const {
  wire_options with;
  with.model = shared_->model;
  with.base_url = shared_->base_url;
  const auto fit = needed_format(*shared_, wanted, with)
                     ->check_tools_of(shared_->model, wanted, beside_functions);
  if (fit)
    return {};
  return error(fit.error().code(),
               fmt::format("{} model '{}': {}",
                           shared_->format->provider(),
                           short_name(shared_->model),
                           fit.error().message()));
}

void http_model::generate(model_request request, model_reply reply) {
  std::make_shared<call>(shared_, waits_, std::move(request), std::move(reply))
    ->begin();
}

} // namespace troupe

#include "troupe/agents/outside/http_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

std::string in_lower_case(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return made;
}

std::string media_of(const http_headers& headers) {
  for (const auto& [name, text] : headers)
    if (in_lower_case(name) == "content-type") {
      auto media = in_lower_case(text.substr(0, text.find(';')));
      while (media.ends_with(' '))
        media.pop_back();
      return media;
    }
  return {};
}

class exchange_call final : public detail::call<http_answer> {
public:
  exchange_call(std::shared_ptr<http_client> client,
                http_request request,
                std::size_t bytes_max,
                std::stop_token stop)
    : client_(std::move(client)),
      request_(std::move(request)),
      bytes_max_(bytes_max),
      stop_(std::move(stop)) {}

  void start(completion<http_answer> done) override {
    auto state = std::make_shared<progress>();
    state->done = std::move(done);
    state->bytes_max = bytes_max_;
    http_handler handler;
    handler.on_head = [state](int status, const http_headers& headers) {
      state->answer.status = status;
      state->answer.media = media_of(headers);
    };
    handler.on_data = [state](std::string_view piece) { state->take(piece); };
    handler.on_end = [state](const http_end& ended) { state->end(ended); };
    const auto started
      = client_->start(std::move(request_), std::move(handler));
    state->watch(started, stop_);
  }

  result<http_answer> wait() override {
    if (executor::current() != nullptr)
      return error(
        errc::would_deadlock,
        "this call would block a thread of the runtime; co_await it");
    std::promise<result<http_answer>> promise;
    start([&promise](result<http_answer> answer) {
      promise.set_value(std::move(answer));
    });
    return promise.get_future().get();
  }

private:
  struct canceller {
    http_call call;

    void operator()() const { call.cancel(); }
  };

  using watched = std::stop_callback<canceller>;

  // Written by the client's thread; `watch` comes from the thread of the start,
  // at the same time as the first callbacks or after the last one.
  struct progress {
    completion<http_answer> done;
    http_answer answer;
    std::size_t bytes_max = 0;
    bool is_too_large = false;
    std::mutex mutex;
    std::unique_ptr<watched> until;   // Guarded by `mutex`.
    std::optional<http_call> request; // Guarded by `mutex`.
    bool has_ended = false;           // Guarded by `mutex`.

    void watch(const http_call& started, const std::stop_token& stop) {
      {
        const std::lock_guard guard(mutex);
        if (has_ended)
          return;
        request = started;
      }
      // Outside of the lock: a stop that came before is answered inside.
      auto made = std::make_unique<watched>(stop, canceller{started});
      const std::lock_guard guard(mutex);
      if (!has_ended)
        until = std::move(made);
    }

    // The rest of a body that is too large is dropped until the end.
    void take(std::string_view piece) {
      is_too_large
        = is_too_large || answer.body.size() + piece.size() > bytes_max;
      if (!is_too_large) {
        answer.body.append(piece);
        return;
      }
      const std::lock_guard guard(mutex);
      if (request)
        request->cancel();
    }

    void end(const http_end& ended) {
      std::unique_ptr<watched> watching;
      {
        const std::lock_guard guard(mutex);
        has_ended = true;
        watching = std::move(until);
        request.reset(); // It keeps the callbacks, which keep this.
      }
      watching.reset();
      const auto tell = std::move(done);
      if (is_too_large)
        return tell(
          error(errc::too_large,
                fmt::format("the answer has more than {} bytes", bytes_max)));
      if (ended.outcome)
        return tell(std::move(answer));
      const auto& why = ended.outcome.error();
      tell(
        error(why.code() == errc::model_failed ? errc::tool_failed : why.code(),
              why.message()));
    }
  };

  const std::shared_ptr<http_client> client_;
  http_request request_;
  const std::size_t bytes_max_;
  const std::stop_token stop_;
};

} // namespace

pending<http_answer> exchange(std::shared_ptr<http_client> client,
                              http_request request,
                              std::size_t bytes_max,
                              std::stop_token stop) {
  return pending<http_answer>(std::make_unique<exchange_call>(
    std::move(client), std::move(request), bytes_max, std::move(stop)));
}

} // namespace troupe

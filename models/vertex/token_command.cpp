#include "troupe/models/vertex/token_command.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

struct token_command::shared {
  explicit shared(printer prints_) : prints(std::move(prints_)) {}

  const printer prints;
  std::stop_source stop;
  std::mutex mutex;
  // All below are guarded by the mutex.
  std::string token; // Empty: none.
  timestamp asked{}; // Time of the newest call that waits.
  timestamp made{};
  bool runs = false;
  std::vector<receiver> waiting;
  std::thread worker;
};

namespace {

// The output is not shown in the error: it may hold a token.
result<std::string> read_token(std::string_view printed) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = printed.find_first_not_of(blanks);
  const auto last = printed.find_last_not_of(blanks);
  const auto word = first == std::string_view::npos
                      ? std::string_view()
                      : printed.substr(first, last - first + 1);
  const bool is_word
    = !word.empty() && std::ranges::all_of(word, [](char next) {
        return next > ' ' && next < '\x7f';
      });
  if (!is_word)
    return error(errc::model_failed,
                 "the program for the access token printed no token alone on a "
                 "line");
  return std::string(word);
}

result<std::string> print(const token_command::printer& prints,
                          const std::stop_token& stop) {
  try {
    auto printed = prints(stop);
    return printed ? read_token(*printed) : std::move(printed);
  } catch (const std::exception& thrown) {
    return error(errc::model_failed, thrown.what());
  }
}

} // namespace

token_command::token_command(printer prints)
  : shared_(std::make_shared<shared>(std::move(prints))) {}

token_command::~token_command() {
  shared_->stop.request_stop();
  std::thread worker;
  {
    const std::lock_guard guard(shared_->mutex);
    worker = std::move(shared_->worker);
  }
  if (!worker.joinable())
    return;
  // A receiver may have dropped the last owner of this.
  if (worker.get_id() == std::this_thread::get_id())
    worker.detach();
  else
    worker.join();
}

void token_command::ask(timestamp now, receiver receive) {
  std::string kept;
  {
    const std::lock_guard guard(shared_->mutex);
    if (!shared_->token.empty() && now - shared_->made < lifetime) {
      kept = shared_->token;
    } else {
      shared_->asked = now;
      if (!shared_->runs)
        start();
      shared_->waiting.push_back(std::move(receive));
      return;
    }
  }
  receive(std::move(kept));
}

void token_command::refuse(const std::string& token) {
  const std::lock_guard guard(shared_->mutex);
  if (shared_->token == token)
    shared_->token.clear();
}

// Requires the mutex. A worker that does not run has only to return, so it can
// be waited for.
void token_command::start() {
  auto& worker = shared_->worker;
  if (worker.joinable() && worker.get_id() == std::this_thread::get_id())
    worker.detach();
  else if (worker.joinable())
    worker.join();
  worker = std::thread([with = shared_] { run(with); });
  shared_->runs = true;
}

void token_command::run(const std::shared_ptr<shared>& with) {
  for (;;) {
    timestamp asked;
    {
      const std::lock_guard guard(with->mutex);
      asked = with->asked;
    }
    const auto made = print(with->prints, with->stop.get_token());
    std::vector<receiver> waiting;
    {
      const std::lock_guard guard(with->mutex);
      if (made) {
        with->token = *made;
        with->made = asked;
      }
      waiting.swap(with->waiting);
    }
    for (const auto& receive : waiting)
      receive(made);
    waiting.clear();
    // Calls may have come since the token was refused.
    const std::lock_guard guard(with->mutex);
    if (with->waiting.empty()) {
      with->runs = false;
      return;
    }
  }
}

} // namespace troupe

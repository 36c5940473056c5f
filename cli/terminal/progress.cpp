#include "troupe/cli/terminal/progress.hpp"

#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds pause{100};
constexpr std::size_t names_max = 6;
constexpr std::size_t words_max = 400; // In characters.

// The last `count` characters of a UTF-8 text.
std::string_view end_of(std::string_view text, std::size_t count) {
  for (auto at = text.size(); at > 0; --at)
    if ((static_cast<unsigned char>(text[at - 1]) & 0xC0U) != 0x80U
        && count-- == 0)
      return text.substr(at);
  return text;
}

} // namespace

plugin running_agents::observer(std::shared_ptr<running_agents> counted) {
  return {.name = "progress",
          .on_agent = [counted = std::move(counted)](std::string_view agent,
                                                     bool started) {
            const std::lock_guard guard(counted->mutex_);
            auto& running = counted->running_;
            if (started) {
              ++running[std::string(agent)];
            } else if (const auto found = running.find(agent);
                       found != running.end() && --found->second == 0) {
              running.erase(found);
            }
          }};
}

std::vector<std::string> running_agents::names() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, times] : running_)
    all.push_back(name);
  return all;
}

progress::progress(std::shared_ptr<running_agents> counted)
  : started_(std::chrono::steady_clock::now()),
    agents_(std::move(counted)) {
  if (line_.is_shown())
    drawing_ = std::thread([this] { run_thread([this] { keep_drawing(); }); });
}

progress::~progress() {
  if (!line_.is_shown())
    return;
  {
    const std::lock_guard guard(screen_);
    ended_ = true;
    line_.clear();
  }
  end_.notify_one();
  drawing_.join();
}

void progress::count_event() {
  const std::lock_guard guard(mutex_);
  ++events_;
  author_.clear();
  words_.clear();
}

void progress::hear(std::string_view author, std::string_view words) {
  const std::lock_guard guard(mutex_);
  if (author_ != author) {
    author_ = author;
    words_.clear();
  }
  words_ += words;
  words_ = end_of(words_, words_max);
}

void progress::keep_drawing() {
  std::unique_lock lock(screen_);
  while (!end_.wait_for(lock, pause, [this] { return ended_; }))
    line_.show(text());
}

std::string progress::text() {
  const std::chrono::duration<double> elapsed
    = std::chrono::steady_clock::now() - started_;
  const std::lock_guard guard(mutex_);
  auto text = fmt::format("{:.1f} s, events: {}", elapsed.count(), events_);
  if (!words_.empty()) {
    text += fmt::format(", {}: ", author_);
    const auto columns = columns_of(STDERR_FILENO, words_max);
    text += end_of(visible_text(words_, " "),
                   columns - std::min(columns, text.size() + 1));
    return text;
  }
  text += ", running:";
  std::size_t count = 0;
  for (const auto& name : agents_->names())
    if (count++ < names_max)
      text += fmt::format(" {}", name);
  if (count > names_max)
    text += fmt::format(" and {} more", count - names_max);
  return text;
}

} // namespace troupe::cli

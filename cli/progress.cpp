#include "troupe/cli/progress.hpp"

#include "troupe/cli/visible_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds pause{100};
constexpr std::size_t names_max = 6;
constexpr std::size_t words_max = 400; // In characters.

// At most `count` characters of UTF-8 from the end.
std::string_view end_of(std::string_view text, std::size_t count) {
  for (auto at = text.size(); at > 0; --at)
    if ((static_cast<unsigned char>(text[at - 1]) & 0xC0U) != 0x80U
        && count-- == 0)
      return text.substr(at);
  return text;
}

} // namespace

progress::progress()
  : started_(std::chrono::steady_clock::now()),
    tally_(std::make_shared<tally>()) {
  if (line_.is_shown())
    drawing_ = std::thread([this] { keep_drawing(); });
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

std::function<void(std::string_view agent, bool started)>
progress::on_agent() const {
  if (!line_.is_shown())
    return nullptr;
  return [tally = tally_](std::string_view agent, bool started) {
    const std::lock_guard guard(tally->mutex);
    if (started) {
      ++tally->running[std::string(agent)];
    } else if (const auto found = tally->running.find(agent);
               found != tally->running.end() && --found->second == 0) {
      tally->running.erase(found);
    }
  };
}

void progress::count_event() {
  const std::lock_guard guard(tally_->mutex);
  ++tally_->events;
  tally_->author.clear();
  tally_->words.clear();
}

void progress::hear(std::string_view author, std::string_view words) {
  const std::lock_guard guard(tally_->mutex);
  if (tally_->author != author) {
    tally_->author = author;
    tally_->words.clear();
  }
  tally_->words += words;
  tally_->words = end_of(tally_->words, words_max);
}

void progress::keep_drawing() {
  std::unique_lock lock(screen_);
  while (!end_.wait_for(lock, pause, [this] { return ended_; }))
    line_.show(text());
}

std::string progress::text() const {
  const std::chrono::duration<double> elapsed
    = std::chrono::steady_clock::now() - started_;
  const std::lock_guard guard(tally_->mutex);
  auto text
    = fmt::format("{:.1f} s, events: {}", elapsed.count(), tally_->events);
  if (!tally_->words.empty()) {
    text += fmt::format(", {}: ", tally_->author);
    const auto columns = columns_of(STDERR_FILENO, words_max);
    text += end_of(visible_text(tally_->words, " "),
                   columns - std::min(columns, text.size() + 1));
    return text;
  }
  text += ", running:";
  std::size_t count = 0;
  for (const auto& [name, times] : tally_->running)
    if (count++ < names_max)
      text += fmt::format(" {}", name);
  if (count > names_max)
    text += fmt::format(" and {} more", count - names_max);
  return text;
}

} // namespace troupe::cli

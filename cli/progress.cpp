#include "troupe/cli/progress.hpp"

#include <fmt/format.h>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds pause{100};
constexpr std::size_t names_max = 6;

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
  auto text = fmt::format(
    "{:.1f} s, events: {}, running:", elapsed.count(), tally_->events);
  std::size_t count = 0;
  for (const auto& [name, times] : tally_->running)
    if (count++ < names_max)
      text += fmt::format(" {}", name);
  if (count > names_max)
    text += fmt::format(" and {} more", count - names_max);
  return text;
}

} // namespace troupe::cli

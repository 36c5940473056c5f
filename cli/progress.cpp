#include "troupe/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds pause{100};
constexpr std::size_t names_max = 6;

std::size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

// At most one screen row: the next line could not be wiped out. A terminal that
// fails is nobody's business here.
void put(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0)
      return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Cuts after `count` characters of UTF-8.
std::string_view cut(std::string_view text, std::size_t count) {
  for (std::size_t index = 0; index < text.size(); ++index)
    if ((static_cast<unsigned char>(text[index]) & 0xC0U) != 0x80U
        && count-- == 0)
      return text.substr(0, index);
  return text;
}

} // namespace

progress::progress()
  : shown_(::isatty(STDERR_FILENO) == 1),
    started_(std::chrono::steady_clock::now()),
    tally_(std::make_shared<tally>()) {
  if (shown_)
    drawing_ = std::thread([this] { keep_drawing(); });
}

progress::~progress() {
  if (!shown_)
    return;
  {
    const std::lock_guard guard(screen_);
    ended_ = true;
    clear();
  }
  end_.notify_one();
  drawing_.join();
}

std::function<void(std::string_view agent, bool started)>
progress::on_agent() const {
  if (!shown_)
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
    draw();
}

void progress::draw() {
  put("\r\033[K");
  put(cut(line(), columns() - 1));
  drawn_ = true;
}

void progress::clear() {
  if (std::exchange(drawn_, false))
    put("\r\033[K");
}

std::string progress::line() const {
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

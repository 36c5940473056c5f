#include "troupe/cli/terminal/screen_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

namespace troupe::cli {

namespace {

constexpr std::size_t columns_unknown = 80;

// Writes to the terminal, at most one row: a second row could not be erased.
// Errors of the terminal are ignored.
void put(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0)
      return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The first `count` characters of a UTF-8 text.
std::string_view cut(std::string_view text, std::size_t count) {
  for (std::size_t index = 0; index < text.size(); ++index)
    if ((static_cast<unsigned char>(text[index]) & 0xC0U) != 0x80U
        && count-- == 0)
      return text.substr(0, index);
  return text;
}

} // namespace

std::size_t columns_of(int descriptor, std::size_t otherwise) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
           ? size.ws_col
           : otherwise;
}

screen_line::screen_line() : shown_(::isatty(STDERR_FILENO) == 1) {}

screen_line::~screen_line() {
  clear();
}

void screen_line::show(std::string_view text) {
  if (!shown_)
    return;
  put("\r\033[K");
  put(cut(text, columns_of(STDERR_FILENO, columns_unknown) - 1));
  drawn_ = true;
}

void screen_line::clear() {
  if (std::exchange(drawn_, false))
    put("\r\033[K");
}

} // namespace troupe::cli

#include "troupe/cli/talk/line_editor.hpp"

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <system_error>

namespace troupe::cli {

struct line_editor::terminal {
  explicit terminal(int stopped_by)
    : stopped(stopped_by),
      interrupted(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (interrupted < 0)
      throw std::system_error(errno, std::generic_category(), "eventfd");
    // libedit decodes its input by the locale. Nothing else here uses it.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    std::setlocale(LC_CTYPE, "C.UTF-8");
    editor = ::el_init("troupe", stdin, stdout, stderr);
    past = ::history_init();
    if (editor == nullptr || past == nullptr)
      throw error(errc::store_failed, "the terminal cannot be used");
    HistEvent unused{};
    ::history(past, &unused, H_SETSIZE, lines_max);
    ::history(past, &unused, H_SETUNIQUE, 1);
    ::el_set(editor, EL_CLIENTDATA, this);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_HIST, ::history, past);
    ::el_set(editor, EL_SIGNAL, 0);
    ::el_set(editor, EL_PROMPT, &terminal::prompt_of);
    ::el_set(editor, EL_GETCFN, &terminal::read_character);
    ::el_source(editor, nullptr);
  }

  ~terminal() {
    if (past != nullptr)
      ::history_end(past);
    if (editor != nullptr)
      ::el_end(editor);
    ::close(interrupted);
  }

  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  static terminal& of(EditLine* of) {
    void* found = nullptr;
    ::el_get(of, EL_CLIENTDATA, &found);
    return *static_cast<terminal*>(found);
  }

  static char* prompt_of(EditLine* of) {
    return terminal::of(of).prompt.data();
  }

  // Called by libedit for each character: returns 1, or 0 at the end of the
  // input, or -1.
  static int read_character(EditLine* of, wchar_t* into) {
    return terminal::of(of).read_one(into);
  }

  int read_one(wchar_t* into) {
    std::mbstate_t state{};
    for (;;) {
      if (!wait())
        return -1;
      char byte = 0;
      const auto count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return static_cast<int>(count);
      // libedit shows the prompt before it switches the terminal. A Ctrl-D that
      // is typed earlier arrives as a NUL.
      if (byte == '\0')
        byte = end_of_input;
      // The state is a variable of this call, and the locale stays.
      // NOLINTNEXTLINE(concurrency-mt-unsafe)
      const auto used = std::mbrtowc(into, &byte, 1, &state);
      if (used == static_cast<std::size_t>(-2))
        continue; // More bytes of this character follow.
      if (used == static_cast<std::size_t>(-1)) {
        state = {}; // Not UTF-8: the byte is left out.
        continue;
      }
      return 1;
    }
  }

  // Waits for input; returns false if something else ended the wait.
  bool wait() {
    std::array<pollfd, 3> waiting{pollfd{STDIN_FILENO, POLLIN, 0},
                                  pollfd{interrupted, POLLIN, 0},
                                  pollfd{stopped, POLLIN, 0}};
    while (::poll(waiting.data(), waiting.size(), -1) < 0)
      if (errno != EINTR)
        return false;
    if (waiting[2].revents != 0) {
      was_stopped = true;
      return false;
    }
    if (waiting[1].revents != 0) {
      std::uint64_t times = 0;
      was_interrupted = ::read(interrupted, &times, sizeof times) > 0;
      return false;
    }
    return true;
  }

  static constexpr int lines_max = 1'000;
  static constexpr char end_of_input = 4; // Ctrl-D.

  const int stopped;
  const int interrupted;
  EditLine* editor = nullptr;
  History* past = nullptr;
  std::string prompt;
  bool was_interrupted = false;
  bool was_stopped = false;
};

line_editor::line_editor(int stopped)
  : terminal_(std::make_unique<terminal>(stopped)) {}

line_editor::~line_editor() = default;

result<edited_line> line_editor::read(const std::string& prompt, bool kept) {
  auto& on = *terminal_;
  on.prompt = prompt;
  on.was_interrupted = false;
  int length = 0;
  const auto* const line = ::el_gets(on.editor, &length);
  if (on.was_stopped)
    return error(errc::cancelled, "interrupted");
  if (on.was_interrupted) {
    ::el_reset(on.editor);
    return edited_line{edited_line::ending::interrupt};
  }
  if (line == nullptr || length <= 0)
    return edited_line{edited_line::ending::end};
  std::string text(line, static_cast<std::size_t>(length));
  while (text.ends_with('\n') || text.ends_with('\r'))
    text.pop_back();
  if (kept && !text.empty()) {
    HistEvent unused{};
    ::history(on.past, &unused, H_ENTER, text.c_str());
  }
  return edited_line{edited_line::ending::line, std::move(text)};
}

void line_editor::interrupt() noexcept {
  const std::uint64_t one = 1;
  // A full counter is readable already.
  [[maybe_unused]] const auto written
    = ::write(terminal_->interrupted, &one, sizeof one);
}

} // namespace troupe::cli

#include "troupe/core/processes/command_run.hpp"

#include "troupe/core/processes/io_thread.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <utf8.h>

#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace troupe::processes {

namespace asio = boost::asio;

namespace {

using boost::system::error_code;
using stream = asio::posix::stream_descriptor;

constexpr std::size_t kept_error_bytes = std::size_t{2} << 10U;
// The time between the ends of a process and of its output. A process that it
// has started may hold the output open for longer.
constexpr std::chrono::milliseconds output_grace{200};

// The end of a text as one line for a message.
std::string end_of(std::string_view text) {
  constexpr auto space = " \t\r\n";
  if (const auto first = text.find_first_not_of(space);
      first == std::string_view::npos)
    return {};
  else
    text = text.substr(first, text.find_last_not_of(space) - first + 1);
  if (text.size() > kept_error_bytes)
    text.remove_prefix(text.size() - kept_error_bytes);
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return valid;
}

} // namespace

// Everything but the constructor, `start` and `stop` happens on the thread of
// all programs. The handlers of the thread keep the object alive.
class command_run::process : public std::enable_shared_from_this<process> {
public:
  process(program started,
          std::string input,
          command_limits limits,
          completion done)
    : program_(std::move(started)),
      unsent_(std::move(input)),
      limits_(limits),
      done_(std::move(done)) {}

  void start();
  void stop(error why);

private:
  class all;

  void begin(child_process child);
  void read_output();
  void read_errors();
  void note_exit();
  void note_closed();
  void end(error why);
  void note_end();
  void answer(result<std::string> outcome);
  error failure(std::string_view how) const;

  const program program_;
  std::string unsent_;
  const command_limits limits_;
  completion done_;
  pid_t pid_ = -1; // 0 after the process was reaped.
  std::optional<stream> input_;
  std::optional<stream> output_;
  std::optional<stream> errors_;
  std::optional<stream> handle_;
  std::array<char, std::size_t{64} << 10U> piece_{};
  std::array<char, 4096> error_piece_{};
  std::string text_;
  std::string last_errors_;
  std::optional<error> stopped_; // The outcome of a run that was ended.
  std::shared_ptr<void> timer_;
  bool has_exited_ = false; // The process is a zombie, or was reaped.
};

// The thread of all programs. At the end of this program those that still run
// are ended.
class command_run::process::all {
public:
  static all& programs() {
    static all kept;
    return kept;
  }

  ~all() {
    thread_.post([this] {
      for (auto* each : std::set<process*>(running_))
        each->end(error(errc::cancelled, "the program ends"));
    });
    thread_.finish();
  }

  io_thread& thread() noexcept { return thread_; }

  // Call these on the thread.

  void add(process* started) { running_.insert(started); }

  void remove(process* ended) { running_.erase(ended); }

private:
  io_thread thread_;
  std::set<process*> running_;
};

void command_run::process::start() {
  // The thread is started before the program. Without a thread nobody would
  // wait for the end of the program.
  auto& programs = all::programs();
  auto child = std::make_shared<result<child_process>>(start_program(program_));
  programs.thread().post([self = shared_from_this(), child] {
    if (*child)
      self->begin(std::move(**child));
    else
      self->answer(child->error());
  });
}

void command_run::process::stop(error why) {
  all::programs().thread().post(
    [self = shared_from_this(), why = std::move(why)]() mutable {
      self->end(std::move(why));
    });
}

void command_run::process::begin(child_process child) {
  auto& programs = all::programs();
  auto& context = programs.thread().context();
  programs.add(this);
  pid_ = child.pid;
  output_.emplace(context, child.output.release());
  errors_.emplace(context, child.errors.release());
  handle_.emplace(context, child.handle.release());
  if (!unsent_.empty()) {
    input_.emplace(context, child.input.release());
    asio::async_write(
      *input_,
      asio::buffer(unsent_),
      [self = shared_from_this()](const error_code&, std::size_t) {
        // A program need not read its input.
        self->input_.reset();
      });
  }
  read_output();
  read_errors();
  handle_->async_wait(
    stream::wait_read,
    [self = shared_from_this()](const error_code&) { self->note_exit(); });
  // A stop that came before the start.
  if (stopped_)
    end(*std::exchange(stopped_, std::nullopt));
}

void command_run::process::read_output() {
  output_->async_read_some(
    asio::buffer(piece_),
    [self = shared_from_this()](const error_code& failed, std::size_t size) {
      if (failed) {
        self->output_.reset();
        return self->note_closed();
      }
      // The output of a program that was stopped is dropped.
      if (!self->stopped_)
        self->text_.append(self->piece_.data(), size);
      if (self->text_.size() > self->limits_.output_bytes_max)
        self->end(
          error(errc::too_large,
                fmt::format("the program '{}' has written more than {} bytes",
                            self->program_.command,
                            self->limits_.output_bytes_max)));
      self->read_output();
    });
}

void command_run::process::read_errors() {
  errors_->async_read_some(
    asio::buffer(error_piece_),
    [self = shared_from_this()](const error_code& failed, std::size_t size) {
      if (failed) {
        self->errors_.reset();
        return self->note_closed();
      }
      auto& kept = self->last_errors_;
      kept.append(self->error_piece_.data(), size);
      if (kept.size() > kept_error_bytes)
        kept.erase(0, kept.size() - kept_error_bytes);
      self->read_errors();
    });
}

void command_run::process::note_exit() {
  has_exited_ = true;
  handle_.reset();
  if (!output_ && !errors_)
    return note_end();
  timer_ = all::programs().thread().call_after(
    output_grace, [self = shared_from_this()] { self->note_end(); });
}

void command_run::process::note_closed() {
  if (has_exited_ && !output_ && !errors_)
    note_end();
}

// Sends SIGTERM, then SIGKILL. A process that the kernel does not end even then
// is answered for, and reaped when it ends.
void command_run::process::end(error why) {
  if (stopped_ || !done_)
    return;
  stopped_ = std::move(why);
  text_.clear();
  if (pid_ <= 0 || has_exited_)
    return;
  signal_group(pid_, SIGTERM);
  timer_ = all::programs().thread().call_after(
    limits_.grace, [self = shared_from_this()] {
      signal_group(self->pid_, SIGKILL);
      self->timer_ = all::programs().thread().call_after(
        self->limits_.grace, [self] { self->answer(error(*self->stopped_)); });
    });
}

// The process has ended. Its processes are killed before it is reaped, as its
// number may belong to another one then.
void command_run::process::note_end() {
  if (pid_ <= 0)
    return;
  timer_ = nullptr;
  signal_group(pid_, SIGKILL);
  const auto how = reap(pid_);
  pid_ = 0;
  const auto close = [](std::optional<stream>& closed) {
    error_code ignored;
    if (closed)
      closed->close(ignored);
  };
  close(input_);
  close(output_);
  close(errors_);
  all::programs().remove(this);
  if (stopped_)
    return answer(error(*stopped_));
  if (!how.is_success)
    return answer(failure(how.words));
  answer(std::move(text_));
}

void command_run::process::answer(result<std::string> outcome) {
  if (const auto done = std::exchange(done_, nullptr))
    done(std::move(outcome));
}

// Programs write the reason to stderr, some to stdout.
error command_run::process::failure(std::string_view how) const {
  auto why
    = fmt::format("the program '{}' has ended with {}", program_.command, how);
  auto said = end_of(last_errors_);
  if (said.empty() && !limits_.output_is_secret)
    said = end_of(text_);
  if (!said.empty())
    why += fmt::format("; it wrote: {}", said);
  return {errc::tool_failed, std::move(why)};
}

command_run::command_run(program started,
                         std::string input,
                         command_limits limits,
                         completion done)
  : process_(std::make_shared<process>(
    std::move(started), std::move(input), limits, std::move(done))) {}

command_run::~command_run() = default;

void command_run::start() {
  process_->start();
}

void command_run::stop(error why) {
  process_->stop(std::move(why));
}

} // namespace troupe::processes

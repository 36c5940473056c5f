#include "troupe/mcp/transports/stdio_transport.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <utf8.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string_view>
#include <utility>

namespace troupe::mcp {

namespace asio = boost::asio;

namespace {

using boost::system::error_code;
using processes::reap;
using processes::signal_group;
using processes::start_program;
using stream = asio::posix::stream_descriptor;

constexpr std::size_t read_bytes = std::size_t{64} << 10U;
constexpr std::size_t kept_error_bytes = std::size_t{2} << 10U;
// The time between the ends of a process and of its output. Another process may
// hold the output open for longer, and a process may live on without it.
constexpr std::chrono::milliseconds output_grace{200};

std::string_view without_space(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string with_valid_utf8(std::string_view text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return valid;
}

class stdio_transport final
  : public transport,
    public std::enable_shared_from_this<stdio_transport> {
public:
  stdio_transport(std::shared_ptr<io_thread> thread,
                  const program& started,
                  child_process child,
                  stdio_limits limits,
                  transport_events events)
    : thread_(std::move(thread)),
      command_(started.command),
      pid_(child.pid),
      limits_(limits),
      events_(std::make_shared<const transport_events>(std::move(events))),
      input_(thread_->context(), child.input.release()),
      output_(thread_->context(), child.output.release()),
      errors_(thread_->context(), child.errors.release()),
      handle_(thread_->context(), child.handle.release()) {}

  void start() {
    read_output();
    read_errors();
    handle_.async_wait(
      stream::wait_read,
      [self = shared_from_this()](const error_code&) { self->note_exit(); });
  }

  void send(outgoing sent) override {
    if (!input_.is_open())
      return;
    auto line = wire_text(sent) + '\n';
    unsent_bytes_ += line.size();
    unsent_.push_back(std::move(line));
    if (unsent_bytes_ > 4 * limits_.message_bytes_max)
      return fail("does not read its stdin");
    if (unsent_.size() == 1)
      write_next();
    if (sent.on_sent)
      sent.on_sent();
  }

  void listen() override {}

  void settle(std::int64_t) override {}

  void forget(std::int64_t) override {}

  bool tells_cancellation(bool) const noexcept override { return true; }

  void note_handshake(const std::string&) override {}

  void close(std::function<void()> done) override {
    events_ = nullptr;
    is_told_ = true;
    on_end_ = std::move(done);
    if (has_ended_)
      return finish();
    begin_end();
  }

private:
  void write_next() {
    asio::async_write(
      input_,
      asio::buffer(unsent_.front()),
      [self = shared_from_this()](const error_code& failed, std::size_t) {
        self->note_written(failed);
      });
  }

  void note_written(const error_code& failed) {
    if (failed) // The end of the process says more.
      return unsent_.clear();
    unsent_bytes_ -= unsent_.front().size();
    unsent_.pop_front();
    if (!unsent_.empty())
      write_next();
  }

  void read_output() {
    output_.async_read_some(
      asio::buffer(piece_),
      [self = shared_from_this()](const error_code& failed, std::size_t size) {
        if (!failed && self->take_piece({self->piece_.data(), size}))
          return self->read_output();
        error_code ignored;
        self->output_.close(ignored);
        self->note_end_of_output();
      });
  }

  // Usually the process ends with its output.
  void note_end_of_output() {
    if (has_exited_)
      return note_end();
    if (!is_ending_)
      timer_ = thread_->call_after(output_grace, [self = shared_from_this()] {
        if (!self->has_exited_)
          self->fail("closed its stdout; check that the command starts an MCP "
                     "server over stdio");
      });
  }

  // Returns false if no more is to be read.
  bool take_piece(std::string_view piece) {
    while (!piece.empty()) {
      const auto end = piece.find('\n');
      line_.append(piece.substr(0, end));
      if (line_.size() > limits_.message_bytes_max) {
        fail(fmt::format("sent a message of more than {} bytes",
                         limits_.message_bytes_max));
        return false;
      }
      if (end == std::string_view::npos)
        return true;
      piece.remove_prefix(end + 1);
      take_line(std::exchange(line_, std::string()));
    }
    return true;
  }

  // Text that is no message is skipped: some servers write a greeting.
  void take_line(const std::string& line) {
    if (without_space(line).empty())
      return;
    auto message = parse_json(line);
    if (const auto events = events_; message && events)
      events->on_message(std::move(*message));
  }

  void read_errors() {
    errors_.async_read_some(
      asio::buffer(error_piece_),
      [self = shared_from_this()](const error_code& failed, std::size_t size) {
        if (failed)
          return;
        auto& kept = self->last_errors_;
        kept.append(self->error_piece_.data(), size);
        if (kept.size() > kept_error_bytes)
          kept.erase(0, kept.size() - kept_error_bytes);
        self->read_errors();
      });
  }

  void note_exit() {
    has_exited_ = true;
    if (!output_.is_open())
      return note_end();
    timer_ = thread_->call_after(output_grace, [self = shared_from_this()] {
      error_code ignored;
      self->output_.close(ignored);
      self->note_end();
    });
  }

  // The process has ended, and its output was read. Its processes are killed
  // before it is reaped, as its number may belong to another one then.
  void note_end() {
    if (std::exchange(has_ended_, true))
      return;
    timer_ = nullptr;
    signal_group(pid_, SIGKILL);
    const auto how = reap(pid_).words;
    error_code ignored;
    input_.close(ignored);
    errors_.close(ignored);
    handle_.close(ignored);
    tell(fmt::format("has ended with {}", how));
    if (on_end_)
      finish();
  }

  void finish() { thread_->post(std::exchange(on_end_, nullptr)); }

  // The server cannot be used any more.
  void fail(std::string_view why) {
    tell(why);
    begin_end();
  }

  void tell(std::string_view why) {
    if (std::exchange(is_told_, true))
      return;
    auto text = fmt::format("the MCP server '{}' {}", command_, why);
    if (const auto said = without_space(last_errors_); !said.empty())
      text += fmt::format("; it wrote: {}", with_valid_utf8(said));
    if (const auto events = std::exchange(events_, nullptr))
      events->on_closed(error(errc::tool_failed, std::move(text)));
  }

  // Closes stdin, then sends SIGTERM, then SIGKILL.
  void begin_end() {
    if (std::exchange(is_ending_, true))
      return;
    error_code ignored;
    input_.close(ignored);
    if (has_exited_)
      return;
    timer_ = thread_->call_after(limits_.grace, [self = shared_from_this()] {
      signal_group(self->pid_, SIGTERM);
      self->timer_ = self->thread_->call_after(
        self->limits_.grace, [self] { signal_group(self->pid_, SIGKILL); });
    });
  }

  const std::shared_ptr<io_thread> thread_;
  const std::string command_;
  const pid_t pid_;
  const stdio_limits limits_;
  // Null after `close`. A handler may call `close`, so each caller copies the
  // pointer first.
  std::shared_ptr<const transport_events> events_;
  stream input_;
  stream output_;
  stream errors_;
  stream handle_;
  std::array<char, read_bytes> piece_{};
  std::array<char, 4096> error_piece_{};
  std::string line_; // Start of a message that has not ended.
  std::string last_errors_;
  std::deque<std::string> unsent_; // The first one is being written.
  std::size_t unsent_bytes_ = 0;
  std::shared_ptr<void> timer_;
  std::function<void()> on_end_;
  bool is_told_ = false;    // `on_closed` was called, or `close`.
  bool is_ending_ = false;  // The process was asked to end.
  bool has_exited_ = false; // The process is a zombie.
  bool has_ended_ = false;  // The process was reaped.
};

} // namespace

result<std::shared_ptr<transport>>
start_stdio(std::shared_ptr<io_thread> thread,
            const program& started,
            stdio_limits limits,
            transport_events events) {
  auto child = start_program(started);
  if (!child)
    return child.error();
  auto made = std::make_shared<stdio_transport>(
    std::move(thread), started, std::move(*child), limits, std::move(events));
  made->start();
  return std::shared_ptr<transport>(std::move(made));
}

} // namespace troupe::mcp

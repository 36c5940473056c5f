// The client's side of a connection to one server: the handshake, requests and
// their answers, the list of tools, and connecting again.
//
// Everything happens on the connection's thread. A request is answered once:
// by the server, by a cancellation, or by the end of the connection. An answer
// to an unknown request is dropped.

#pragma once

#include "troupe/core/processes/io_thread.hpp"
#include "troupe/mcp/client/offered_tool.hpp"
#include "troupe/mcp/mcp_tools.hpp"
#include "troupe/mcp/transports/transport.hpp"
#include "troupe/models/trace_context.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::mcp {

using processes::io_thread;

/// Opens the way to the server; called on the thread for each connection.
using open_transport = std::function<result<std::shared_ptr<transport>>(
  const std::shared_ptr<io_thread>& thread, transport_events events)>;

/// A call of a tool, or a request for the tools.
template <class T>
struct wanted {
  /// Called once, on the thread.
  std::function<void(result<T>)> done;
  /// The request, once it was sent.
  std::optional<std::int64_t> id;
  bool is_over = false;
};

class connection : public std::enable_shared_from_this<connection> {
public:
  /// `name` stands for the server in messages.
  connection(std::shared_ptr<io_thread> thread,
             std::string name,
             mcp_source source,
             mcp_options options,
             open_transport open);

  // -- any thread ----

  /// Begins to connect.
  void connect();

  /// Calls a tool; answers with the result of `tools/call`. `shown` is the
  /// tool's name in reports of its progress. `trace` is sent in `_meta`, and
  /// over HTTP as headers, too.
  void call(std::shared_ptr<wanted<json>> call,
            std::string tool,
            std::string shown,
            json args,
            trace_context trace);

  /// Answers with the tools that were listed last, even if the server has ended
  /// since; it is started again then.
  void ask_tools(std::shared_ptr<wanted<offer>> question);

  /// Ends a call or a question with an error, if it has no answer yet. The
  /// server is told.
  template <class T>
  void cancel(std::shared_ptr<wanted<T>> given_up, error why);

  /// Ends the connection, and fails all calls and questions.
  void close();

private:
  enum class phase : std::uint8_t { idle, starting, ready, closed };

  using handler = std::function<void(result<json>)>;

  /// The pages of a list that has not ended.
  struct listed_pages {
    std::vector<offered_tool> tools;
    std::size_t bytes = 0;
    std::size_t count = 0;
  };

  struct request {
    std::string method;
    json params;
    handler done;
    std::string progress_name;          // Empty: no progress is asked for.
    trace_context trace;                // Empty: of no span.
    std::shared_ptr<wanted<json>> call; // Null for the connection's own ones.
    bool was_repeated = false;
  };

  template <class T>
  static void answer(const std::shared_ptr<wanted<T>>& asked, result<T> with);

  error failure(std::string_view why) const;
  void log(std::string_view line) const;

  // Connecting.
  void when_ready(std::function<void(result<void>)> waiter);
  void start();
  void open();
  void limit_start();
  void discover();
  void initialize();
  void take_handshake(const json& answer);
  void list_tools(std::string cursor, listed_pages so_far);
  void limit_list();
  void drop_list();
  void become_ready(std::vector<offered_tool> tools);
  void fail_start(const error& why);
  void drop_transport();
  void end_requests(const error& why);
  transport_events make_events();

  // Messages.
  std::int64_t send(request sent);
  void send_note(std::string_view method, json params);
  void receive(json message);
  void receive_note(const std::string& method, const json* params);
  void fail_request(std::int64_t id, const error& why);
  void note_lost_session(const lost_session& lost);
  void note_closed(const error& why);
  void drop_request(std::int64_t id);
  std::vector<std::pair<std::string, std::string>>
  headers_of(const request& sent) const;

  void list_later();
  void list_if_changed();
  bool is_list_old() const;
  void subscribe();
  void subscribe_later();

  const std::shared_ptr<io_thread> thread_;
  const std::string name_;
  const mcp_source source_;
  const mcp_options options_;
  const open_transport open_;

  phase phase_ = phase::idle;
  std::shared_ptr<transport> transport_;
  // Counts transports: an event of an earlier one is dropped.
  std::uint64_t transports_ = 0;
  std::map<std::int64_t, request> requests_;
  std::int64_t last_id_ = 0;
  std::vector<std::function<void(result<void>)>> waiting_;
  // A question for the tools waits, which tells the reason of a failed start.
  bool is_asked_ = false;
  std::shared_ptr<void> start_timer_;
  std::shared_ptr<void> probe_timer_;
  std::shared_ptr<void> list_timer_;
  std::shared_ptr<void> limit_timer_; // Of a list while it is ready.
  std::int64_t list_id_ = 0;
  std::shared_ptr<void> subscription_timer_;
  std::int64_t subscription_id_ = 0;
  std::chrono::steady_clock::time_point subscribed_at_;
  std::chrono::milliseconds subscribe_after_{0};
  std::optional<bool> is_stateless_; // Unset until it is known.
  bool is_probing_ = false;
  bool is_listing_ = false;
  bool has_changed_ = false; // Since the list under way was asked for.
  unsigned failures_ = 0;    // Since the last call that was answered.
  std::chrono::steady_clock::time_point ready_at_;
  offer tools_;
  std::chrono::steady_clock::time_point listed_at_;
  std::chrono::milliseconds list_lifetime_{0};
};

} // namespace troupe::mcp

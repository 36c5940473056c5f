// The protocol, as a server speaks it: reads the messages of one client and
// answers them.
//
// A client begins with `initialize`, or names the stateless version in each
// request.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/mcp/client/message.hpp"
#include "troupe/mcp/server/agent_calls.hpp"
#include "troupe/mcp/server/line_writer.hpp"
#include "troupe/mcp/server/offered_agent.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::mcp {

/// For one thread at a time.
class exchange {
public:
  /// All arguments outlive this.
  exchange(const offered_agent& offered,
           agent_calls& calls,
           line_writer& output) noexcept
    : offered_(offered),
      calls_(calls),
      output_(output) {}

  /// Reads one line, and answers it or starts its call. Does not wait for the
  /// call.
  void take(std::string_view line);

  /// Answers a message that was too long to be read.
  void refuse_long_message(std::size_t bytes_max);

private:
  void answer(const incoming& request);
  void take_notification(const incoming& notice);
  void answer_initialize(const incoming& request);
  /// `is_stateless`: the request names the stateless version.
  void answer_method(const incoming& request, bool is_stateless);
  void answer_list(const incoming& request, const json& version_fields);
  void start_call(const incoming& request, json version_fields);
  void refuse(const json& id, int code, std::string_view why);

  const offered_agent& offered_;
  agent_calls& calls_;
  line_writer& output_;
  bool is_initialized_ = false;
};

} // namespace troupe::mcp

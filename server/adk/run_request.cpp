#include "troupe/server/adk/run_request.hpp"

#include "troupe/server/adk/body.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/rights.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::serving {

namespace {

// A server of one app needs no name.
std::string app_in(body& given, const served& on) {
  if (const auto name = given.text("appName"))
    return *name;
  if (on.apps.size() == 1)
    return on.apps.begin()->first;
  given.miss("appName");
  return {};
}

void read_message(body& given, run_request& into) {
  const auto* message = given.required_object("newMessage");
  if (message == nullptr)
    return;
  auto read = content_from_json(*message);
  if (read)
    into.message = std::move(*read);
  else
    given.refuse("newMessage", read.error().message());
}

// Returns true if the run ends with its client: as the request says, or else as
// the server does by default.
bool ends_with_client(body& given, const served& on) {
  const auto wish = given.text("onDisconnect");
  if (wish && *wish != "cancel" && *wish != "continue")
    given.refuse("onDisconnect", "Input should be 'cancel' or 'continue'");
  return wish ? *wish == "cancel" : on.options.cancel_on_disconnect;
}

trace_context read_trace(const request& asked) {
  std::string parent;
  std::string state;
  for (const auto& [name, value] : asked.headers) {
    // Two parents together are invalid.
    if (name == "traceparent")
      parent += value;
    // Several states are parts of one list.
    if (name == "tracestate")
      state += (state.empty() ? "" : ",") + value;
  }
  return accept_trace_context(std::move(parent), std::move(state));
}

std::optional<response>
check(const served& on, const caller& who, const run_request& read) {
  if (!who.writes())
    return forbidden("this token reads only");
  if (auto refused = check_user(who, read.key.user))
    return refused;
  if (auto refused = check_keys(who, read.state_delta))
    return refused;
  if (!on.apps.contains(read.key.app))
    return detail(404, fmt::format("App not found: {}", read.key.app))
      .with("troupe-error", "not_found");
  return std::nullopt;
}

} // namespace

std::variant<run_request, response>
read_run_request(const served& on, const caller& who, const request& asked) {
  body given(asked.body);
  run_request read;
  read.key.app = spelled(app_in(given, on));
  read.key.user = spelled(given.required_text("userId"));
  read.key.id = spelled(given.required_text("sessionId"));
  read_message(given, read);
  if (const auto* changes = given.object("stateDelta"))
    read.state_delta = keys_from_adk(*changes);
  read.streams = given.flag("streaming").value_or(false);
  read.names_call = given.text("functionCallEventId").has_value();
  read.ends_with_client = ends_with_client(given, on);
  read.trace = read_trace(asked);
  if (auto refused = given.refusal())
    return std::move(*refused);
  if (auto refused = check(on, who, read))
    return std::move(*refused);
  return read;
}

} // namespace troupe::serving

#include "troupe/cli/talk/open_questions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char next : word)
    text += next == '\'' ? std::string("'\\''") : std::string(1, next);
  return text + "'";
}

std::string question_of(const open_call& open) {
  const auto& args = open.args.data();
  if (open.tool == request_input_name && args.is_object()
      && args.contains("message") && args.at("message").is_string())
    return args.at("message").get<std::string>();
  return open.question ? fmt::format("may this be called? {}({})",
                                     open.tool,
                                     troupe::to_text(open.args.data()))
                       : fmt::format("a call of '{}'", open.tool);
}

result<content> make_answers(runtime& owners,
                             const session_key& session,
                             const std::vector<given_answer>& given) {
  const auto open = owners.sessions().open_calls(session).get();
  if (!open)
    return open.error();
  content message("user", {});
  for (const auto& each : given) {
    const auto found = std::ranges::find(*open, each.call_id, &open_call::id);
    // The session refuses an answer to a call that does not wait, with the
    // reason.
    const auto name = found == open->end() ? std::string()
                      : found->question    ? std::string(confirmation_name)
                                           : found->tool;
    message.parts.emplace_back(
      function_response{each.call_id, name, each.response});
  }
  return message;
}

} // namespace troupe::cli

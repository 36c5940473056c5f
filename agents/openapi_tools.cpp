#include "troupe/agents/openapi_tools.hpp"

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/files/yaml_tree.hpp"
#include "troupe/agents/outside/http_exchange.hpp"
#include "troupe/agents/outside/openapi_operation.hpp"
#include "troupe/agents/outside/openapi_request.hpp"
#include "troupe/models/formats/key_rule.hpp"

#include <fmt/format.h>
#include <utf8.h>

#include <iterator>
#include <utility>

namespace troupe {

namespace {

constexpr yaml_rules document_rules{.depth_max = 256,
                                    .nodes_max = std::size_t{1} << 20U,
                                    .bytes_max = std::size_t{32} << 20U};
constexpr std::size_t shown_bytes_max = std::size_t{2} << 10U;
// Quotes around a text.
constexpr std::size_t quotes_max = 16;

// The parts of each call of an operation.
struct openapi_plan {
  openapi_operation operation;
  http_headers headers;
  http_timeouts timeouts;
  std::size_t answer_bytes_max = 0;
  std::shared_ptr<http_client> client;
};

using openapi_plan_ptr = std::shared_ptr<const openapi_plan>;

std::string as_utf8(std::string_view text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return valid;
}

// Address without the query, which may hold a secret.
std::string shown_request(const openapi_operation& operation) {
  return fmt::format(
    "{} {}{}", operation.method_name, operation.server, operation.path);
}

error status_failure(const openapi_operation& operation,
                     const http_answer& answer) {
  auto why = fmt::format(
    "{} was answered with status {}", shown_request(operation), answer.status);
  if (answer.status < 400)
    why += "; redirects are not followed";
  auto said = as_utf8(answer.body.substr(0, shown_bytes_max));
  while (!said.empty()
         && std::string_view(" \r\n\t").find(said.back())
              != std::string_view::npos)
    said.pop_back();
  if (!said.empty())
    why += fmt::format(": {}", said);
  return {errc::tool_failed, std::move(why)};
}

json answer_of(const openapi_plan& plan, http_answer answer) {
  if (answer.body.empty())
    return json{{"status", answer.status}};
  if (answer.media == "application/json" || answer.media.ends_with("+json")
      || answer.media.empty())
    if (auto read = parse_json(answer.body))
      return std::move(*read);
  if (!is_utf8(answer.body) && !answer.media.starts_with("text/"))
    throw error(errc::tool_failed,
                fmt::format("the answer of {} is no text but {}",
                            shown_request(plan.operation),
                            answer.media.empty() ? "bytes" : answer.media));
  json text = as_utf8(answer.body);
  return text;
}

task<json>
call_operation(openapi_plan_ptr plan, const json& args, tool_context& context) {
  auto request = make_request(plan->operation, args);
  if (!request)
    throw request.error();
  request->headers.insert(
    request->headers.end(), plan->headers.begin(), plan->headers.end());
  request->timeouts = plan->timeouts;
  // A proxy could read secrets.
  request->direct = (!plan->operation.secrets.empty() || !plan->headers.empty())
                    && is_plain_http(plan->operation.server);
  // A request that was sent may have had an effect.
  request->repeats = request->method == http_method::get;
  auto sent = exchange(
    plan->client, std::move(*request), plan->answer_bytes_max, context.stop());
  auto answer = co_await sent;
  if (!answer)
    throw error(answer.error().code(),
                fmt::format("{}: {}",
                            shown_request(plan->operation),
                            answer.error().message()));
  if (answer->status >= 300)
    throw status_failure(plan->operation, *answer);
  auto said = answer_of(*plan, std::move(*answer));
  if (to_text(said).size() > plan->answer_bytes_max + quotes_max)
    throw error(errc::too_large,
                fmt::format("the answer has more than {} bytes as JSON",
                            plan->answer_bytes_max));
  co_return said;
}

} // namespace

result<json> read_openapi(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    auto read = parse_json(text);
    if (!read)
      return error(errc::invalid_argument,
                   "the OpenAPI document: " + read.error().message());
    return read;
  }
  const auto root = parse_yaml(text, document_rules);
  if (!root)
    return error(errc::invalid_argument,
                 fmt::format("the OpenAPI document: line {}: {}",
                             root.error().line,
                             root.error().why));
  return *root ? to_json(**root) : json();
}

std::vector<tool> openapi_tools(const openapi_source& source) {
  if (source.answer_bytes_max == 0)
    refuse_document("cannot be used with an answer_bytes_max of 0");
  std::vector<tool> made;
  for (auto& operation : read_operations(source)) {
    tool_options options;
    options.name = operation.name;
    options.description = operation.description;
    options.parameters = arguments_schema(operation);
    options.timeout = source.timeout;
    options.on_failure = source.on_failure;
    options.require_confirmation = source.require_confirmation;
    auto plan = std::make_shared<openapi_plan>();
    plan->operation = std::move(operation);
    plan->headers = {source.headers.begin(), source.headers.end()};
    if (source.timeout)
      plan->timeouts.total = *source.timeout;
    plan->answer_bytes_max = source.answer_bytes_max;
    plan->client = shared_http_client();
    options.run = [plan = openapi_plan_ptr(std::move(plan))](
                    const json& args, tool_context& context) {
      return call_operation(plan, args, context);
    };
    made.emplace_back(std::move(options));
  }
  return made;
}

} // namespace troupe

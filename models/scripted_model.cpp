#include "troupe/models/scripted_model.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

constexpr double latency_max = 24.0 * 3600 * 1000;

error refuse(const std::string& where, std::string_view why) {
  return {errc::invalid_argument, fmt::format("{}: {}", where, why)};
}

result<function_call> call_from_json(const json& data,
                                     const std::string& where) {
  if (!data.is_object() || !data.contains("name") || !data["name"].is_string())
    return refuse(where, "a function call needs a 'name'");
  for (const auto& [field, unused] : data.items())
    if (field != "name" && field != "args" && field != "id")
      return refuse(where, fmt::format("a function call has no '{}'", field));
  const auto args = data.value("args", json::object());
  if (!args.is_object())
    return refuse(where, "'args' must be an object");
  if (data.contains("id") && !data["id"].is_string())
    return refuse(where, "'id' must be a string");
  return function_call{
    data.value("id", std::string()), data["name"].get<std::string>(), args};
}

result<scripted_reply> reply_from_json(const json& data,
                                       const std::string& where) {
  scripted_reply reply;
  if (data.is_string()) {
    reply.text = data.get<std::string>();
    return reply;
  }
  if (!data.is_object())
    return refuse(where, "a reply is a string or an object");
  for (const auto& [field, held] : data.items()) {
    if (field == "text" && held.is_string()) {
      reply.text = held.get<std::string>();
    } else if (field == "content" && held.is_object()) {
      auto said = content_from_json(held);
      if (!said)
        return refuse(where, said.error().message());
      reply.content = std::move(*said);
    } else if (field == "extra" && held.is_object()) {
      reply.extra = held;
    } else if (field == "error" && held.is_string()) {
      reply.failure = held.get<std::string>();
    } else if (field == "latency_ms" && held.is_number()
               && held.get<double>() >= 0
               && held.get<double>() <= latency_max) {
      reply.latency
        = std::chrono::milliseconds(static_cast<long>(held.get<double>()));
    } else if (field == "function_calls" && held.is_array()) {
      for (const auto& shown : held) {
        auto call = call_from_json(shown, where);
        if (!call)
          return call.error();
        reply.function_calls.push_back(std::move(*call));
      }
    } else {
      return refuse(where,
                    fmt::format("'{}' is unknown or of the wrong type; a reply "
                                "has text, function_calls, content, extra, "
                                "error, latency_ms",
                                field));
    }
  }
  if (!data.contains("text") && !data.contains("function_calls")
      && !data.contains("content") && !data.contains("error"))
    return refuse(where,
                  "a reply needs text, function_calls, content or error");
  return reply;
}

// The system instruction without the block that names the agent.
std::string without_identity(const model_request& request) {
  auto text = request.system_instruction;
  const auto at = request.identity.empty() ? std::string::npos
                                           : text.find(request.identity);
  if (at == std::string::npos)
    return text;
  constexpr std::string_view gap = "\n\n";
  auto first = at;
  auto end = at + request.identity.size();
  if (std::string_view(text).substr(0, at).ends_with(gap))
    first -= gap.size();
  else if (std::string_view(text).substr(end).starts_with(gap))
    end += gap.size();
  text.erase(first, end - first);
  return text;
}

// Replaces in one pass, so that inserted text is not expanded again.
std::string expand(const std::string& text, const model_request& request) {
  if (text.find("${") == std::string::npos)
    return text;
  std::string input;
  for (auto next = request.contents.rbegin(); next != request.contents.rend();
       ++next) {
    input = (*next)->role == "user" ? (*next)->text() : "";
    if (!input.empty())
      break;
  }
  const auto instruction = without_identity(request);
  std::string expanded;
  std::string_view rest = text;
  const auto replace = [&](std::string_view name, const std::string& with) {
    if (!rest.starts_with(name))
      return false;
    expanded += with;
    rest.remove_prefix(name.size());
    return true;
  };
  while (!rest.empty()) {
    if (replace("${instruction}", instruction) || replace("${input}", input))
      continue;
    expanded += rest.front();
    rest.remove_prefix(1);
  }
  return expanded;
}

result<model_response> answer(const scripted_reply& reply,
                              const model_request& request) {
  if (reply.failure)
    return error(errc::model_failed, *reply.failure);
  if (reply.content) {
    model_response answered(*reply.content);
    answered.extra = reply.extra;
    return answered;
  }
  std::vector<part> parts;
  if (!reply.text.empty() || reply.function_calls.empty())
    parts.emplace_back(expand(reply.text, request));
  for (const auto& call : reply.function_calls)
    parts.emplace_back(call);
  return model_response(content("model", std::move(parts)));
}

} // namespace

result<script> script_from_json(const json& data) {
  if (!data.is_object())
    return error(errc::invalid_argument,
                 "a script is an object from agent name to a list of replies");
  script replies;
  for (const auto& [agent, list] : data.items()) {
    if (!list.is_array() || list.empty())
      return refuse(fmt::format("agent '{}'", agent),
                    "needs a list of at least one reply");
    for (const auto& shown : list) {
      auto& known = replies[agent];
      auto reply = reply_from_json(
        shown, fmt::format("agent '{}', reply {}", agent, known.size() + 1));
      if (!reply)
        return reply.error();
      known.push_back(std::move(*reply));
    }
  }
  return replies;
}

scripted_model::scripted_model(script replies, std::string name)
  : name_(std::move(name)) {
  for (auto& [agent, list] : replies)
    agents_[agent].replies = std::move(list);
}

void scripted_model::generate(model_request request, model_reply reply) {
  scripted_reply chosen;
  {
    const std::lock_guard guard(mutex_);
    auto found = agents_.find(request.agent);
    if (found == agents_.end())
      found = agents_.find("*");
    if (found == agents_.end() || found->second.replies.empty())
      chosen.failure = fmt::format("the script has no replies for agent '{}'",
                                   request.agent);
    else {
      auto& [replies, next] = found->second;
      chosen = replies[next];
      next = std::min(next + 1, replies.size() - 1);
    }
  }
  auto answered = answer(chosen, request);
  if (chosen.latency.count() == 0 || !request.environment) {
    reply(std::move(answered));
    return;
  }
  request.environment->call_after(
    chosen.latency, [reply = std::move(reply), answered = std::move(answered)] {
      reply(answered);
    });
}

} // namespace troupe

#include "troupe/models/wire/server_blocks.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>

namespace troupe {

namespace {

json field_in(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

std::string in_capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char next) {
    return static_cast<char>(std::toupper(next));
  });
  return name;
}

// Names of a block's tool: of a result, that of its type.
std::string tool_type_of(const json& block) {
  const auto name = text_in(block, "name");
  if (!name.empty())
    return in_capitals(name);
  auto type = text_in(block, "type");
  return in_capitals(type.substr(0, type.rfind("_tool_result")));
}

// The part of a page that people can read.
json page_of(const json& result) {
  auto page = json::object();
  for (const auto* name : {"title", "url"})
    if (auto text = text_in(result, name); !text.empty())
      page[name] = std::move(text);
  return page;
}

json response_of(const json& held) {
  auto response = json::object();
  if (held.is_array()) {
    auto& results = response["results"] = json::array();
    for (const auto& each : held)
      results.push_back(page_of(each));
    return response;
  }
  if (auto code = text_in(held, "error_code"); !code.empty()) {
    response["error"] = std::move(code);
    return response;
  }
  if (held.is_object())
    for (const auto& [name, field] : held.items())
      if (name != "content" && name != "type" && !name.starts_with("encrypted"))
        response[name] = field;
  return response;
}

json output_of(const json& block) {
  const auto& held = block["content"];
  const bool is_fine
    = text_in(held, "error_code").empty() && field_in(held, "return_code") == 0;
  auto output = text_in(held, "stdout");
  if (!is_fine)
    output = text_in(held, "error_code") + text_in(held, "stderr") + output;
  return {{"outcome", is_fine ? "OUTCOME_OK" : "OUTCOME_FAILED"},
          {"output", std::move(output)},
          {"id", text_in(block, "tool_use_id")}};
}

json body_of(const json& block) {
  const auto type = text_in(block, "type");
  const auto input = field_in(block, "input");
  auto made = json::object();
  if (is_server_use(type)) {
    const auto id = text_in(block, "id");
    if (text_in(block, "name") == "code_execution"
        && field_in(input, "code").is_string())
      made["executableCode"]
        = {{"language", "PYTHON"}, {"code", input["code"]}, {"id", id}};
    else
      made["toolCall"] = {{"id", id},
                          {"toolType", tool_type_of(block)},
                          {"args", input.is_object() ? input : json::object()}};
  } else if (type == "code_execution_tool_result") {
    made["codeExecutionResult"] = output_of(block);
  } else {
    made["toolResponse"] = {{"id", text_in(block, "tool_use_id")},
                            {"toolType", tool_type_of(block)},
                            {"response", response_of(block["content"])}};
  }
  return made;
}

std::string pair_id(const json& block) {
  return text_in(block,
                 is_server_use(text_in(block, "type")) ? "id" : "tool_use_id");
}

// Returns true if only results of tools that the caller runs are in it.
bool only_answers(const json& message) {
  return std::ranges::all_of(message["content"], [](const json& block) {
    return text_in(block, "type") == "tool_result";
  });
}

} // namespace

bool is_server_use(std::string_view type) {
  return type == "server_tool_use" || type == "mcp_tool_use";
}

bool is_server_result(std::string_view type) {
  return type.ends_with("_tool_result");
}

part part_of_block(json block) {
  if (!block.contains("content"))
    block["content"] = json();
  auto body = body_of(block);
  if (block["content"].is_null())
    block.erase("content");
  part made;
  made.body = value(std::move(body));
  set_mark(made, anthropic_marks, block_mark, std::move(block));
  return made;
}

std::optional<json> block_of_part(const part& said) {
  auto block = mark_of(said, anthropic_marks, block_mark);
  const auto type = text_in(block, "type");
  if (!is_server_use(type) && !is_server_result(type))
    return std::nullopt;
  return block;
}

void remove_unpaired(json& messages, bool is_open) {
  std::set<std::string> used;
  std::set<std::string> answered;
  for (const auto& message : messages)
    for (const auto& block : message["content"]) {
      const auto type = text_in(block, "type");
      if (is_server_use(type))
        used.insert(pair_id(block));
      else if (is_server_result(type) && used.contains(pair_id(block)))
        answered.insert(pair_id(block));
    }
  // The last message of the model, if its turn goes on.
  auto open = messages.size();
  if (is_open && !messages.empty())
    open = messages.size() - 1;
  else if (messages.size() > 1 && only_answers(messages.back()))
    open = messages.size() - 2;
  for (std::size_t index = 0; index < messages.size(); ++index) {
    auto& blocks = messages[index]["content"].get_ref<json::array_t&>();
    std::erase_if(blocks, [&](const json& block) {
      const auto type = text_in(block, "type");
      return (is_server_use(type) && index != open
              && !answered.contains(pair_id(block)))
             || (is_server_result(type) && !answered.contains(pair_id(block)));
    });
  }
  std::erase_if(messages.get_ref<json::array_t&>(),
                [](const json& message) { return message["content"].empty(); });
}

} // namespace troupe

#include "troupe/models/wire/server_items.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view code_item = "code_interpreter_call";

const json& list_in(const json& object, const char* name) {
  static const json none = json::array();
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_array() ? *found : none;
}

part made_part(const char* name, json held) {
  auto body = json::object();
  body[name] = std::move(held);
  part made;
  made.body = value(std::move(body));
  return made;
}

bool has_failed(const json& item) {
  const auto status = text_in(item, "status");
  return status == "failed" || status == "incomplete";
}

std::vector<part> parts_of_code(const json& item, const std::string& id) {
  std::string output;
  for (const auto& each : list_in(item, "outputs"))
    output += text_in(each, "logs");
  return {
    made_part(
      "executableCode",
      {{"language", "PYTHON"}, {"code", text_in(item, "code")}, {"id", id}}),
    made_part("codeExecutionResult",
              {{"outcome", has_failed(item) ? "OUTCOME_FAILED" : "OUTCOME_OK"},
               {"output", std::move(output)},
               {"id", id}})};
}

std::vector<part> parts_of_search(const json& item, const std::string& id) {
  constexpr const char* tool = "WEB_SEARCH";
  auto args = item.value("action", json());
  if (!args.is_object())
    args = json::object();
  auto results = json::array();
  for (const auto& each : list_in(args, "sources"))
    if (auto url = text_in(each, "url"); !url.empty())
      results.push_back({{"url", std::move(url)}});
  args.erase("sources");
  std::vector<part> made;
  made.push_back(made_part(
    "toolCall", {{"id", id}, {"toolType", tool}, {"args", std::move(args)}}));
  auto response = json::object();
  if (has_failed(item))
    response["error"] = text_in(item, "status");
  if (!results.empty())
    response["results"] = std::move(results);
  if (!response.empty())
    made.push_back(made_part(
      "toolResponse",
      {{"id", id}, {"toolType", tool}, {"response", std::move(response)}}));
  return made;
}

// The texts of a list, a blank line between them.
void add_texts(const json& list, std::string& words) {
  for (const auto& each : list)
    if (const auto text = text_in(each, "text"); !text.empty())
      words += (words.empty() ? "" : "\n\n") + text;
}

} // namespace

bool is_server_item(std::string_view type) {
  return type == "web_search_call" || type == code_item;
}

std::vector<part> parts_of_item(json item) {
  const auto id = text_in(item, "id");
  auto made = text_in(item, "type") == code_item ? parts_of_code(item, id)
                                                 : parts_of_search(item, id);
  for (std::size_t index = 1; index < made.size(); ++index)
    set_mark(made[index], openai_marks, item_id_mark, id);
  set_mark(made.front(), openai_marks, item_mark, std::move(item));
  return made;
}

part part_of_reasoning(json item) {
  part made;
  std::string words;
  add_texts(list_in(item, "summary"), words);
  add_texts(list_in(item, "content"), words);
  if (words.empty())
    made.body = value(json::object());
  else
    made.body = std::move(words);
  made.thought = true;
  // The vendor refuses the status of a thought, and null.
  item.erase("status");
  for (const auto* name : {"content", "encrypted_content"})
    if (item.contains(name) && item[name].is_null())
      item.erase(name);
  set_mark(made, openai_marks, item_mark, std::move(item));
  return made;
}

json item_of_part(const part& said) {
  auto item = mark_of(said, openai_marks, item_mark);
  return item.is_object() ? item : json();
}

bool is_of_item(const part& said) {
  return !item_of_part(said).is_null()
         || mark_of(said, openai_marks, item_id_mark).is_string();
}

} // namespace troupe

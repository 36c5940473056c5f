#include "troupe/mcp/client/offered_tool.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/mcp/client/message.hpp"

namespace troupe::mcp {

namespace {

bool is_true(const json& object, const char* field, bool otherwise) {
  const auto found = object.find(field);
  return found != object.end() && found->is_boolean() ? found->get<bool>()
                                                      : otherwise;
}

} // namespace

std::string add_tools(const json& page, std::vector<offered_tool>& tools) {
  if (!page.is_object())
    return {};
  const auto listed = page.find("tools");
  if (listed != page.end() && listed->is_array())
    for (const auto& each : *listed) {
      offered_tool added;
      added.name = text_in(each, "name");
      if (added.name.empty())
        continue;
      added.description = text_in(each, "description");
      if (added.description.empty())
        added.description = text_in(each, "title");
      added.schema = each.value("inputSchema", json::object());
      const auto hints = each.value("annotations", json::object());
      if (hints.is_object())
        added.is_destructive = !is_true(hints, "readOnlyHint", false)
                               && is_true(hints, "destructiveHint", true);
      tools.push_back(std::move(added));
    }
  return text_in(page, "nextCursor");
}

} // namespace troupe::mcp

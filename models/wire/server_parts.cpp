#include "troupe/models/wire/server_parts.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace troupe {

namespace {

using work_kind = server_part::kind;

} // namespace

std::optional<server_part> server_part_of(const part& said) {
  struct row {
    const char* name;
    work_kind is;
  };

  constexpr std::array rows{row{"executableCode", work_kind::code},
                            row{"codeExecutionResult", work_kind::output},
                            row{"toolCall", work_kind::call},
                            row{"toolResponse", work_kind::response}};
  const auto* body = std::get_if<value>(&said.body);
  if (body == nullptr || !body->data().is_object())
    return std::nullopt;
  for (const auto& [name, held] :
       body->data().get_ref<const json::object_t&>()) {
    const auto plain = to_camel_case(name);
    for (const auto& each : rows)
      if (plain == each.name)
        return server_part{each.is, each.name, &held};
  }
  return std::nullopt;
}

std::string text_of_code(const server_part& work) {
  if (work.is == work_kind::code)
    return fmt::format("Code:```python\n{}\n```", text_in(*work.held, "code"));
  if (work.is == work_kind::output)
    return fmt::format("Execution Result:```code_output\n{}\n```",
                       text_in(*work.held, "output"));
  return {};
}

void add_text_of_code(const server_part& work, std::string& words) {
  const auto text = text_of_code(work);
  if (!text.empty())
    words += (words.empty() || words.ends_with('\n') ? "" : "\n") + text + '\n';
}

} // namespace troupe

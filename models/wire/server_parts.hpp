// Parts that tell the work of a vendor's own tools: code that the vendor has
// run, and calls of other tools that ran on its servers. Internal.
//
// Every vendor gets its own parts back. Another vendor gets code and output as
// text, and nothing of the other calls: the answer that they led to is text.

#pragma once

#include "troupe/core/content.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// The work of a vendor's tool in a part.
struct server_part {
  enum class kind : std::uint8_t {
    code,     ///< `executableCode`
    output,   ///< `codeExecutionResult`
    call,     ///< `toolCall`
    response, ///< `toolResponse`
  };

  kind is;
  /// The field in camelCase, and its object. Never null; part of the content.
  const char* name;
  const json* held;
};

/// Returns the work that a part tells; nothing for a part of another kind.
std::optional<server_part> server_part_of(const part& said);

/// Returns code or its output as text for a vendor that has not run it; empty
/// for a part of another kind. The form is that of ADK's AnthropicLlm.
std::string text_of_code(const server_part& work);

/// Adds that text to words of the model, on lines of its own.
void add_text_of_code(const server_part& work, std::string& words);

} // namespace troupe

// Opens a model of a vendor over HTTP: its URL, its key and its wire format.
// Internal.

#pragma once

#include "troupe/models/open_model.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class vendor : std::uint8_t {
  openai,
  gemini,
  anthropic,
  openai_responses, ///< The other interface of OpenAI.
};

/// Opens the model that the vendor calls `model`, which is not empty. Fails
/// like `open_model`.
result<model_ptr> open_vendor_model(const model_source& source,
                                    vendor which,
                                    const std::string& model,
                                    const open_model_options& options);

/// The error of a source that cannot be opened.
inline error refused_model(const model_source& source, std::string_view why) {
  return {errc::invalid_argument,
          fmt::format("model '{}': {}", source.name, why)};
}

} // namespace troupe

#include "troupe/cli/talk/blocked_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace troupe::cli {

namespace {

// Codes of filters: finish reasons and block reasons of Gemini, onto which
// other formats map theirs.
constexpr std::array<std::string_view, 13> filters
  = {"SAFETY",
     "RECITATION",
     "LANGUAGE",
     "BLOCKLIST",
     "PROHIBITED_CONTENT",
     "SPII",
     "IMAGE_SAFETY",
     "IMAGE_PROHIBITED_CONTENT",
     "IMAGE_RECITATION",
     "ESCALATION",
     "MODEL_ARMOR",
     "JAILBREAK",
     "BLOCKED_REASON_UNSPECIFIED"};

// An agent may have nothing to say after its tools. A failed lane, whose code
// is in lower case, is tolerated by the agent around it.
bool is_of_model(std::string_view code) {
  return !code.empty()
         && std::isupper(static_cast<unsigned char>(code.front())) != 0
         && code != "MODEL_RETURNED_NO_CONTENT";
}

std::string reason_of(const event& said, const std::string& code) {
  const bool is_filter = std::ranges::find(filters, code) != filters.end();
  const auto why = said.field("errorMessage");
  return fmt::format("the model's answer to agent '{}' {}: {}{}{}",
                     said.author,
                     is_filter ? "was blocked" : "failed",
                     code,
                     why.empty() ? "" : ": ",
                     why);
}

} // namespace

void blocked_answers::take(const event& said) {
  if (said.partial)
    return;
  const auto code = said.field("errorCode");
  auto agent = std::pair(said.author, said.branch);
  if (is_of_model(code))
    reasons_[std::move(agent)] = reason_of(said, code);
  else if (code.empty() && !said.content.parts.empty())
    reasons_.erase(agent);
}

result<void> blocked_answers::check() const {
  if (reasons_.empty())
    return {};
  std::vector<std::string_view> all;
  all.reserve(reasons_.size());
  for (const auto& [unused, reason] : reasons_)
    all.emplace_back(reason);
  return error(errc::model_failed, fmt::format("{}", fmt::join(all, "; ")));
}

} // namespace troupe::cli

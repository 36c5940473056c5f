// Contents as short texts, for the tests of turns.

#pragma once

#include "troupe/core/content.hpp"

#include <string>
#include <utility>
#include <variant>

namespace troupe::testing {

inline part thought(std::string words) {
  part made(std::move(words));
  made.thought = true;
  return made;
}

/// Shows a content as `user: hi`, `model: f(c1) g(c2)`, `user:
/// c1={"result":1}`, in one line.
inline std::string shown(const content& said) {
  auto line = said.role + ':';
  for (const auto& element : said.parts) {
    line += ' ';
    if (const auto* words = element.text())
      line += (element.thought ? "(thinks) " : "") + *words;
    else if (const auto* call = element.call())
      line += call->name + '(' + call->id + ')';
    else if (const auto* answer = element.response())
      line += answer->id + '=' + to_text(answer->response.data());
    else
      line += to_text(std::get<value>(element.body).data());
  }
  return line;
}

} // namespace troupe::testing

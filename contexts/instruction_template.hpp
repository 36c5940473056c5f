// Instructions with placeholders: `{topic}`, `{user:name}`,
// `{notes?}`, `{artifact.report.txt}`.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/contexts/readonly_context.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Rules for the braces around a placeholder.
enum class template_braces : std::uint8_t {
  /// One pair of braces: `{topic}`. `{{anything}}` stays as it is.
  single,
  /// The rules of ADK's code, for texts that were written for it. A placeholder
  /// is any number of `{`, a name, and any number of `}`, which need not be as
  /// many: `{{topic}}`, `{topic}}`. All of these braces are replaced. A
  /// placeholder behind `$` or `\` stays as it is, and so does a name with
  /// dots.
  any,
};

/// Replaces the placeholders of `instruction` by values of the context's state.
///
/// A placeholder is a name in braces, by default in single ones (`braces`);
/// white space around the name is allowed. A name is `[A-Za-z_][A-Za-z0-9_]*`
/// after at most one of the prefixes `app:`, `user:` and `temp:`; bytes from
/// 0x80 count as letters. Strings are inserted unchanged, other values as
/// compact JSON, null as no text. Inserted text is not searched for
/// placeholders. With `?` after the name, a missing key is replaced by no text.
/// A name with dots is replaced only if a key of exactly that name exists. A
/// name that starts with `artifact.` is replaced by the text of the newest
/// version of the artifact named behind the dot. All other text stays
/// unchanged, also `{{anything}}` with `template_braces::single`, so JSON is
/// preserved.
///
/// Fails with `errc::template_error`, naming key and agent, if a key or an
/// artifact is missing, if an artifact is not text, or if the runtime has no
/// artifact store. Fails also with the errors of `readonly_state::find` and of
/// the artifact store. `get` on the thread of a run fails with
/// `errc::would_deadlock` if the template names an artifact; use `co_await`
/// there. `context` must live until the answer. The rules follow ADK's
/// instruction templates; docs/architecture.md lists the differences.
pending<std::string> inject_session_state(std::string instruction,
                                          const readonly_context& context,
                                          template_braces braces
                                          = template_braces::single);

/// Replaces the placeholders by values of `state`, at once. There are no
/// artifacts, so a placeholder of one fails, also with `?`. `agent_name` is
/// used in errors.
result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_state& state,
                                         std::string_view agent_name,
                                         template_braces braces
                                         = template_braces::single);

} // namespace troupe

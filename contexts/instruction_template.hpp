// Instructions with placeholders: `{topic}`, `{user:name}`, `{notes?}`,
// `{artifact.report.txt}`.

#pragma once

#include "troupe/contexts/readonly_context.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Replaces the placeholders of `instruction` with values of the context's
/// state.
///
/// A placeholder is a name in single braces, white space around it allowed:
/// `[A-Za-z_][A-Za-z0-9_]*`, where bytes from 0x80 up count as letters, after
/// at most one `app:`, `user:` or `temp:`. Strings go in as they are, other
/// values as compact JSON, null as nothing; what went in is not scanned again.
/// `?` behind the name makes a missing key empty. A name with dots is replaced
/// when exactly that key exists. Behind `artifact.` stands the name of an
/// artifact, whose newest version goes in as text. Everything else stands as it
/// is, `{{anything}}` too, so JSON survives.
///
/// Throws `errc::template_error`, naming key and agent, if a key or an artifact
/// is missing, if an artifact is no text, and if the runtime keeps none. Rules
/// follow ADK's instruction templates; docs/architecture.md lists where they
/// differ.
task<std::string> inject_session_state_async(std::string instruction,
                                             const readonly_context& context);

/// The same for functions that cannot wait. On the thread of a run an artifact
/// is `errc::would_deadlock`.
result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_context& context);

/// The same with the two things that it needs; there are no artifacts.
result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_state& state,
                                         std::string_view agent_name);

} // namespace troupe

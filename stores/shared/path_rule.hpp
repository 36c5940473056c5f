// The rule for paths that may name a store on disk.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns the flaw of a path as the end of a sentence (`"has a '?'"`), empty
/// if there is none. Flaws are an empty path, a `..` component, a `?`, a `#`
/// and a NUL. Flaws that are percent-encoded count too, however often they are
/// encoded: troupe never decodes a path, but another program might.
std::string_view path_flaw(std::string path);

} // namespace troupe

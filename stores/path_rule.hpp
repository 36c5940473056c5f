// Which paths may name a store on disk.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// What is wrong with a path, to follow it in a sentence (`"has a '?'"`), or
/// nothing: it is empty, or has a `..` component, a `?`, a `#` or a NUL. Also
/// what a percent-encoding hides, however often it was encoded: the path is
/// never decoded, but the next program to see it may.
std::string_view path_flaw(std::string path);

} // namespace troupe

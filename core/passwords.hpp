// Passwords within text that people, logs and reports get to see.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` with `***` in place of each password of a database URL, an HTTP URL
/// or a keyword string such as `host=db password='…'`. What does not read as a
/// URL hides more rather than less: a password may contain `@`, `/`, `:`, `?`
/// and quotes, and the host may be missing. `passfile=` is a path and stays.
std::string without_passwords(std::string_view text);

} // namespace troupe

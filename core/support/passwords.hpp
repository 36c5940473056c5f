// Hides passwords in text for people, logs and reports.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns `text` with `***` in place of each password of a database URL, an
/// HTTP URL or a keyword string such as `host=db password='…'`. Text that is
/// not a proper URL hides more rather than less: a password may contain `@`,
/// `/`, `:`, `?`, quotes and a line break, and the host may be missing. A
/// percent-encoded separator is part of the password. `passfile=` is a path and
/// stays.
std::string without_passwords(std::string_view text);

} // namespace troupe

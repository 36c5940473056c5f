// The environment variables that a child process inherits without being named.

#pragma once

#include <array>

namespace troupe::processes {

/// A program needs them to find its files and to write text. None of them
/// usually holds a secret.
inline constexpr std::array<const char*, 11> inherited_variables = {"PATH",
                                                                    "HOME",
                                                                    "USER",
                                                                    "LOGNAME",
                                                                    "SHELL",
                                                                    "TERM",
                                                                    "TMPDIR",
                                                                    "TZ",
                                                                    "LANG",
                                                                    "LC_ALL",
                                                                    "LC_CTYPE"};

} // namespace troupe::processes

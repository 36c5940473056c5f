// Reads an answer of HTTP from the bytes that have come so far.
//
// These functions know the two forms that the measured servers send: a body
// with `content-length`, and a body in chunks.

#pragma once

#include <string_view>

namespace bench {

/// Returns true if the head and the first byte of the body have come.
bool has_body(std::string_view answer);

/// Returns true if the whole answer has come. No bytes may follow it.
bool is_whole(std::string_view answer);

/// Returns the status; 0 while the first line has not come.
int status_of(std::string_view answer);

} // namespace bench

// Models over HTTP: many at once, how soon a word is there, how soon a request
// is gone, and how fast answers are read.

#pragma once

#include "answering_process.hpp"

#include <cstddef>

namespace bench {

/// Thousands of streamed requests at once, beside libcurl without troupe.
void ask_many(const answering_process& server, std::size_t rounds);

/// From the server's send to the model's caller, and to the consumer of a run.
void time_first_words(const answering_process& server);

/// From `request_stop` to the end of the request.
void time_cancels(const answering_process& server);

/// Bytes per second of each format, beside a plain JSON parser.
void read_streams(std::size_t rounds);

} // namespace bench

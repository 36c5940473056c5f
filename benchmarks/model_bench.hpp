// Models over HTTP: many at once, latency of the first word, latency of a
// cancellation, and speed of reading answers.

#pragma once

#include "answering_process.hpp"

#include <cstddef>

namespace bench {

/// Thousands of concurrent streamed requests, compared with plain libcurl.
void ask_many(const answering_process& server, std::size_t rounds);

/// Time from the server's send to the model's caller and to the consumer of a
/// run.
void time_first_words(const answering_process& server);

/// Time from `request_stop` to the end of the request.
void time_cancels(const answering_process& server);

/// Bytes per second for each format, compared with a plain JSON parser.
void read_streams(std::size_t rounds);

} // namespace bench

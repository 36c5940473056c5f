// Compaction: at the end of a run, a summary takes the place of older events
// for the models. The names and the two rules are those of ADK's
// `EventsCompactionConfig`.
//
// A summary is an appended event (agents/summary.hpp) that names the events
// that it covers, by their numbers. Nothing is removed. A summary takes in the
// former one, so the newest summary and the events behind it are the whole
// conversation.

#pragma once

#include "troupe/contexts/async_function.hpp"
#include "troupe/core/event.hpp"
#include "troupe/models/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The material of one summary.
struct summary_request {
  /// Texts of the summaries that the new one replaces, oldest first.
  std::vector<content> former;
  /// The events to sum up, oldest first. Events of the overlap are among them,
  /// although a former summary covers them, too.
  std::vector<event_ptr> events;
};

/// Returns the material as lines of text, such as `ann: hello`. Thoughts, files
/// and questions for confirmations are left out. Long arguments and results of
/// tools are cut after 2,000 bytes.
std::string to_text(const summary_request& wanted);

namespace detail {

template <>
struct wanted<std::optional<content>(const summary_request&)> {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "a summarizer is [](const troupe::summary_request& wanted) "
                  "-> std::optional<troupe::content> { ... }, or a coroutine");
  }
};

} // namespace detail

/// Options of the summaries that runs make. At least one of
/// `compaction_interval` and `token_threshold` is set. With both, the threshold
/// is tried first.
struct compaction_options {
  /// Sliding window: after this number of new invocations, a summary takes in
  /// all events behind the former one. At least 1.
  std::optional<std::uint64_t> compaction_interval = {};
  /// Number of invocations before the new ones whose events are summed up once
  /// more, so that a summary is not made from the words of the former one
  /// alone.
  std::uint64_t overlap_size = 0;
  /// A summary is made if the newest prompt since the former one had at least
  /// this many tokens (`usageMetadata.promptTokenCount`; without it, a fourth
  /// of the characters). At least 1.
  std::optional<std::uint64_t> token_threshold = {};
  /// Number of newest events that a summary by `token_threshold` does not
  /// cover.
  std::uint64_t event_retention_size = 0;
  /// Bytes of text (`to_text`) that one summary is made from, at least 1. Of
  /// longer material the oldest part is summed up first, and the next runs go
  /// on from there. The text is longer only if no shorter part can be summed
  /// up alone.
  std::uint64_t request_bytes_max = 1'048'576;
  /// Model that writes the summaries. Null: the model of the root agent of the
  /// run.
  model_ptr model = {};
  /// Instruction of the model. It gets the conversation as one message.
  std::string prompt
    = "The message is a conversation between a user and AI agents. It may "
      "start with a summary of earlier parts. Write a summary that replaces "
      "it. Name the language of the user first. Keep what the user has asked "
      "for, decisions, facts, names of tools that were called, and open "
      "questions and tasks. Be short.";
  /// Writes the summaries in place of the model. No value means no summary; an
  /// exception is a warning. Runs on the run's lane and must not block; a
  /// coroutine can wait there. May be called from several threads at the same
  /// time.
  async_function<std::optional<content>(const summary_request&)> summarizer
    = {};
};

/// Fails with `errc::invalid_argument` if neither rule is set, or a number is
/// 0 that must not be.
result<void> check_compaction(const compaction_options& chosen);

} // namespace troupe

#include "troupe/cli/options/compaction_option.hpp"

#include "troupe/cli/options/number_check.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

void compaction_option::add_to(CLI::App& command) {
  auto* const by_runs
    = command
        .add_option("--compaction-interval",
                    interval,
                    "After so many invocations, a summary by the root agent's "
                    "model replaces older events for the models; default: none")
        ->check(number_from(1))
        ->type_name("N");
  command
    .add_option("--compaction-overlap",
                overlap,
                "Invocations before those that are summed up once more")
    ->check(number_from(0))
    ->type_name("N")
    ->needs(by_runs)
    ->capture_default_str();
  auto* const by_tokens
    = command
        .add_option("--compaction-tokens",
                    tokens,
                    "The same, after a prompt of so many tokens; default: none")
        ->check(number_from(1))
        ->type_name("N");
  command
    .add_option("--compaction-kept",
                kept,
                "Newest events that such a summary does not replace")
    ->check(number_from(0))
    ->type_name("N")
    ->needs(by_tokens)
    ->capture_default_str();
}

std::optional<compaction_options> compaction_option::for_runtime() const {
  if (!interval && !tokens)
    return std::nullopt;
  compaction_options chosen;
  chosen.compaction_interval = interval;
  chosen.overlap_size = overlap;
  chosen.token_threshold = tokens;
  chosen.event_retention_size = kept;
  return chosen;
}

} // namespace troupe::cli

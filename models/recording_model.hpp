// A model that keeps what another one answers, so that a run against it becomes
// an offline test: `scripted:` plays the file back.

#pragma once

#include "troupe/core/output_file.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/scripted_model.hpp"

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {

/// A file that answers are added to, one a line, in the order in which they
/// come: `{"agent": string, "content": {…}, "extra"?: {…}, "latency_ms":
/// number}` or `{"agent", "error": string, "latency_ms"}`. Written at once.
/// Thread-safe.
class recording {
public:
  /// Makes the file or empties it, for its owner alone (mode 0600): prompts and
  /// answers may hold secrets. Fails with `errc::store_failed`, also on a
  /// symbolic link (`output_file`).
  static result<std::shared_ptr<recording>>
  open(const std::filesystem::path& file);

  explicit recording(output_file file) : file_(std::move(file)) {}

  /// Fails with `errc::store_failed`.
  result<void> add(std::string_view agent,
                   const result<model_response>& answer,
                   std::chrono::nanoseconds latency);

private:
  std::mutex mutex_;
  output_file file_;
};

/// Passes everything on. Partial answers are not kept. An answer that cannot be
/// kept fails the call.
class recording_model : public model {
public:
  recording_model(model_ptr asked, std::shared_ptr<recording> kept)
    : asked_(std::move(asked)),
      kept_(std::move(kept)) {}

  std::string name() const override { return asked_->name(); }

  void generate(model_request request, model_reply reply) override;

private:
  const model_ptr asked_;
  const std::shared_ptr<recording> kept_;
};

/// Reads a script: a JSON object (`script_from_json`), or what a `recording`
/// wrote. Fails with `errc::invalid_argument`, naming agent and reply, or the
/// line.
result<script> read_script(const std::string& text);

} // namespace troupe

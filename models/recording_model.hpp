// A model that records the answers of another one, so that a run becomes an
// offline test: `scripted:` replays the file.

#pragma once

#include "troupe/models/model.hpp"
#include "troupe/models/scripted_model.hpp"

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {

class output_file;

/// A file to which answers are appended, one line each, in the order of their
/// arrival: `{"agent": string, "content": {…}, "extra"?: {…}, "latency_ms":
/// number}` or `{"agent", "error": string, "latency_ms"}`. Each line is written
/// at once. Thread-safe.
class recording {
public:
  /// Creates or replaces the file, accessible only to its owner (mode 0600),
  /// because prompts and answers may hold secrets. Fails with
  /// `errc::store_failed`, also on a symbolic link and on a file of another
  /// user.
  static result<std::shared_ptr<recording>>
  open(const std::filesystem::path& file);

  /// Takes a file that is open for writing. Only troupe itself can make one;
  /// call `open`.
  explicit recording(output_file file);
  ~recording();

  /// Appends a line. Fails with `errc::store_failed`.
  result<void> add(std::string_view agent,
                   const result<model_response>& answer,
                   std::chrono::nanoseconds latency);

private:
  std::mutex mutex_;
  const std::unique_ptr<output_file> file_;
};

/// Forwards all calls and records the answers, except partial ones and failures
/// after which a list asks its next model (`is_outage`). A call fails with
/// `errc::store_failed` if its answer cannot be recorded. Thread-safe if the
/// wrapped model is.
class recording_model : public model {
public:
  /// Wraps `asked` and writes to `kept`. Neither may be null.
  recording_model(model_ptr asked, std::shared_ptr<recording> kept)
    : asked_(std::move(asked)),
      kept_(std::move(kept)) {}

  /// Name of the wrapped model.
  std::string name() const override { return asked_->name(); }

  void generate(model_request request, model_reply reply) override;

  result<void> check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                  bool beside_functions) const override {
    return asked_->check_vendor_tools(wanted, beside_functions);
  }

private:
  const model_ptr asked_;
  const std::shared_ptr<recording> kept_;
};

/// Parses a script: a JSON object (`script_from_json`), or the lines of a
/// `recording`. Fails with `errc::invalid_argument`, naming agent and reply, or
/// the line.
result<script> read_script(const std::string& text);

} // namespace troupe

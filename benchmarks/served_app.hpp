// An app with one LLM agent, served by `troupe serve` or by the server of ADK
// Python in a process of its own. The model of the agent answers at once.

#pragma once

#include "child_process.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace bench {

/// A folder with the agent in both forms, which is deleted with this object.
class app_folder {
public:
  app_folder();
  app_folder(const app_folder&) = delete;
  app_folder& operator=(const app_folder&) = delete;
  ~app_folder();

  std::string troupe() const { return (path_ / "troupe").string(); }

  std::string adk() const { return (path_ / "adk").string(); }

  /// Path of a SQLite file, another one with each call.
  std::string new_file();

private:
  std::filesystem::path path_;
  int files_ = 0;
};

struct served_app {
  std::unique_ptr<child_process> process;
  std::uint16_t port = 0;
};

/// Starts `troupe serve`, and waits until it has printed its address.
served_app serve_troupe(const app_folder& folder, const std::string& store);

/// Returns the version of ADK that a Python has; empty if it has none.
std::string adk_version(const std::string& python);

/// Starts ADK's server, and waits until it answers.
served_app serve_adk(const std::string& python,
                     const app_folder& folder,
                     const std::string& store);

} // namespace bench

// A new SQLite file in the newest layout of ADK, as the target of an export.

#pragma once

#include "troupe/cli/sessions/export.hpp"
#include "troupe/core/error.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Receives sessions and writes them in the layout of `DatabaseSessionService`.
///
/// The file appears under its name when `finish` has succeeded, and is readable
/// by its owner only. Until then it is `FILE.PID.part`, which the destructor
/// removes. Fails with `errc::store_failed`.
class adk_target final : public session_sink {
public:
  /// Fails with `errc::already_exists` if there is a file, and with
  /// `errc::invalid_argument` if `address` is not `sqlite:PATH`. Later calls
  /// fail with `errc::cancelled` after a `stop`.
  static result<std::unique_ptr<adk_target>> open(std::string_view address,
                                                  std::stop_token stop);

  ~adk_target() override;

  result<void> begin(const session& shown) override;
  result<std::size_t> add(const std::vector<event_ptr>& events) override;
  result<void> end() override;

  /// Adds the state of the app and of its chosen users, and puts the file in
  /// place.
  result<void> finish(session_service& sessions,
                      const export_choice& chosen) override;

  /// Numbers of written sessions and events.
  std::size_t session_count() const noexcept { return session_count_; }

  std::size_t event_count() const noexcept { return event_count_; }

private:
  class file;

  adk_target(std::unique_ptr<file> written, std::stop_token stop);

  result<void> write_user(session_service& sessions,
                          const std::string& app,
                          const std::string& user);
  result<void> write_all_users(session_service& sessions,
                               const std::string& app);

  std::unique_ptr<file> file_;
  std::stop_token stop_;
  session_key key_;
  json state_;
  timestamp update_time_{};
  // Of the newest written event of the session; unset before the first one.
  std::optional<timestamp> newest_;
  timestamp oldest_{};
  std::size_t session_count_ = 0;
  std::size_t event_count_ = 0;
};

} // namespace troupe::cli

// Artifacts: files with versions that agents and tools save and load.
//
// A name that starts with `user:` belongs to the user and is visible in all
// sessions; any other name belongs to the session. Versions count from 0
// without gaps. This class checks all inputs once for all stores. The rules
// follow ADK's artifact services, except that an empty artifact loads as it was
// saved.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Checks an artifact name and splits off its scope: `user` after the prefix
/// `user:`, otherwise `session`. A name has 1 to 256 bytes of UTF-8 after the
/// prefix, no control characters, no `/` and no `\`, and is not blank, `.` or
/// `..`. Fails with `errc::invalid_argument`.
result<scoped_key> check_artifact_name(std::string_view name);

/// Limits of an artifact store.
struct artifact_options {
  /// Maximum size of an artifact's text or data in bytes. A larger artifact is
  /// refused with `errc::too_large`. The other fields of the part may take the
  /// same number of bytes again, as JSON.
  std::size_t bytes_max = std::size_t{64} * 1024 * 1024;
};

/// Names an artifact: its owner (a session or a user) and its name without
/// prefix.
struct artifact_key {
  owner_name owner; ///< A session, or a user; never an app.
  std::string name; ///< Checked by `check_artifact_name`, without `user:`.
};

/// For example `"'report.pdf' of press/ann/s1"`, for error messages.
std::string to_string(const artifact_key& key);

/// Keeps artifacts. All calls are safe from any thread and may block. Every
/// call fails with `errc::invalid_argument` on a key or a name against the
/// rules, with `errc::store_failed` if the back end did not answer, and with
/// `errc::corrupt` if stored data cannot be read back.
class artifact_store {
public:
  /// Makes a store that refuses artifacts above the limits of `options`.
  explicit artifact_store(const artifact_options& options = {})
    : options_(options) {}

  artifact_store(const artifact_store&) = delete;
  artifact_store& operator=(const artifact_store&) = delete;
  virtual ~artifact_store() = default;

  /// Saves `content` as the newest version and returns the version's number.
  ///
  /// Accepts UTF-8 text, inline data and any other object in wire form, also
  /// empty ones. Fails with `errc::invalid_argument` on text that is not UTF-8
  /// (save it as inline data), on data that is not base64, on a function call
  /// or response, and on JSON that `check_json` refuses. Fails with
  /// `errc::too_large` above the limits of `artifact_options`. After
  /// `errc::store_failed` the version may exist or not.
  result<std::int64_t>
  save(const session_key& key, std::string_view name, const part& content);

  /// Loads a version, the newest if `version` is unset. Returns the part as it
  /// was saved, or nothing if there is no such artifact or version.
  result<std::optional<part>> load(const session_key& key,
                                   std::string_view name,
                                   std::optional<std::int64_t> version = {});

  /// Lists the names of the artifacts of the session and of its user, the
  /// latter with the prefix `user:`, in byte order.
  result<std::vector<std::string>> list(const session_key& key);

  /// Lists the versions in ascending order; empty if there is no such artifact.
  result<std::vector<std::int64_t>> versions(const session_key& key,
                                             std::string_view name);

  /// Gives the session `to` the first `count` versions of an artifact of the
  /// session `from`, with the same numbers. `name` has no prefix. Fails with
  /// `errc::already_exists` if `to` has an artifact of that name. Either all of
  /// them are copied or none; a copy that a back end makes from `do_load` and
  /// `do_save` may be left unfinished by a crash.
  result<void> copy(const session_key& from,
                    const session_key& to,
                    std::string_view name,
                    std::size_t count);

  /// Removes all versions. Returns false if there were none. The next save
  /// starts at version 0 again.
  result<bool> remove(const session_key& key, std::string_view name);

  /// Removes all artifacts of a session; those of its user stay.
  result<void> remove_session(const session_key& key);

  /// Removes all artifacts of a user and of its sessions.
  result<void> remove_user(std::string_view app, std::string_view user);

  /// Removes all artifacts of an app: those of all of its users.
  result<void> remove_app(std::string_view app);

protected:
  // Implemented by stores. Keys, names and contents are checked before.

  /// Saves the newest version and returns its number. Concurrent saves of one
  /// artifact must get different numbers.
  virtual result<std::int64_t> do_save(const artifact_key& key,
                                       const part& content)
    = 0;
  /// Loads a version, the newest if `version` is unset. Returns nothing if it
  /// does not exist; a negative number never exists.
  virtual result<std::optional<part>>
  do_load(const artifact_key& key, std::optional<std::int64_t> version) = 0;
  /// Lists the artifacts that belong to exactly this owner: names without
  /// prefix, in any order.
  virtual result<std::vector<std::string>> do_list(const owner_name& owner) = 0;
  /// Lists the versions in ascending order.
  virtual result<std::vector<std::int64_t>> do_versions(const artifact_key& key)
    = 0;
  /// Copies the first `count` versions, with their numbers, to an artifact that
  /// must not exist. This default loads and saves each of them.
  virtual result<void>
  do_copy(const artifact_key& from, const artifact_key& to, std::size_t count);
  /// Removes all versions; returns false if there were none.
  virtual result<bool> do_remove(const artifact_key& key) = 0;
  /// Removes all artifacts of a session, of a user and its sessions, or of an
  /// app and its users.
  virtual result<void> do_remove_owner(const owner_name& owner) = 0;

  /// Returns the error of a copy to an artifact that exists.
  static error exists_already(const artifact_key& key);

private:
  error drop_copy(const artifact_key& to, error cause);

  artifact_options options_;
};

/// Opens the artifact store at an address; creates a missing folder. The rules
/// for a path are those of `read_store_address`. Fails with
/// `errc::invalid_argument` (bad address) or `errc::store_failed` (no access;
/// try again).
///
/// Any number of processes on one machine may share a folder, on a local file
/// system with `flock`. An acknowledged save into it is durable. Its files are
/// accessible only to the user who created them. Symbolic links below the path
/// are not followed; calls that meet one fail with `errc::corrupt`.
result<std::unique_ptr<artifact_store>>
open_artifact_store(std::string_view address,
                    const artifact_options& options = {});

} // namespace troupe

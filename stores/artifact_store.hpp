// Where artifacts are kept: files with versions, which agents and tools save
// and load.
//
// A name that starts with `user:` is of the user, in all sessions; any other is
// of the session. Versions count from 0 without a gap. What comes in is checked
// here, once for all stores. As ADK's artifact services, but for what is empty:
// it loads as it was saved.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Splits and checks: the scope is `user` after the prefix `user:`, otherwise
/// `session`. A name has 1 to 256 bytes of UTF-8 after the prefix, no control
/// characters, no `/` and no `\`, and is not blank, `.` or `..`. Fails with
/// `errc::invalid_argument`.
result<scoped_key> check_artifact_name(std::string_view name);

struct artifact_options {
  /// In bytes, of an artifact's text or data; a larger one is not saved. Its
  /// further fields, as JSON, may take as much again.
  std::size_t bytes_max = std::size_t{64} * 1024 * 1024;
};

/// Who owns an artifact, a session or a user, and its name without a prefix.
struct artifact_key {
  owner_name owner;
  std::string name;
};

/// `"'report.pdf' of press/ann/s1"`, for messages.
std::string to_string(const artifact_key& key);

/// All calls are safe from any thread and may block. Every one fails with
/// `errc::invalid_argument` on a key or a name against the rules, with
/// `errc::store_failed` if the store did not answer, and with `errc::corrupt`
/// if what it keeps does not read back.
class artifact_store {
public:
  explicit artifact_store(const artifact_options& options = {})
    : options_(options) {}

  artifact_store(const artifact_store&) = delete;
  artifact_store& operator=(const artifact_store&) = delete;
  virtual ~artifact_store() = default;

  /// Keeps `content` as the newest version and returns its number. After a
  /// failure that is not of the input, it may be there or not.
  ///
  /// Text, inline data and any other object in wire form can be saved, also
  /// when empty. Fails with `errc::invalid_argument` on a function call or
  /// response and on data that is not base64, and with `errc::too_large`.
  result<std::int64_t>
  save(const session_key& key, std::string_view name, const part& content);

  /// The part as it was saved, or nothing if there is no such artifact or
  /// version; the newest if no version is named.
  result<std::optional<part>> load(const session_key& key,
                                   std::string_view name,
                                   std::optional<std::int64_t> version = {});

  /// The names of the session's artifacts and of the user's, these with
  /// `user:`, in order of their bytes.
  result<std::vector<std::string>> list(const session_key& key);

  /// In ascending order; empty if there is no such artifact.
  result<std::vector<std::int64_t>> versions(const session_key& key,
                                             std::string_view name);

  /// Removes all versions, and says whether there were any. The next save
  /// starts at 0 again.
  result<bool> remove(const session_key& key, std::string_view name);

  /// Removes all artifacts of a session; those of its user stay.
  result<void> remove_session(const session_key& key);

  /// Removes all artifacts of a user and of its sessions.
  result<void> remove_user(std::string_view app, std::string_view user);

protected:
  // What stores implement. Keys, names and contents have been checked.

  virtual result<std::int64_t> do_save(const artifact_key& key,
                                       const part& content)
    = 0;
  virtual result<std::optional<part>>
  do_load(const artifact_key& key, std::optional<std::int64_t> version) = 0;
  /// The names of exactly this owner, without prefix, in any order.
  virtual result<std::vector<std::string>> do_list(const owner_name& owner) = 0;
  /// In ascending order.
  virtual result<std::vector<std::int64_t>> do_versions(const artifact_key& key)
    = 0;
  virtual result<bool> do_remove(const artifact_key& key) = 0;
  /// All of a session; or all of a user, its sessions with it.
  virtual result<void> do_remove_owner(const owner_name& owner) = 0;

private:
  artifact_options options_;
};

} // namespace troupe

// The memory service: conversations of a user that agents search in later
// sessions.
//
// Memories belong to a user of an app, and outlive the session that they are
// from. A search finds the memories that share a word with the query. This
// class checks all inputs once for all stores. The rules follow ADK's memory
// services; docs/memory.md names the differences.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/stores/memory_entry.hpp"
#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Maximum size in bytes of the texts of one memory. A larger one is refused
/// with `errc::too_large`.
inline constexpr std::size_t memory_bytes_max = std::size_t{1024} * 1024;

/// Number of memories that a search returns if the caller names none, as in
/// ADK.
inline constexpr std::size_t memories_found_max = 10;

/// Keeps memories. All calls are safe from any thread and may block. Every call
/// fails with `errc::invalid_argument` on an id against the rules, with
/// `errc::store_failed` if the back end did not answer, and with
/// `errc::corrupt` if stored data cannot be read back.
class memory_service {
public:
  memory_service() = default;
  memory_service(const memory_service&) = delete;
  memory_service& operator=(const memory_service&) = delete;
  virtual ~memory_service() = default;

  /// Remembers a session: the texts of its events, besides those that were
  /// taken back. They replace all that an earlier call has remembered of this
  /// session, all or nothing, so `fetched` should have all events. Returns the
  /// number of memories. Events without a word in their text are left out.
  /// Fails as `add_events`.
  result<std::size_t> add_session(const session& fetched);

  /// Remembers the texts of these events besides those that are remembered of
  /// the session, all or nothing. An event that is remembered already stays as
  /// it is. Returns the number of new memories, and sets `added` to their ids.
  /// Fails with `errc::invalid_argument` on an event without an id, and on a
  /// text, an author or a role that is not UTF-8, and with `errc::too_large`
  /// above `memory_bytes_max`.
  result<std::size_t> add_events(const session_key& key,
                                 const std::vector<event_ptr>& events,
                                 std::vector<std::string>* added = nullptr);

  /// Remembers texts that are from no session, all or nothing. Each needs a
  /// text with a word; `memory_entry::session` must be empty. An empty id is
  /// replaced by one that is made of author, role and texts, so the same memory
  /// is remembered once. An id that is remembered already stays as it is.
  /// Returns the number of new memories, and sets `added` to their ids. Fails
  /// as `add_events`, and with `errc::invalid_argument` on a text without a
  /// word.
  result<std::size_t> add(std::string_view app,
                          std::string_view user,
                          std::vector<memory_entry> entries,
                          std::vector<std::string>* added = nullptr);

  /// Returns the memories of the user that share a word with `query`, the best
  /// first, at most `limit`.
  ///
  /// The query is text in UTF-8; it has no operators. Words are sequences of
  /// letters and digits of any script. Case, accents and forms of the same
  /// character do not matter. Scripts that have no blanks between words, such
  /// as Chinese, are compared by pairs of characters. Memories with more of the
  /// query's words are better, and a word counts more if fewer of the user's
  /// memories have it; of equal ones the newest is first. A query without a
  /// word finds nothing. Only the first 64 words of a query count. Fails with
  /// `errc::invalid_argument` for a limit of 0, and for a query that is not
  /// UTF-8.
  result<std::vector<memory_entry>> search(std::string_view app,
                                           std::string_view user,
                                           std::string_view query,
                                           std::size_t limit
                                           = memories_found_max);

  /// Forgets one memory; returns false if there was none. `session` is empty
  /// for one of `add`.
  result<bool> remove(std::string_view app,
                      std::string_view user,
                      std::string_view session,
                      std::string_view id);

  /// Forgets the memories of these ids, all or nothing. Returns how many there
  /// were.
  result<std::size_t> remove(std::string_view app,
                             std::string_view user,
                             std::string_view session,
                             std::vector<std::string> ids);

  /// Forgets all memories of a session; returns false if there were none.
  result<bool> remove_session(const session_key& key);

  /// Forgets all memories of a user; returns false if there were none.
  result<bool> remove_user(std::string_view app, std::string_view user);

  /// Forgets all memories of an app; returns false if there were none.
  result<bool> remove_app(std::string_view app);

protected:
  // Implemented by stores. Ids, and the texts of entries, are checked before:
  // they are UTF-8 and have at most `memory_bytes_max`. `memory_words` and
  // `query_words` (stores/memory_words.hpp) make the words.

  /// Fate of the earlier memories of the same session.
  enum class earlier : std::uint8_t { stay, replaced };

  /// Adds memories, all or nothing, and returns the ids of the new ones. `of`
  /// is a session, or a user for memories without session. An entry whose id is
  /// there already is left out. Each entry has a word in its `memory_text`, and
  /// the session of `of`.
  virtual result<std::vector<std::string>>
  do_add(const owner_name& of,
         const std::vector<memory_entry>& entries,
         earlier before)
    = 0;
  /// Finds memories with one of `words`, which `query_words` has made; at least
  /// one. `limit` is above 0.
  virtual result<std::vector<memory_entry>>
  do_search(const owner_name& user,
            const std::vector<std::string>& words,
            std::size_t limit)
    = 0;
  /// Removes memories of a session, or of a user for those without session, all
  /// or nothing. Returns how many there were. There is at least one id.
  virtual result<std::size_t> do_remove(const owner_name& of,
                                        const std::vector<std::string>& ids)
    = 0;
  /// Removes the memories of a session, of a user, or of an app. Returns false
  /// if there were none. Afterwards the back end holds nothing of them.
  virtual result<bool> do_remove_all(const owner_name& of) = 0;
};

/// Opens the memory service at an address: `memory:`, `sqlite:PATH`, a file of
/// its own, or `postgres:URL`. The first memory makes a missing file, which
/// only its owner may read. Missing tables are made at once, also in the schema
/// of a session store. Several processes may use one file or schema. An
/// acknowledged change is durable. Fails with `errc::invalid_argument` (bad
/// address), `errc::store_failed` (no access; try again), and `errc::corrupt`
/// if the file is not one of memories, or if a newer troupe has made it.
result<std::unique_ptr<memory_service>>
open_memory_service(std::string_view address);

} // namespace troupe

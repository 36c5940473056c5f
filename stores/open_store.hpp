// Opens a store by its address: `memory:`, `sqlite:PATH`, `postgres:URL`,
// `apps:FILE`. Libpq has two spellings of its scheme, and `postgresql:URL` is
// the same address.

#pragma once

#include "troupe/stores/store.hpp"
#include "troupe/stores/store_options.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// The back ends of `open_store`: a process's memory, a SQLite file, a
/// PostgreSQL database, and several databases with one rule for each app.
enum class store_kind : std::uint8_t { memory, sqlite, postgres, apps };

/// An address in its parts, as `read_store_address` returns it.
struct store_address {
  /// The back end, by the scheme of the address.
  store_kind kind = store_kind::memory;
  /// The path of a SQLite file or of a file of rules, or the whole URL of a
  /// PostgreSQL database (`postgres://…` or `postgresql://…`). Empty for
  /// `memory:`.
  std::string location;
};

/// Parses an address. A path must not have a `..` component, a `?` or a `#`,
/// also not percent-encoded. A file of rules is not read. Fails with
/// `errc::invalid_argument`; call `is_store_scheme` to tell an unknown scheme
/// from a bad path.
result<store_address> read_store_address(std::string_view text);

/// Returns true if `text` starts with a scheme that troupe knows.
bool is_store_scheme(std::string_view text) noexcept;

/// Returns the address without the password of a database, for display.
std::string without_password(std::string_view address);

/// Returns the library behind a kind of store and its version, for example
/// `"SQLite 3.40.1"`. For PostgreSQL it is the client library (`"libpq 15.3"`);
/// for memory it is `"memory"`, and for several databases `"several
/// databases"`.
std::string store_version(store_kind kind);

/// Opens the store at an address. The first write creates a SQLite file that
/// does not exist. In a PostgreSQL database, missing tables are created at
/// once. Any number of processes may share a file or a database. Fails with
/// `errc::invalid_argument` (bad address), `errc::store_failed` (no access, or
/// locked; try again) or `errc::corrupt` (not a store of troupe, damaged, or of
/// a newer version).
///
/// `apps:FILE` opens all databases that the rules in the file name
/// (docs/operations.md, "When one database is not enough"), and fails if one of
/// them does not open. A wrong rule fails with `errc::invalid_argument`, and
/// the error has its line; a missing file fails with `errc::not_found`. Each
/// app is in one database. `commit` refuses changes of apps in several
/// databases with `errc::invalid_argument`, and writes none of them.
result<std::unique_ptr<store>> open_store(std::string_view address,
                                          const store_options& options = {});

} // namespace troupe

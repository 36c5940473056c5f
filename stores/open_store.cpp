#include "troupe/stores/open_store.hpp"

#include "troupe/core/support/passwords.hpp"
#include "troupe/stores/postgres/address.hpp"
#include "troupe/stores/postgres/open.hpp"
#include "troupe/stores/routed/open.hpp"
#include "troupe/stores/shared/memory_store.hpp"
#include "troupe/stores/shared/path_rule.hpp"
#include "troupe/stores/sqlite/open.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

struct known_scheme {
  std::string_view prefix;
  store_kind kind;
};

constexpr std::array schemes = {
  known_scheme{"memory:", store_kind::memory},
  known_scheme{"sqlite:", store_kind::sqlite},
  known_scheme{"postgres:", store_kind::postgres},
  known_scheme{"postgresql:", store_kind::postgres}, // libpq takes both.
  known_scheme{"apps:", store_kind::apps},
};

const known_scheme* scheme_of(std::string_view text) noexcept {
  const auto* const found
    = std::ranges::find_if(schemes, [text](const known_scheme& each) {
        return text.starts_with(each.prefix);
      });
  return found == schemes.end() ? nullptr : found;
}

bool is_postgres(std::string_view text) noexcept {
  const auto* const scheme = scheme_of(text);
  return scheme != nullptr && scheme->kind == store_kind::postgres;
}

// Describes a bad address. It is quoted only if it cannot contain a password.
error refused_store(std::string_view text, std::string_view why) {
  const bool may_hold_password
    = is_postgres(text)
      || (scheme_of(text) == nullptr
          && (text.find('@') != std::string_view::npos
              || without_passwords(text) != text));
  return error(errc::invalid_argument,
               may_hold_password ? fmt::format("the store's address {}", why)
                                 : fmt::format("the store '{}' {}", text, why));
}

} // namespace

std::string without_password(std::string_view address) {
  const bool is_path = scheme_of(address) != nullptr && !is_postgres(address);
  return is_path ? std::string(address) : without_passwords(address);
}

std::string store_version(store_kind kind) {
  switch (kind) {
  case store_kind::memory:
    return "memory";
  case store_kind::sqlite:
    return fmt::format("SQLite {}", sqlite3_libversion());
  case store_kind::postgres:
    return libpq_version();
  case store_kind::apps:
    return "several databases";
  }
  return {};
}

bool is_store_scheme(std::string_view text) noexcept {
  return scheme_of(text) != nullptr;
}

result<store_address> read_store_address(std::string_view text) {
  const auto* const scheme = scheme_of(text);
  if (scheme == nullptr)
    return refused_store(text,
                         "has no known scheme; expected memory:, "
                         "sqlite:PATH, postgres:URL or apps:FILE");
  const auto location = text.substr(scheme->prefix.size());
  switch (scheme->kind) {
  case store_kind::memory:
    if (!location.empty())
      return refused_store(text, "must be memory: without a path");
    break;
  case store_kind::sqlite:
  case store_kind::apps:
    if (const auto flaw = path_flaw(std::string(location)); !flaw.empty())
      return refused_store(text, flaw);
    break;
  case store_kind::postgres:
    if (!location.starts_with("//"))
      return refused_store(text, "must be postgres://HOST/DATABASE");
    if (const auto flaw = postgres_address_flaw(std::string(text));
        !flaw.empty())
      return refused_store(text, flaw);
    // libpq takes the whole address.
    return store_address{scheme->kind, std::string(text)};
  }
  return store_address{scheme->kind, std::string(location)};
}

result<std::unique_ptr<store>> open_store(std::string_view address,
                                          const store_options& options) {
  const auto parsed = read_store_address(address);
  if (!parsed)
    return parsed.error();
  switch (parsed->kind) {
  case store_kind::sqlite:
    return open_sqlite_store(parsed->location, options);
  case store_kind::postgres:
    return open_postgres_store(parsed->location, options);
  case store_kind::apps:
    return open_routed_store(parsed->location, options);
  case store_kind::memory:
    break;
  }
  return make_memory_store();
}

} // namespace troupe

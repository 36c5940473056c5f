#include "troupe/stores/open_store.hpp"

#include "troupe/stores/memory_store.hpp"
#include "troupe/stores/path_rule.hpp"
#include "troupe/stores/postgres_store.hpp"
#include "troupe/stores/sqlite_store.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

constexpr std::array durability_names = {
  std::pair{durability::durable, std::string_view("durable")},
  std::pair{durability::os, std::string_view("os")},
  std::pair{durability::none, std::string_view("none")},
};

struct known_scheme {
  std::string_view prefix;
  store_kind kind;
};

constexpr std::array schemes = {
  known_scheme{"memory:", store_kind::memory},
  known_scheme{"sqlite:", store_kind::sqlite},
  known_scheme{"postgres:", store_kind::postgres},
};

const known_scheme* scheme_of(std::string_view text) noexcept {
  const auto* const found
    = std::ranges::find_if(schemes, [text](const known_scheme& each) {
        return text.starts_with(each.prefix);
      });
  return found == schemes.end() ? nullptr : found;
}

result<store_address> refused(std::string_view text, std::string_view why) {
  return error(errc::invalid_argument,
               fmt::format("the store '{}' {}", text, why));
}

} // namespace

std::string without_password(std::string_view address) {
  constexpr std::string_view hidden = "***";
  std::string shown(address);
  if (scheme_of(address) == nullptr
      || scheme_of(address)->kind != store_kind::postgres)
    return shown;
  // Behind the last @ before the parameters stands the host.
  const auto user = shown.find("//");
  if (user != std::string::npos) {
    const auto end = std::min(shown.find('?'), shown.size());
    const auto host = shown.rfind('@', end);
    const auto colon = shown.find(':', user + 2);
    if (host != std::string::npos && host > user && colon < host)
      shown.replace(colon + 1, host - colon - 1, hidden);
  }
  for (const std::string_view name : {"password=", "sslpassword="})
    for (auto at = shown.find(name); at != std::string::npos;
         at = shown.find(name, at + name.size())) {
      const auto begin = at + name.size();
      shown.replace(
        begin, std::min(shown.find('&', begin), shown.size()) - begin, hidden);
    }
  return shown;
}

std::string store_version(store_kind kind) {
  switch (kind) {
  case store_kind::memory:
    return "memory";
  case store_kind::sqlite:
    return fmt::format("SQLite {}", sqlite3_libversion());
  case store_kind::postgres:
    return fmt::format(
      "libpq {}.{}", PQlibVersion() / 10'000, PQlibVersion() % 10'000);
  }
  return {};
}

std::string_view to_string(durability promised) noexcept {
  return durability_names[static_cast<std::size_t>(promised)].second;
}

result<durability> durability_from(std::string_view name) {
  for (const auto& [promised, spelling] : durability_names)
    if (spelling == name)
      return promised;
  return error(errc::invalid_argument,
               fmt::format("there is no durability '{}'; there are durable, "
                           "os, none",
                           name));
}

bool is_store_scheme(std::string_view text) noexcept {
  return scheme_of(text) != nullptr;
}

result<store_address> read_store_address(std::string_view text) {
  const auto* const scheme = scheme_of(text);
  if (scheme == nullptr)
    return refused(text,
                   "has no known scheme; there are memory:, sqlite:PATH, "
                   "postgres:URL");
  const auto place = text.substr(scheme->prefix.size());
  switch (scheme->kind) {
  case store_kind::memory:
    if (!place.empty())
      return refused(text, "should be memory: alone");
    break;
  case store_kind::sqlite:
    if (const auto flaw = path_flaw(std::string(place)); !flaw.empty())
      return refused(text, flaw);
    break;
  case store_kind::postgres:
    if (!place.starts_with("//"))
      return refused(text, "should be postgres://HOST/DATABASE");
    // The whole of it is what libpq takes.
    return store_address{scheme->kind, std::string(text)};
  }
  return store_address{scheme->kind, std::string(place)};
}

result<std::unique_ptr<store>> open_store(std::string_view address,
                                          const store_options& options) {
  const auto parsed = read_store_address(address);
  if (!parsed)
    return parsed.error();
  switch (parsed->kind) {
  case store_kind::sqlite:
    return open_sqlite_store(parsed->place, options);
  case store_kind::postgres:
    return open_postgres_store(parsed->place, options);
  case store_kind::memory:
    break;
  }
  return make_memory_store();
}

} // namespace troupe

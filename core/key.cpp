#include "troupe/core/key.hpp"

#include "troupe/core/json.hpp"
#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t id_bytes_max = 512;
constexpr auto reserved
  = "is reserved: names that start with '__' belong to the runtime";

// Cuts between characters, because error messages go into JSON.
std::string_view head(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max)
    return text;
  while (bytes_max > 0
         && (static_cast<unsigned char>(text[bytes_max]) & 0xc0U) == 0x80U)
    --bytes_max;
  return text.substr(0, bytes_max);
}

} // namespace

std::string_view prefix_of(scope where) noexcept {
  switch (where) {
  case scope::app:
    return key_prefix_app;
  case scope::user:
    return key_prefix_user;
  case scope::temp:
    return key_prefix_temp;
  case scope::session:
    break;
  }
  return {};
}

scoped_key split_key(std::string_view key) noexcept {
  for (const auto where : {scope::app, scope::user, scope::temp})
    if (key.starts_with(prefix_of(where)))
      return {where, key.substr(prefix_of(where).size())};
  return {scope::session, key};
}

result<scoped_key> check_key(std::string_view key) {
  const auto parts = split_key(key);
  const auto refuse = [&key](std::string_view why) {
    const auto shown = is_utf8(key) && key.find('\0') == key.npos
                         ? head(key, 80)
                         : std::string_view("?");
    return error(errc::invalid_argument,
                 fmt::format("state key '{}' {}", shown, why));
  };
  if (parts.name.empty())
    return refuse("has no name");
  const bool is_of_artifact = is_artifact_key(parts);
  if (parts.name.size()
      > name_bytes_max + (is_of_artifact ? key_prefix_artifact.size() : 0))
    return refuse("is longer than 256 bytes");
  if (parts.name.find('\0') != std::string_view::npos)
    return refuse("holds a NUL byte");
  if (!is_utf8(parts.name))
    return refuse("is not UTF-8");
  if (parts.name.starts_with("__") && !is_of_artifact)
    return refuse(reserved);
  return parts;
}

bool is_artifact_key(const scoped_key& key) noexcept {
  return key.where == scope::session
         && key.name.starts_with(key_prefix_artifact)
         && key.name.size() > key_prefix_artifact.size();
}

result<scoped_key> check_new_key(std::string_view key) {
  auto checked = check_key(key);
  if (!checked)
    return checked;
  if (is_artifact_key(*checked))
    return error(errc::invalid_argument,
                 fmt::format("state key '{}' {}", head(key, 80), reserved));
  const auto inner = split_key(checked->name);
  if (inner.where != scope::session)
    return error(
      errc::invalid_argument,
      fmt::format("state key '{}' has two prefixes; write '{}' for the scope "
                  "'{}', or '{}'",
                  head(key, 80),
                  head(checked->name, 80),
                  prefix_of(inner.where),
                  head(join_key(checked->where, inner.name), 80)));
  return checked;
}

std::string join_key(scope where, std::string_view name) {
  std::string key(prefix_of(where));
  key += name;
  return key;
}

std::string to_string(const session_key& key) {
  return fmt::format("{}/{}/{}", key.app, key.user, key.id);
}

result<std::string_view> trim_id(std::string_view id, std::string_view what) {
  const auto name = trimmed(id);
  const auto refuse = [&what](std::string_view why) {
    return error(errc::invalid_argument, fmt::format("{} {}", what, why));
  };
  if (name.empty())
    return refuse("is empty");
  if (name.size() > id_bytes_max)
    return refuse("is longer than 512 bytes");
  if (name.find('\0') != std::string_view::npos)
    return refuse("holds a NUL byte");
  if (!is_utf8(name))
    return refuse("is not UTF-8");
  return name;
}

result<std::string> check_id(std::string_view id, std::string_view what) {
  auto name = trim_id(id, what);
  if (!name)
    return name.error();
  return std::string(*name);
}

result<session_key> check_key(const session_key& key) {
  auto app = check_id(key.app, "app");
  if (!app)
    return app.error();
  auto user = check_id(key.user, "user");
  if (!user)
    return user.error();
  auto id = check_id(key.id, "session id");
  if (!id)
    return id.error();
  return session_key{std::move(*app), std::move(*user), std::move(*id)};
}

} // namespace troupe

std::size_t std::hash<troupe::session_key>::operator()(
  const troupe::session_key& key) const noexcept {
  const std::hash<std::string_view> of;
  std::size_t mixed = of(key.id);
  for (const auto next : {of(key.user), of(key.app)})
    mixed ^= next + 0x9e3779b97f4a7c15U + (mixed << 6U) + (mixed >> 2U);
  return mixed;
}

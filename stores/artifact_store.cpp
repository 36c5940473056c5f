#include "troupe/stores/artifact_store.hpp"

#include "troupe/core/content.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

constexpr std::size_t name_bytes_max = 256;

// Finds C0 controls, C1 controls and DEL. `text` must be UTF-8.
bool has_control(std::string_view text) {
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto byte = static_cast<unsigned char>(text[index]);
    if (byte < 0x20 || byte == 0x7f)
      return true;
    if (byte == 0xc2 && static_cast<unsigned char>(text[index + 1]) < 0xa0)
      return true;
  }
  return false;
}

result<artifact_key> key_of(const session_key& key, std::string_view name) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  const auto parts = check_artifact_name(name);
  if (!parts)
    return parts.error();
  artifact_key made{{std::move(checked->app), std::move(checked->user)},
                    std::string(parts->name)};
  if (parts->where == scope::session)
    made.owner.session = std::move(checked->id);
  return made;
}

result<void> check_size(std::size_t bytes,
                        std::string_view what,
                        const artifact_options& options) {
  if (bytes <= options.bytes_max)
    return {};
  return error(errc::too_large,
               fmt::format("an artifact has {} bytes of {}, above the limit "
                           "of {}",
                           bytes,
                           what,
                           options.bytes_max));
}

result<void> check_text(const std::string& text,
                        const artifact_options& options) {
  if (!is_utf8(text))
    return error(errc::invalid_argument,
                 "an artifact's text is not UTF-8; save it as inline data");
  return check_size(text.size(), "text", options);
}

bool is_function(std::string_view field) {
  const auto name = to_camel_case(field);
  return name == "functionCall" || name == "functionResponse";
}

result<void> check_body(const part& content, const artifact_options& options) {
  const auto& body = std::get<value>(content.body).data();
  if (!body.is_object())
    return error(errc::invalid_argument, "an artifact must be an object");
  for (const auto& [field, ignored] : body.get_ref<const json::object_t&>())
    if (is_function(field))
      return error(errc::invalid_argument,
                   fmt::format("an artifact cannot have a '{}'", field));
  const auto bytes = check_json(body, "an artifact");
  if (!bytes)
    return bytes.error();
  const auto data = blob_of(content);
  if (!data)
    return data.error();
  if (!*data)
    return check_size(*bytes, "JSON", options);
  const auto data_bytes = (*data)->bytes.size();
  if (auto checked = check_size(data_bytes, "data", options); !checked)
    return checked;
  // Base64 has at least four characters for three bytes.
  return check_size(*bytes - data_bytes / 3 * 4, "fields", options);
}

result<void> check_content(const part& content,
                           const artifact_options& options) {
  if (content.call() != nullptr || content.response() != nullptr)
    return error(errc::invalid_argument,
                 "an artifact cannot be a function call or response");
  if (!content.extra.is_null()) {
    if (!content.extra.data().is_object())
      return error(errc::invalid_argument,
                   "the further fields of an artifact must be an object");
    const auto bytes = check_json(content.extra.data(), "an artifact");
    if (!bytes)
      return bytes.error();
    if (auto checked = check_size(*bytes, "fields", options); !checked)
      return checked;
  }
  if (const auto* text = content.text())
    return check_text(*text, options);
  return check_body(content, options);
}

} // namespace

result<scoped_key> check_artifact_name(std::string_view name) {
  const bool is_of_user = name.starts_with(key_prefix_user);
  const scoped_key parts{is_of_user ? scope::user : scope::session,
                         is_of_user ? name.substr(key_prefix_user.size())
                                    : name};
  const auto refuse = [](std::string_view why) {
    return error(errc::invalid_argument,
                 fmt::format("the artifact name {}", why));
  };
  if (parts.name.empty())
    return refuse("is empty");
  if (parts.name.size() > name_bytes_max)
    return refuse("is longer than 256 bytes");
  if (!is_utf8(parts.name))
    return refuse("is not UTF-8");
  if (has_control(parts.name))
    return refuse("holds a NUL or another control character");
  // The name can be quoted from here on.
  if (parts.name.find_first_of("/\\") != std::string_view::npos)
    return refuse(fmt::format("'{}' holds a '/' or a '\\'", name));
  if (parts.name == "." || parts.name == "..")
    return refuse(fmt::format("'{}' means a folder", name));
  if (parts.name.find_first_not_of(' ') == std::string_view::npos)
    return refuse(fmt::format("'{}' is blank", name));
  return parts;
}

error artifact_store::exists_already(const artifact_key& key) {
  return {errc::already_exists,
          fmt::format("there is an artifact {} already", to_string(key))};
}

std::string to_string(const artifact_key& key) {
  return fmt::format("'{}' of {}", key.name, to_string(key.owner));
}

result<std::int64_t> artifact_store::save(const session_key& key,
                                          std::string_view name,
                                          const part& content) {
  const auto of = key_of(key, name);
  if (!of)
    return of.error();
  if (auto checked = check_content(content, options_); !checked)
    return error(
      checked.error().code(),
      fmt::format("save {}: {}", to_string(*of), checked.error().message()));
  return do_save(*of, content);
}

result<std::optional<part>>
artifact_store::load(const session_key& key,
                     std::string_view name,
                     std::optional<std::int64_t> version) {
  const auto of = key_of(key, name);
  if (!of)
    return of.error();
  return do_load(*of, version);
}

result<std::vector<std::string>> artifact_store::list(const session_key& key) {
  const auto of = check_key(key);
  if (!of)
    return of.error();
  auto names = do_list({of->app, of->user, of->id});
  if (!names)
    return names;
  auto of_user = do_list({of->app, of->user});
  if (!of_user)
    return of_user;
  for (const auto& name : *of_user)
    names->push_back(join_key(scope::user, name));
  std::ranges::sort(*names);
  return names;
}

result<std::vector<std::int64_t>>
artifact_store::versions(const session_key& key, std::string_view name) {
  const auto of = key_of(key, name);
  if (!of)
    return of.error();
  return do_versions(*of);
}

result<void> artifact_store::copy(const session_key& from,
                                  const session_key& to,
                                  std::string_view name,
                                  std::size_t count) {
  const auto source = key_of(from, name);
  if (!source)
    return source.error();
  const auto target = key_of(to, name);
  if (!target)
    return target.error();
  if (source->owner.where() != scope::session)
    return error(
      errc::invalid_argument,
      fmt::format("the artifact '{}' belongs to the user; all of the "
                  "user's sessions have it already",
                  name));
  return do_copy(*source, *target, count);
}

result<void> artifact_store::do_copy(const artifact_key& from,
                                     const artifact_key& to,
                                     std::size_t count) {
  const auto existing = do_versions(to);
  if (!existing)
    return existing.error();
  if (!existing->empty())
    return exists_already(to);
  const auto versions = do_versions(from);
  if (!versions)
    return versions.error();
  for (std::size_t index = 0; index < std::min(count, versions->size());
       ++index) {
    const auto version = do_load(from, (*versions)[index]);
    if (!version)
      return drop_copy(to, version.error());
    if (!*version)
      return drop_copy(to,
                       error(errc::not_found,
                             fmt::format("{} was removed while it was copied",
                                         to_string(from))));
    if (const auto saved = do_save(to, **version); !saved)
      return drop_copy(to, saved.error());
  }
  return {};
}

error artifact_store::drop_copy(const artifact_key& to, error cause) {
  if (const auto removed = do_remove(to); !removed)
    return {cause.code(),
            fmt::format("{}; what was copied so far could not be removed: {}",
                        cause.message(),
                        removed.error().message())};
  return cause;
}

result<bool> artifact_store::remove(const session_key& key,
                                    std::string_view name) {
  const auto of = key_of(key, name);
  if (!of)
    return of.error();
  return do_remove(*of);
}

result<void> artifact_store::remove_session(const session_key& key) {
  const auto of = check_key(key);
  if (!of)
    return of.error();
  return do_remove_owner({of->app, of->user, of->id});
}

result<void> artifact_store::remove_user(std::string_view app,
                                         std::string_view user) {
  auto app_id = check_id(app, "app");
  if (!app_id)
    return app_id.error();
  auto user_id = check_id(user, "user");
  if (!user_id)
    return user_id.error();
  return do_remove_owner({std::move(*app_id), std::move(*user_id)});
}

result<void> artifact_store::remove_app(std::string_view app) {
  auto app_id = check_id(app, "app");
  if (!app_id)
    return app_id.error();
  return do_remove_owner({std::move(*app_id)});
}

} // namespace troupe

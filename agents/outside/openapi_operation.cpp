#include "troupe/agents/outside/openapi_operation.hpp"

#include "troupe/agents/turns/name.hpp"
#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/text_in.hpp"
#include "troupe/models/formats/key_rule.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

// As in ADK.
constexpr std::size_t id_bytes_max = 60;
constexpr std::size_t operations_max = 10'000;

struct known_method {
  std::string_view field;
  std::string_view name;
  http_method method;
};

constexpr std::array methods = {
  known_method{"get", "GET", http_method::get},
  known_method{"post", "POST", http_method::post},
  known_method{"put", "PUT", http_method::put},
  known_method{"delete", "DELETE", http_method::remove},
  known_method{"patch", "PATCH", http_method::patch},
};

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](char c) {
    return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return made;
}

// -- addresses ----

std::string server_of(const json& server,
                      const std::map<std::string, std::string>& chosen,
                      std::set<std::string>& used) {
  auto url = text_in(server, "url");
  const auto& variables = field_of(server, "variables");
  if (variables.is_object())
    for (const auto& [name, variable] : variables.items()) {
      auto text = text_in(variable, "default");
      if (const auto found = chosen.find(name); found != chosen.end()) {
        text = found->second;
        used.insert(name);
        const auto& allowed = field_of(variable, "enum");
        if (allowed.is_array()
            && std::ranges::find(allowed, json(text)) == allowed.end())
          refuse_document(
            fmt::format("does not allow the value '{}' of the server variable "
                        "'{}'",
                        text,
                        name));
      }
      const auto place = "{" + name + "}";
      for (auto at = url.find(place); at != std::string::npos;
           at = url.find(place, at + text.size()))
        url.replace(at, place.size(), text);
    }
  while (url.ends_with('/'))
    url.pop_back();
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(
    curl_url(), &curl_url_cleanup);
  if (!parsed
      || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK
      || !(url.starts_with("http://") || url.starts_with("https://"))
      || url.find_first_of("?#@") != std::string::npos)
    refuse_document(
      fmt::format("has the server '{}'; expected an address that begins with "
                  "https:// or http://, without a user and a query",
                  url));
  return url;
}

// -- secrets ----

std::optional<openapi_secret> secret_of(const json& scheme,
                                        const std::string& text) {
  const auto type = text_in(scheme, "type");
  if (type == "apiKey") {
    const auto in = text_in(scheme, "in");
    const auto name = text_in(scheme, "name");
    if (in == "header")
      return openapi_secret{openapi_place::header, name, text};
    if (in == "query")
      return openapi_secret{openapi_place::query, name, text};
    if (in == "cookie")
      return openapi_secret{openapi_place::cookie, name, text};
    return std::nullopt;
  }
  const auto header = [](std::string held) {
    return openapi_secret{
      openapi_place::header, "Authorization", std::move(held)};
  };
  const auto way = lower(text_in(scheme, "scheme"));
  if (type == "http" && way == "basic")
    return header("Basic " + to_base64(text));
  if ((type == "http" && way == "bearer") || type == "oauth2"
      || type == "openIdConnect")
    return header("Bearer " + text);
  return std::nullopt;
}

// -- parameters ----

std::string default_name(openapi_place place) {
  switch (place) {
  case openapi_place::path:
    return "path_param";
  case openapi_place::query:
    return "query_param";
  case openapi_place::header:
    return "header_param";
  case openapi_place::cookie:
    return "cookie_param";
  case openapi_place::property:
  case openapi_place::body:
    return "body";
  }
  return "body";
}

std::optional<openapi_place> place_named(std::string_view in) {
  if (in == "path")
    return openapi_place::path;
  if (in == "query")
    return openapi_place::query;
  if (in == "header")
    return openapi_place::header;
  if (in == "cookie")
    return openapi_place::cookie;
  return std::nullopt;
}

bool allows_object(const json& schema) {
  const auto& type = field_of(schema, "type");
  return type == json("object")
         || (type.is_array()
             && std::ranges::find(type, json("object")) != type.end());
}

bool is_json_media(std::string_view media) {
  const auto type = lower(media.substr(0, media.find(';')));
  return type == "application/json" || type.ends_with("+json");
}

class operation_reader {
public:
  operation_reader(const openapi_source& source)
    : source_(source),
      document_(source.document) {}

  std::vector<openapi_operation> read() {
    const auto& root = document_.root();
    check_root(root);
    for (const auto& [path, written] : paths_of(root).items()) {
      if (path.starts_with("x-"))
        continue; // An extension, which has any form.
      const auto& item = document_.resolve(written);
      if (item.is_null())
        continue; // Generators write it for an empty path.
      need_mapping(item, path, "paths");
      for (const auto& method : methods)
        if (const auto& operation
            = mapping_field(item, method.field, "the path " + path);
            operation.is_object())
          add(path, item, method, operation);
    }
    check_names();
    if (seen_.empty())
      refuse_document("has no operation; add one, such as paths: {/pets: {get: "
                      "{operationId: list_pets}}}");
    return std::move(made_);
  }

private:
  // Parts that would change the requests if they were left out.
  static void check_root(const json& root) {
    constexpr std::string_view place = "the document";
    list_field(root, "servers", place);
    list_field(root, "security", place);
    mapping_field(mapping_field(root, "components", place),
                  "securitySchemes",
                  "components");
  }

  static const json& paths_of(const json& root) {
    static const json none = json::object();
    const auto& paths = mapping_field(root, "paths", "the document");
    return paths.is_null() ? none : paths;
  }

  void add(const std::string& path,
           const json& item,
           const known_method& method,
           const json& written) {
    auto id = text_in(written, "operationId");
    if (id.empty())
      id = fmt::format("{}_{}", path, method.field);
    id = to_snake_case(id).substr(0, id_bytes_max);
    seen_.push_back(id);
    const auto& filter = source_.tool_filter;
    if (!filter.empty() && std::ranges::find(filter, id) == filter.end())
      return;
    place_ = fmt::format("{} {}", method.name, path);
    if (made_.size() == operations_max)
      refuse_document("has more than 10,000 operations; choose some with "
                      "tool_filter");
    openapi_operation made;
    made.name = source_.tool_name_prefix.empty()
                  ? id
                  : fmt::format("{}_{}", source_.tool_name_prefix, id);
    if (!is_tool_name(made.name))
      made.name.insert(0, "_");
    if (const auto [first, is_new] = names_.emplace(made.name, place_); !is_new)
      refuse_document(fmt::format("has two operations of the name '{}', {} and "
                                  "{}",
                                  made.name,
                                  first->second,
                                  place_));
    made.description = text_in(written, "description");
    if (made.description.empty())
      made.description = text_in(written, "summary");
    made.method = method.method;
    made.method_name = method.name;
    if (!path.starts_with('/') || path.find_first_of("?#") != std::string::npos)
      refuse("has a path that does not begin with /, or has a query");
    made.path = path;
    made.server = read_server(item, written);
    read_parameters(item, written, made);
    read_body(written, made);
    read_secrets(written, made);
    if (!made.secrets.empty() || !source_.headers.empty())
      if (const auto flaw = key_flaw(made.server); !flaw.empty())
        refuse(flaw);
    name_parameters(made);
    made_.push_back(std::move(made));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    refuse_document(fmt::format(
      "has an operation that troupe cannot offer, {}: it {}; leave it out with "
      "tool_filter",
      place_,
      why));
  }

  std::string read_server(const json& item, const json& operation) {
    for (const auto* from : {&operation, &item, &document_.root()})
      if (const auto& servers = list_field(*from, "servers", place_);
          servers.is_array() && !servers.empty()) {
        need_mapping(servers.front(), "servers", place_);
        return server_of(
          servers.front(), source_.server_variables, used_variables_);
      }
    refuse_document("has no servers; add servers: [{url: https://…}]");
  }

  // A parameter of the operation replaces one of the path.
  void read_parameters(const json& item,
                       const json& operation,
                       openapi_operation& made) {
    std::set<std::pair<std::string, std::string>> known;
    for (const auto* from : {&operation, &item}) {
      const auto& list = list_field(*from, "parameters", place_);
      // None if the field is not there.
      for (const auto& written : list) {
        const auto& parameter = document_.resolve(written);
        need_mapping(parameter, "parameters", place_);
        const auto in = text_in(parameter, "in");
        const auto name = text_in(parameter, "name");
        if (known.emplace(name, in).second)
          read_parameter(name, in, parameter, made);
      }
    }
    for (const auto& each : made.parameters)
      if (each.place == openapi_place::path
          && made.path.find("{" + each.written + "}") == std::string::npos)
        refuse(fmt::format("has no place for its path parameter '{}'",
                           each.written));
    auto rest = made.path;
    for (const auto& each : made.parameters)
      if (const auto place = "{" + each.written + "}";
          each.place == openapi_place::path)
        for (auto at = rest.find(place); at != std::string::npos;
             at = rest.find(place))
          rest.erase(at, place.size());
    if (rest.find_first_of("{}") != std::string::npos)
      refuse("has a path with a place that is no parameter");
  }

  void read_parameter(const std::string& name,
                      const std::string& in,
                      const json& written,
                      openapi_operation& made) {
    const auto place = place_named(in);
    if (!place || name.empty())
      refuse(fmt::format("has a parameter '{}' in '{}'", name, in));
    if (*place == openapi_place::header) {
      // OpenAPI ignores the first three; the others belong to the connection.
      constexpr auto ignored
        = std::to_array<std::string_view>({"accept",
                                           "content-type",
                                           "authorization",
                                           "host",
                                           "connection",
                                           "content-length",
                                           "transfer-encoding"});
      if (std::ranges::find(ignored, lower(name)) != ignored.end())
        return;
    }
    openapi_parameter read;
    read.written = name;
    read.place = *place;
    read.is_required = *place == openapi_place::path
                       || field_of(written, "required") == json(true);
    const auto where = fmt::format("the parameter '{}' of {}", name, place_);
    const auto& content = mapping_field(written, "content", where);
    if (content.is_object() && !content.empty()) {
      read.is_json = true;
      const auto& media = mapping_field(content, content.begin().key(), where);
      read.schema = document_.schema(schema_field(media, "schema", where));
    } else {
      read.schema = document_.schema(schema_field(written, "schema", where));
    }
    describe(read.schema, text_in(written, "description"));
    const bool is_form
      = *place == openapi_place::query || *place == openapi_place::cookie;
    read.style = text_in(written, "style");
    if (read.style.empty())
      read.style = is_form ? "form" : "simple";
    check_style(read);
    const auto& explodes = field_of(written, "explode");
    read.explodes
      = explodes.is_boolean() ? explodes.get<bool>() : read.style == "form";
    made.parameters.push_back(std::move(read));
  }

  void check_style(const openapi_parameter& read) const {
    static const std::map<openapi_place, std::vector<std::string_view>> known
      = {{openapi_place::path, {"simple", "label", "matrix"}},
         {openapi_place::query,
          {"form", "spaceDelimited", "pipeDelimited", "deepObject"}},
         {openapi_place::header, {"simple"}},
         {openapi_place::cookie, {"form"}}};
    const auto& styles = known.at(read.place);
    if (std::ranges::find(styles, read.style) == styles.end())
      refuse(fmt::format(
        "has the parameter '{}' with style '{}'", read.written, read.style));
  }

  static void describe(json& schema, const std::string& description) {
    if (!schema.is_object())
      schema = json::object();
    if (!description.empty() && !schema.contains("description"))
      schema["description"] = description;
  }

  void read_body(const json& operation, openapi_operation& made) {
    const auto& body = document_.resolve(field_of(operation, "requestBody"));
    if (!body.is_null())
      need_mapping(body, "requestBody", place_);
    const auto where = "the body of " + place_;
    const auto& content = mapping_field(body, "content", where);
    if (!content.is_object() || content.empty())
      return;
    const auto* media = find_media(content);
    if (media == nullptr)
      refuse(fmt::format("has a body of type '{}'; JSON, forms and text can be "
                         "sent",
                         content.begin().key()));
    made.media = *media;
    const auto& written = document_.resolve(
      schema_field(mapping_field(content, *media, where), "schema", where));
    auto schema = document_.schema(written);
    const auto& properties = field_of(schema, "properties");
    if (allows_object(schema) && properties.is_object()
        && !properties.empty()) {
      const auto& required = field_of(schema, "required");
      for (const auto& [name, held] : properties.items()) {
        const auto& original
          = document_.resolve(field_of(field_of(written, "properties"), name));
        if (field_of(original, "readOnly") == json(true))
          continue;
        openapi_parameter read;
        read.written = name;
        read.place = openapi_place::property;
        read.schema = held;
        describe(read.schema, {});
        read.is_required
          = required.is_array()
            && std::ranges::find(required, json(name)) != required.end();
        made.parameters.push_back(std::move(read));
      }
      return;
    }
    if (lower(made.media).starts_with("application/x-www-form-urlencoded"))
      refuse("has a form without properties as its body");
    openapi_parameter read;
    read.written = field_of(schema, "type") == json("array") ? "array" : "body";
    read.place = openapi_place::body;
    read.schema = std::move(schema);
    describe(read.schema, text_in(body, "description"));
    read.is_required = field_of(body, "required") == json(true);
    made.parameters.push_back(std::move(read));
  }

  static const std::string* find_media(const json& content) {
    static const std::array<bool (*)(std::string_view), 3> wanted = {
      is_json_media,
      [](std::string_view media) {
        return lower(media).starts_with("application/x-www-form-urlencoded");
      },
      [](std::string_view media) { return lower(media).starts_with("text/"); }};
    for (const auto fits : wanted)
      for (auto each = content.begin(); each != content.end(); ++each)
        if (fits(each.key()))
          return &each.key();
    return nullptr;
  }

  // The first alternative for which all secrets are there.
  void read_secrets(const json& operation, openapi_operation& made) {
    const auto& own = list_field(operation, "security", place_);
    const auto& security
      = own.is_array() ? own : field_of(document_.root(), "security");
    if (!security.is_array() || security.empty())
      return;
    std::set<std::string> missing;
    for (const auto& alternative : security) {
      need_mapping(alternative, "security", place_);
      std::vector<openapi_secret> secrets;
      for (const auto& [name, scopes] : alternative.items()) {
        const auto held = source_.credentials.find(name);
        const auto secret
          = held == source_.credentials.end()
              ? std::nullopt
              : secret_of(document_.resolve(field_of(schemes(), name)),
                          held->second);
        if (secret)
          secrets.push_back(*secret);
        else
          missing.insert(name);
      }
      if (secrets.size() == alternative.size()) {
        made.secrets = std::move(secrets);
        return drop_secret_parameters(made);
      }
    }
    refuse(fmt::format("needs credentials of a scheme that troupe can send: {}",
                       fmt::join(missing, ", ")));
  }

  // The model does not choose a value that a secret replaces.
  static void drop_secret_parameters(openapi_operation& made) {
    std::erase_if(made.parameters, [&made](const openapi_parameter& each) {
      return std::ranges::any_of(
        made.secrets, [&each](const openapi_secret& secret) {
          return secret.place == each.place
                 && lower(secret.name) == lower(each.written);
        });
    });
  }

  void name_parameters(openapi_operation& made) const {
    std::map<std::string, std::size_t> counts;
    std::set<std::string> taken;
    for (auto& each : made.parameters) {
      auto name = source_.preserve_property_names ? each.written
                                                  : to_snake_case(each.written);
      if (name.empty())
        name = default_name(each.place);
      each.name = name;
      while (!taken.insert(each.name).second)
        each.name = fmt::format("{}_{}", name, counts[name]++);
    }
  }

  const json& schemes() const {
    return field_of(field_of(document_.root(), "components"),
                    "securitySchemes");
  }

  // Names of the settings that the document does not have.
  void check_names() const {
    for (const auto& name : source_.tool_filter)
      if (std::ranges::find(seen_, name) == seen_.end())
        refuse_document(fmt::format("has no operation '{}', which tool_filter "
                                    "names; it has: {}",
                                    name,
                                    fmt::join(seen_, ", ")));
    for (const auto& [name, text] : source_.credentials) {
      if (!field_of(schemes(), name).is_object())
        refuse_document(fmt::format("has no security scheme '{}', which "
                                    "credentials names",
                                    name));
      if (!secret_of(document_.resolve(field_of(schemes(), name)), text))
        refuse_document(fmt::format("has the security scheme '{}' of a kind "
                                    "that troupe cannot send; it can send "
                                    "apiKey, http with bearer or basic, "
                                    "oauth2 and openIdConnect",
                                    name));
    }
    for (const auto& [name, text] : source_.server_variables)
      if (!used_variables_.contains(name))
        refuse_document(fmt::format(
          "has no server variable '{}', which server_variables names", name));
  }

  const openapi_source& source_;
  const openapi_document document_;
  std::string place_; // Of the operation that is being read.
  std::vector<std::string> seen_;
  std::map<std::string, std::string> names_;
  std::set<std::string> used_variables_;
  std::vector<openapi_operation> made_;
};

} // namespace

std::string to_snake_case(std::string_view text) {
  std::string words;
  for (const char c : text)
    words += is_upper(c) || is_lower(c) || is_digit(c) ? c : '_';
  std::string made;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const char c = words[at];
    const char before = at > 0 ? words[at - 1] : '_';
    const char next = at + 1 < words.size() ? words[at + 1] : '_';
    const bool begins_word = is_upper(c)
                             && (is_lower(before) || is_digit(before)
                                 || (is_upper(before) && is_lower(next)));
    if ((begins_word || c == '_') && !made.empty() && made.back() != '_')
      made += '_';
    if (c != '_')
      made += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  while (made.ends_with('_'))
    made.pop_back();
  return made;
}

std::vector<openapi_operation> read_operations(const openapi_source& source) {
  return operation_reader(source).read();
}

json arguments_schema(const openapi_operation& operation) {
  auto properties = json::object();
  auto required = json::array();
  for (const auto& each : operation.parameters) {
    properties[each.name] = each.schema;
    if (each.is_required)
      required.push_back(each.name);
  }
  json made{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty())
    made["required"] = std::move(required);
  return made;
}

} // namespace troupe

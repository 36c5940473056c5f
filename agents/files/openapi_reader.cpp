#include "troupe/agents/files/openapi_reader.hpp"

#include "troupe/agents/files/model_reader.hpp"
#include "troupe/agents/openapi_tools.hpp"
#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 4> openapi_names
  = {"OpenAPIToolset",
     "google.adk.tools.openapi_tool.OpenAPIToolset",
     "google.adk.tools.openapi_tool.openapi_spec_parser.OpenAPIToolset",
     "google.adk.tools.openapi_tool.openapi_spec_parser.openapi_toolset."
     "OpenAPIToolset"};
constexpr std::array<std::string_view, 3> openapi_item_fields
  = {"name", "args", "require_confirmation"};
constexpr std::array<std::string_view, 15> openapi_fields
  = {"spec_file",
     "spec_str",
     "spec_str_type",
     "spec_dict",
     "tool_filter",
     "tool_name_prefix",
     "credentials",
     "headers",
     "server_variables",
     "preserve_property_names",
     "timeout",
     "answer_bytes_max",
     "auth_scheme",
     "auth_credential",
     "ssl_verify"};
constexpr std::size_t document_bytes_max = std::size_t{8} << 20U;

class openapi_source_reader {
public:
  explicit openapi_source_reader(const file_access& access) : access_(access) {}

  // The beginning of a message about the document; empty if the document stands
  // in the agent file.
  const std::string& origin() const noexcept { return origin_; }

  result<openapi_source> read(const field_reader& item) {
    if (item.node().kind == yaml_node::form::scalar)
      return needs_args(item);
    if (auto checked = check_known(item, "OpenAPIToolset", openapi_item_fields);
        !checked)
      return checked.error();
    auto asks = item.flag("require_confirmation");
    if (!asks)
      return asks.error();
    made_.require_confirmation = *asks;
    const auto* args = item.find("args");
    if (args == nullptr)
      return needs_args(item);
    const field_reader fields(item.file(), *args);
    if (auto checked = check_known(fields, "OpenAPIToolset", openapi_fields);
        !checked)
      return checked.error();
    if (auto read = read_document(fields); !read)
      return read.error();
    if (auto read = read_secrets(fields); !read)
      return read.error();
    if (auto read = read_settings(fields); !read)
      return read.error();
    return std::move(made_);
  }

private:
  static error needs_args(const field_reader& item) {
    return fail_at(item.at(),
                   "OpenAPIToolset needs args with spec_file, spec_str or "
                   "spec_dict (docs/tools.md)");
  }

  result<void> read_document(const field_reader& fields) {
    std::vector<std::string_view> given;
    for (const auto* const name : {"spec_file", "spec_str", "spec_dict"})
      if (fields.find(name) != nullptr)
        given.emplace_back(name);
    if (given.size() != 1)
      return fail_at(fields.at(),
                     "OpenAPIToolset needs one of spec_file, spec_str and "
                     "spec_dict");
    const auto name = given.front();
    // The text is known to be JSON or YAML without it.
    if (auto type = fields.choice(
          "spec_str_type", std::array<std::string_view, 2>{"json", "yaml"});
        !type)
      return type.error();
    if (name == "spec_dict") {
      auto document = fields.object(name);
      if (!document)
        return document.error();
      made_.document = std::move(**document);
      return {};
    }
    auto text = fields.text(name);
    if (!text)
      return text.error();
    auto written = std::move(**text);
    if (name == "spec_file") {
      if (written.find('\0') != std::string::npos)
        return fail_at(fields.at(name), "'spec_file' holds a NUL");
      origin_ = fmt::format("spec_file '{}': ", written);
      auto read
        = read_regular_file(folder_of(fields) / written, document_bytes_max);
      if (!read)
        return fail_at(fields.at(name), origin_ + read.error().message());
      written = std::move(*read);
    }
    auto document = read_openapi(written);
    if (!document)
      return fail_at(fields.at(name), origin_ + document.error().message());
    made_.document = std::move(*document);
    return {};
  }

  result<void> read_secrets(const field_reader& fields) {
    for (const auto* const name :
         {"auth_scheme", "auth_credential", "ssl_verify"})
      if (fields.find(name) != nullptr)
        return fail_at(fields.at(name),
                       fmt::format("'{}' is not supported; {}",
                                   name,
                                   std::string_view(name) == "ssl_verify"
                                     ? "TLS is always verified, with the "
                                       "certificates of SSL_CERT_FILE if it is "
                                       "set"
                                     : "name a variable for a scheme of the "
                                       "document: credentials: {SCHEME: "
                                       "'${NAME}'}"));
    auto credentials = read_text_map(fields, "credentials");
    if (!credentials)
      return credentials.error();
    for (auto& [scheme, text] : *credentials)
      if (auto read = read_secret(fields.at("credentials"), scheme, true, text);
          !read)
        return read;
    made_.credentials = std::move(*credentials);
    auto headers = read_text_map(fields, "headers");
    if (!headers)
      return headers.error();
    for (auto& [header, text] : *headers)
      if (auto read = read_secret(
            fields.at("headers"), header, may_hold_key(header), text);
          !read)
        return read;
    made_.headers = std::move(*headers);
    return {};
  }

  result<void> read_secret(const file_place& at,
                           const std::string& name,
                           bool is_secret,
                           std::string& text) const {
    if (is_secret && text.find("${") == std::string::npos)
      return fail_at(at,
                     fmt::format("'{}': keys are not allowed in files; name an "
                                 "environment variable by ${{NAME}}",
                                 name));
    auto expanded = access_.expand(at, text);
    if (!expanded)
      return expanded.error();
    text = std::move(*expanded);
    return {};
  }

  result<void> read_settings(const field_reader& fields) {
    auto filter = read_texts(fields, "tool_filter");
    if (!filter)
      return filter.error();
    made_.tool_filter = std::move(*filter);
    auto prefix = fields.text("tool_name_prefix");
    if (!prefix)
      return prefix.error();
    made_.tool_name_prefix = prefix->value_or("");
    auto variables = read_text_map(fields, "server_variables");
    if (!variables)
      return variables.error();
    made_.server_variables = std::move(*variables);
    auto preserves = fields.flag("preserve_property_names");
    if (!preserves)
      return preserves.error();
    made_.preserve_property_names = *preserves;
    auto timeout = fields.seconds("timeout");
    if (!timeout)
      return timeout.error();
    made_.timeout = *timeout;
    auto bytes = fields.count("answer_bytes_max");
    if (!bytes)
      return bytes.error();
    made_.answer_bytes_max
      = static_cast<std::size_t>(bytes->value_or(made_.answer_bytes_max));
    return {};
  }

  const file_access& access_;
  openapi_source made_;
  std::string origin_;
};

} // namespace

bool is_openapi_toolset(const yaml_node& item) {
  const auto* name = item.find("name");
  const auto& written = name != nullptr ? name->value->text : item.text;
  return std::ranges::find(openapi_names, written) != openapi_names.end();
}

result<std::vector<tool>> read_openapi_toolset(const field_reader& item,
                                               const file_access& access) {
  openapi_source_reader reader(access);
  const auto source = reader.read(item);
  if (!source)
    return source.error();
  try {
    return openapi_tools(*source);
  } catch (const error& failure) {
    return fail_at(item.at(), reader.origin() + failure.message());
  }
}

} // namespace troupe

#include "troupe/agents/outside/openapi_request.hpp"

#include "troupe/models/http/header.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

std::string escaped(std::string_view text) {
  if (text.empty())
    return {};
  const std::unique_ptr<char, decltype(&curl_free)> made(
    curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())),
    &curl_free);
  return made ? std::string(made.get()) : std::string();
}

std::string plain_text(const json& argument) {
  if (argument.is_null())
    return {};
  return argument.is_string() ? argument.get<std::string>() : to_text(argument);
}

using text_pairs = std::vector<std::pair<std::string, std::string>>;

// The elements of an argument as texts; those of an object alternate with their
// names, or are joined by `=`.
std::vector<std::string> elements_of(const json& argument, bool explodes) {
  std::vector<std::string> texts;
  if (argument.is_array()) {
    for (const auto& each : argument)
      texts.push_back(escaped(plain_text(each)));
  } else if (argument.is_object()) {
    for (const auto& [name, each] : argument.items()) {
      auto text = escaped(plain_text(each));
      if (explodes) {
        texts.push_back(fmt::format("{}={}", escaped(name), text));
      } else {
        texts.push_back(escaped(name));
        texts.push_back(std::move(text));
      }
    }
  } else {
    texts.push_back(escaped(plain_text(argument)));
  }
  return texts;
}

std::string path_text(const openapi_parameter& of, const json& argument) {
  if (of.is_json)
    return escaped(to_text(argument));
  const auto texts = elements_of(argument, of.explodes);
  if (of.style == "label")
    return fmt::format(".{}", fmt::join(texts, of.explodes ? "." : ","));
  if (of.style != "matrix")
    return fmt::format("{}", fmt::join(texts, ","));
  if (!of.explodes || !argument.is_structured())
    return fmt::format(";{}={}", escaped(of.written), fmt::join(texts, ","));
  std::string made;
  for (const auto& each : texts)
    made += argument.is_object()
              ? fmt::format(";{}", each)
              : fmt::format(";{}={}", escaped(of.written), each);
  return made;
}

// Adds the pairs of a query or a form, encoded.
void add_pairs(const openapi_parameter& of,
               const json& argument,
               text_pairs& into) {
  const auto name = escaped(of.written);
  if (of.is_json) {
    into.emplace_back(name, escaped(to_text(argument)));
  } else if (argument.is_object() && of.style == "deepObject") {
    for (const auto& [key, each] : argument.items())
      into.emplace_back(name + escaped(fmt::format("[{}]", key)),
                        escaped(plain_text(each)));
  } else if (argument.is_object() && of.explodes) {
    for (const auto& [key, each] : argument.items())
      into.emplace_back(escaped(key), escaped(plain_text(each)));
  } else if (argument.is_array() && of.explodes) {
    for (const auto& each : argument)
      into.emplace_back(name, escaped(plain_text(each)));
  } else {
    const auto* const between = of.style == "spaceDelimited"  ? "%20"
                                : of.style == "pipeDelimited" ? "%7C"
                                                              : ",";
    into.emplace_back(
      name,
      fmt::format("{}", fmt::join(elements_of(argument, false), between)));
  }
}

std::string header_text(const openapi_parameter& of, const json& argument) {
  if (of.is_json)
    return to_text(argument);
  std::vector<std::string> texts;
  if (argument.is_object()) {
    for (const auto& [name, each] : argument.items())
      texts.push_back(of.explodes
                        ? fmt::format("{}={}", name, plain_text(each))
                        : fmt::format("{},{}", name, plain_text(each)));
  } else if (argument.is_array()) {
    for (const auto& each : argument)
      texts.push_back(plain_text(each));
  } else {
    texts.push_back(plain_text(argument));
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

std::string joined(const text_pairs& pairs, std::string_view between) {
  std::string made;
  for (const auto& [name, text] : pairs)
    made += fmt::format("{}{}={}", made.empty() ? "" : between, name, text);
  return made;
}

// Servers decode the path and then merge such segments, even encoded ones.
result<void> check_path(const openapi_parameter& of, const json& argument) {
  const auto refuse = [&of](std::string_view why) {
    return error(errc::invalid_argument,
                 fmt::format("the argument '{}' {}, which would change the "
                             "path of the request",
                             of.name,
                             why));
  };
  if (argument.is_structured()) {
    if (argument.empty())
      return refuse("is empty");
    for (const auto& each : argument)
      if (auto fits = check_path(of, each); !fits)
        return fits;
    return {};
  }
  const auto text = plain_text(argument);
  if (text.empty())
    return refuse("is empty");
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find_first_of("/\\", begin), text.size());
    const auto segment = text.substr(begin, end - begin);
    if (segment == "." || segment == "..")
      return refuse("has a segment of dots");
    begin = end + 1;
  }
  return {};
}

bool is_form_media(std::string_view media) {
  return media.find("x-www-form-urlencoded") != std::string_view::npos;
}

// The values may be secret.
result<void> check_headers(const http_request& request) {
  for (const auto& [name, value] : request.headers)
    if (!is_header_name(name) || !is_header_value(value))
      return error(
        errc::invalid_argument,
        fmt::format("the header '{}' cannot be sent: its name or "
                    "value has a character that headers cannot have, "
                    "such as a line break",
                    name));
  return {};
}

bool is_text_media(std::string_view media) {
  return media.starts_with("text/");
}

} // namespace

result<http_request> make_request(const openapi_operation& operation,
                                  const json& args) {
  http_request made;
  made.method = operation.method;
  auto path = operation.path;
  text_pairs query;
  text_pairs cookies;
  text_pairs form;
  auto properties = json::object();
  json body;
  bool has_body = false;
  for (const auto& each : operation.parameters) {
    const auto found = args.find(each.name);
    if (found == args.end())
      continue;
    const auto& argument = *found;
    const bool is_sent = !argument.is_null() || each.is_json;
    switch (each.place) {
    case openapi_place::path: {
      if (auto fits = check_path(each, argument); !fits)
        return fits.error();
      const auto text = path_text(each, argument);
      const auto place = "{" + each.written + "}";
      for (auto at = path.find(place); at != std::string::npos;
           at = path.find(place, at + text.size()))
        path.replace(at, place.size(), text);
      break;
    }
    case openapi_place::query:
      if (is_sent)
        add_pairs(each, argument, query);
      break;
    case openapi_place::cookie:
      if (is_sent)
        add_pairs(each, argument, cookies);
      break;
    case openapi_place::header:
      if (is_sent)
        made.headers.emplace_back(each.written, header_text(each, argument));
      break;
    case openapi_place::property: {
      has_body = true;
      properties[each.written] = argument;
      if (!is_form_media(operation.media) || argument.is_null())
        break;
      openapi_parameter field;
      field.written = each.written;
      field.explodes = argument.is_array();
      field.is_json = argument.is_object();
      add_pairs(field, argument, form);
      break;
    }
    case openapi_place::body:
      has_body = true;
      body = argument;
      break;
    }
  }
  for (const auto& [place, name, text] : operation.secrets) {
    if (place == openapi_place::header)
      made.headers.emplace_back(name, text);
    else
      (place == openapi_place::query ? query : cookies)
        .emplace_back(escaped(name), escaped(text));
  }
  if (!cookies.empty())
    made.headers.emplace_back("Cookie", joined(cookies, "; "));
  made.url = operation.server + path;
  if (!query.empty())
    made.url += "?" + joined(query, "&");
  if (has_body)
    made.headers.emplace_back("Content-Type", operation.media);
  if (auto checked = check_headers(made); !checked)
    return checked.error();
  if (!has_body)
    return made;
  if (is_form_media(operation.media) && body.is_null())
    made.body = joined(form, "&");
  else if (is_text_media(operation.media))
    made.body = plain_text(body.is_null() ? properties : body);
  else
    made.body
      = to_text(body.is_null() && !properties.empty() ? properties : body);
  return made;
}

} // namespace troupe

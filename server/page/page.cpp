#include "troupe/server/page/page.hpp"

#include <string>
#include <utility>

namespace troupe::serving {

namespace embedded {

extern const std::string_view page_frame;
extern const std::string_view page_style;
extern const std::string_view page_charts;
extern const std::string_view page_script;

} // namespace embedded

namespace {

// Texts of sessions are from models and strangers. With this policy a browser
// runs no script and loads nothing, even if such a text became markup.
constexpr std::string_view policy
  = "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

response to_response(const page_file& file) {
  response answer;
  answer.content_type = file.type;
  answer.body = file.text;
  return std::move(answer)
    .with("content-security-policy", std::string(policy))
    .with("x-content-type-options", "nosniff")
    .with("referrer-policy", "no-referrer")
    .with("cache-control", "no-cache");
}

} // namespace

std::array<page_file, 4> page_files() {
  constexpr std::string_view script = "text/javascript; charset=utf-8";
  return {{{"/", "text/html; charset=utf-8", embedded::page_frame},
           {"/page.css", "text/css; charset=utf-8", embedded::page_style},
           {"/page.js", script, embedded::page_script},
           {"/charts.js", script, embedded::page_charts}}};
}

void add_page(router& routes) {
  for (const auto& file : page_files())
    routes.add("GET", std::string(file.path), [file](exchange asked) {
      asked.to.send(to_response(file));
    });
}

} // namespace troupe::serving

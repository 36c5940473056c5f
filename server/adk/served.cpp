#include "troupe/server/adk/served.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/server/adk/rights.hpp"
#include "troupe/server/page/page.hpp"

namespace troupe::serving {

// The file openapi.json.
namespace embedded {

extern const std::string_view openapi;

} // namespace embedded

namespace {

void tell_requests(const served_ptr&, exchange asked) {
  asked.to.send(json_text_response(std::string(embedded::openapi)));
}

} // namespace

std::string spelled(std::string_view id) {
  return std::string(trimmed(id));
}

session_key key_in(const path_values& path) {
  return {
    spelled(path["app"]), spelled(path["user"]), spelled(path["session"])};
}

router make_routes(const served_ptr& on) {
  router routes;
  routes.check_by(check_rights);
  add_apps(routes, on);
  add_artifacts(routes, on);
  add_events(routes, on);
  add_figures(routes, on);
  add_progress(routes, on);
  add_runs(routes, on);
  add_sessions(routes, on);
  add_time_travel(routes, on);
  add_unfinished_runs(routes, on);
  if (on->options.ui_folder.empty())
    add_page(routes);
  else
    add_pages(routes, on);
  routes.add("GET", "/openapi.json", handled_by(on, tell_requests));
  return routes;
}

} // namespace troupe::serving

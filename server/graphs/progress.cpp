// The progress of workflows in a session, and drawings of an app that point at
// an event. ADK has the second request.

#include "troupe/agents/drawings/dot_text.hpp"
#include "troupe/agents/drawings/marks.hpp"
#include "troupe/agents/workflow_progress.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/served.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

const agent* app_of(const served& on, const exchange& asked) {
  const auto found = on.apps.find(spelled(asked.path["app"]));
  return found == on.apps.end() ? nullptr : &found->second;
}

// Sessions of apps that are not served tell their workflows themselves.
workflow_progress progress_of(const agent* root) {
  return root == nullptr ? workflow_progress() : workflow_progress(*root);
}

// -- workflows ----

json workflows_in(const session& held,
                  const agent* root,
                  const std::string* invocation) {
  auto seen = progress_of(root);
  for (const auto& each : held.events())
    // A view tells its conflict itself.
    static_cast<void>(seen.add(each));
  auto shown = json::array();
  for (const auto& each : seen.workflows())
    if (invocation == nullptr
        || std::ranges::find(each.invocations, *invocation)
             != each.invocations.end())
      shown.push_back(to_json(each));
  auto answer = json::object();
  answer["revision"] = held.revision();
  answer["workflows"] = std::move(shown);
  return answer;
}

void show_workflows(const served_ptr& on, exchange asked) {
  const auto at = number_in(asked.asked, "at");
  if (!at)
    return asked.to.send(failure(at.error()));
  const auto key = key_in(asked.path);
  on->on.sessions()
    .get(key, {.at = *at})
    .then([on, asked = std::move(asked)](const result<session>& held) {
      if (!held)
        return asked.to.send(failure(held.error()));
      on->threads->work([on, asked, held = *held] {
        asked.to.send(json_response(workflows_in(
          held, app_of(*on, asked), asked.asked.target.find("invocation"))));
      });
    });
}

// -- an event ----

// The states are those after the event. Without the event, ADK answers with an
// empty object.
json drawing_at(const session& held,
                const agent& root,
                const std::string& id,
                bool is_dark) {
  auto answer = json::object();
  workflow_progress seen(root);
  for (const auto& each : held.events()) {
    // A workflow in conflict is drawn without states.
    static_cast<void>(seen.add(each));
    if (each->id != id)
      continue;
    auto drawn = drawings::draw(root);
    drawings::mark(drawn, seen.workflows());
    drawings::point_at(drawn, *each);
    answer["dotSrc"] = drawings::to_dot_text(drawn, is_dark);
    break;
  }
  return answer;
}

void show_event(const served_ptr& on, exchange asked) {
  const auto is_dark = flag_in(asked.asked, "dark_mode");
  if (!is_dark)
    return asked.to.send(failure(is_dark.error()));
  if (app_of(*on, asked) == nullptr)
    return asked.to.send(
      failure({errc::not_found, "App not found: " + asked.path["app"]}));
  const auto key = key_in(asked.path);
  on->on.sessions().get(key).then(
    [on, asked = std::move(asked), is_dark = *is_dark](
      const result<session>& held) {
      if (!held)
        return asked.to.send(failure(held.error()));
      on->threads->work([on, asked, held = *held, is_dark] {
        asked.to.send(json_response(
          drawing_at(held, *app_of(*on, asked), asked.path["event"], is_dark)));
      });
    });
}

} // namespace

void add_progress(router& routes, const served_ptr& on) {
  const std::string session = "/apps/{app}/users/{user}/sessions/{session}";
  routes.add("GET", session + "/workflows", handled_by(on, show_workflows));
  // Versions of the page of ADK ask under different paths.
  for (const auto* beginning : {"", "/dev"})
    routes.add("GET",
               beginning + session + "/events/{event}/graph",
               handled_by(on, show_event));
}

} // namespace troupe::serving

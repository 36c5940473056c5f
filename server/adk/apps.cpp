#include "troupe/agents/drawings/adk_form.hpp"
#include "troupe/agents/drawings/dot_text.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/server/http/event_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace troupe::serving {

namespace {

// An instruction that a function makes has no text before a run.
std::string instruction_of(const llm_options& options) {
  if (!options.static_instruction.empty())
    return options.static_instruction;
  const auto* text = std::get_if<std::string>(&options.instruction.source());
  return text == nullptr ? std::string() : *text;
}

json declarations_of(const llm_options& options) {
  auto tools = json::array();
  const auto declare = [&tools](const tool& each) {
    tools.push_back(
      {{"functionDeclarations",
        json::array({{{"name", each.name()},
                      {"description", each.description()},
                      {"parametersJsonSchema", each.parameters()}}})}});
  };
  std::ranges::for_each(options.tools, declare);
  for (const auto& set : options.toolsets)
    std::ranges::for_each(*set->known_tools(), declare);
  return tools;
}

// Adds an agent and those below it. Only LLM agents are shown, as in ADK.
void describe(json& agents, const agent& which) {
  auto names = json::array();
  for (const auto& each : which.sub_agents())
    names.push_back(each.name());
  if (const auto* options = std::get_if<llm_options>(&which.kind()))
    agents[which.name()] = {{"name", which.name()},
                            {"description", which.description()},
                            {"instruction", instruction_of(*options)},
                            {"tools", declarations_of(*options)},
                            {"sub_agents", std::move(names)}};
  for (const auto& each : which.sub_agents())
    describe(agents, each);
}

json summary_of(const std::string& name, const agent& root) {
  return {{"name", name},
          {"rootAgentName", root.name()},
          {"description", root.description()},
          {"language", "yaml"},
          {"isComputerUse", false}};
}

void list_apps(const served_ptr& on, exchange asked) {
  const auto* wanted = asked.asked.target.find("detailed");
  const bool is_detailed = wanted != nullptr && *wanted == "true";
  auto apps = json::array();
  for (const auto& [name, root] : on->apps)
    apps.push_back(is_detailed ? summary_of(name, root) : json(name));
  asked.to.send(
    json_response(is_detailed ? json{{"apps", std::move(apps)}} : apps));
}

response not_found(std::string_view what, std::string_view name) {
  return detail(404, fmt::format("{} not found: {}", what, name))
    .with("troupe-error", "not_found");
}

void show_app(const served_ptr& on, exchange asked) {
  const auto found = on->apps.find(spelled(asked.path["app"]));
  if (found == on->apps.end())
    return asked.to.send(not_found("App", asked.path["app"]));
  const auto& root = found->second;
  if (!std::holds_alternative<llm_options>(root.kind()))
    return asked.to.send(detail(400, "Root agent is not an LlmAgent"));
  auto shown = summary_of(found->first, root);
  auto& agents = shown["agents"] = json::object();
  describe(agents, root);
  asked.to.send(json_response(shown));
}

// -- drawings of an app ----

// Draws the app on a thread for long work, as its agents may be thousands.
template <class Show>
void draw_app(const served_ptr& on, exchange asked, Show show) {
  const auto found = on->apps.find(spelled(asked.path["app"]));
  if (found == on->apps.end())
    return asked.to.send(not_found("App", asked.path["app"]));
  on->threads->work([on, app = *found, asked = std::move(asked), show] {
    asked.to.send(show(app.first, drawings::draw(app.second), asked.asked));
  });
}

void show_graph(const served_ptr& on, exchange asked) {
  draw_app(
    on,
    std::move(asked),
    [](const std::string& app, const drawings::node& root, const request&) {
      auto shown = json::object();
      shown["name"] = app;
      shown["root_agent"] = drawings::to_adk_form(root);
      return json_response(shown);
    });
}

response images_of(const drawings::node& root, const request& asked) {
  const auto dark = flag_in(asked, "dark_mode");
  if (!dark)
    return failure(dark.error());
  const auto* wanted = asked.target.find("node");
  const auto path = wanted == nullptr ? std::string() : *wanted;
  const auto* drawn = drawings::find_below(root, path);
  if (drawn == nullptr)
    return not_found("Node", path);
  auto images = json::object();
  const auto add = [&](const std::string& at, const drawings::node& shown) {
    images[at]["dotSrc"] = drawings::to_dot_text(shown, *dark);
  };
  add(path, *drawn);
  for (const auto& [at, shown] : drawings::workflows_below(*drawn, path))
    add(at, *shown);
  return json_response(images);
}

void show_graph_image(const served_ptr& on, exchange asked) {
  draw_app(on,
           std::move(asked),
           [](const std::string&,
              const drawings::node& root,
              const request& wanted) { return images_of(root, wanted); });
}

// -- users ----

// Callers who see one user get this name alone.
void list_users(const served_ptr& on, exchange asked) {
  constexpr std::uint64_t limit_default = 100;
  constexpr std::uint64_t limit_max = 10'000;
  if (!asked.who.sees_all())
    return asked.to.send(json_response(json::array({asked.who.user})));
  const auto limit = number_in(asked.asked, "limit");
  if (!limit)
    return asked.to.send(failure(limit.error()));
  const auto* cursor = asked.asked.target.find("cursor");
  const auto size = std::min(limit->value_or(limit_default), limit_max);
  on->on.sessions()
    .list_users({asked.path["app"],
                 static_cast<std::size_t>(size),
                 cursor == nullptr ? std::string() : *cursor})
    .then([to = asked.to](const result<name_page>& page) {
      if (!page)
        return to.send(failure(page.error()));
      auto answer = json_response(page->names);
      if (!page->next_cursor.empty())
        answer = std::move(answer).with("troupe-next-cursor",
                                        percent_encoded(page->next_cursor));
      to.send(std::move(answer));
    });
}

// -- state of an app or a user ----

// Delivers states to one client until one of both ends.
class live_states : public std::enable_shared_from_this<live_states> {
public:
  live_states(served_ptr on, state_follower source, const reply& to)
    : on_(std::move(on)),
      source_(std::make_shared<state_follower>(std::move(source))),
      stream_(to, {}) {}

  void start(const reply& to) {
    on_->follows.add(source_);
    to.watch([source = std::weak_ptr(source_)](departure how) {
      const auto held = source.lock();
      if (held && how == departure::whole)
        held->close();
    });
    ask();
  }

private:
  void ask() {
    source_->next().then([self = shared_from_this()](
                           const result<std::optional<state_change>>& next) {
      if (next && *next)
        self->take(**next);
      else
        self->finish(next);
    });
  }

  void take(const state_change& change) {
    stream_.write(
      to_text(to_json(change)),
      [self = shared_from_this()] { self->ask(); },
      std::to_string(change.revision));
  }

  void finish(const result<std::optional<state_change>>& last) {
    on_->follows.remove(*source_);
    if (!last)
      stream_.write(
        to_text(error_line(last.error(), on_->on.environment()->now())), {});
    stream_.end();
  }

  const served_ptr on_;
  const std::shared_ptr<state_follower> source_;
  const event_stream stream_;
};

void answer_state(const reply& to, const result<shared_snapshot>& read) {
  to.send(read ? json_response(
                   {{"revision", read->revision}, {"state", read->state.all()}})
                   .with("etag", etag_of(read->revision))
               : failure(read.error()));
}

void give_state(const served_ptr& on, exchange asked, shared_state wanted) {
  if (!wants_stream(asked.asked)) {
    wanted.snapshot().then(
      [to = asked.to](const result<shared_snapshot>& read) {
        answer_state(to, read);
      });
    return;
  }
  const auto place = stream_place(asked.asked);
  if (!place)
    return asked.to.send(failure(place.error()));
  // The names are checked, and a place that the state is not at yet is refused,
  // before the stream begins.
  wanted.snapshot().then([on, asked = std::move(asked), place = *place, wanted](
                           const result<shared_snapshot>& read) {
    if (!read)
      return asked.to.send(failure(read.error()));
    if (place && *place > read->revision)
      return asked.to.send(
        failure({errc::not_found,
                 fmt::format("the state is at revision {}, so it cannot be "
                             "followed from revision {}",
                             read->revision,
                             *place)}));
    if (asked.asked.method == "HEAD")
      return asked.to.send(stream_head());
    std::make_shared<live_states>(
      on, wanted.follow({.from = place.value_or(read->revision)}), asked.to)
      ->start(asked.to);
  });
}

void get_app_state(const served_ptr& on, exchange asked) {
  auto wanted = on->on.sessions().state_of_app(asked.path["app"]);
  give_state(on, std::move(asked), std::move(wanted));
}

void get_user_state(const served_ptr& on, exchange asked) {
  auto wanted
    = on->on.sessions().state_of_user(asked.path["app"], asked.path["user"]);
  give_state(on, std::move(asked), std::move(wanted));
}

// -- the server ----

void tell_health(const served_ptr&, exchange asked) {
  asked.to.send(json_text_response(R"({"status":"ok"})"));
}

void tell_version(const served_ptr&, exchange asked) {
  asked.to.send(json_response({{"version", TROUPE_VERSION},
                               {"language", "cpp"},
                               {"language_version", "20"}}));
}

} // namespace

void add_apps(router& routes, const served_ptr& on) {
  routes.add("GET", "/health", handled_by(on, tell_health));
  routes.add("GET", "/version", handled_by(on, tell_version));
  routes.add("GET", "/list-apps", handled_by(on, list_apps));
  routes.add("GET", "/apps/{app}/app-info", handled_by(on, show_app));
  routes.add("GET", "/dev/apps/{app}/build_graph", handled_by(on, show_graph));
  routes.add("GET",
             "/dev/apps/{app}/build_graph_image",
             handled_by(on, show_graph_image));
  routes.add("GET", "/apps/{app}/users", handled_by(on, list_users));
  routes.add("GET", "/apps/{app}/state", handled_by(on, get_app_state));
  routes.add(
    "GET", "/apps/{app}/users/{user}/state", handled_by(on, get_user_state));
}

} // namespace troupe::serving

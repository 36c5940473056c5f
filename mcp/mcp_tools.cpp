#include "troupe/mcp/mcp_tools.hpp"

#include "troupe/agents/turns/name.hpp"
#include "troupe/core/processes/inherited_variables.hpp"
#include "troupe/mcp/client/connection.hpp"
#include "troupe/mcp/client/tool_answer.hpp"
#include "troupe/mcp/transports/http_transport.hpp"
#include "troupe/mcp/transports/stdio_transport.hpp"
#include "troupe/models/formats/key_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>
#include <set>
#include <utility>

namespace troupe {

namespace {

using namespace mcp;

// Vendors of models refuse longer names.
constexpr std::size_t name_bytes_max = 64;
// Larger images are only kept as artifacts: the event of the call holds them in
// base64.
constexpr std::size_t shown_bytes_max = std::size_t{192} << 10U;

[[noreturn]] void refuse(std::string why) {
  throw error(errc::invalid_argument, std::move(why));
}

// -- the source ---------------------------------------------------------------

std::optional<std::string> variable(const mcp_options& options,
                                    const std::string& name) {
  if (options.variable)
    return options.variable(name);
  const char* held = std::getenv(name.c_str());
  return held != nullptr ? std::optional<std::string>(held) : std::nullopt;
}

std::string needed_variable(const mcp_options& options,
                            const std::string& name,
                            std::string_view server) {
  auto held = variable(options, name);
  if (!held || held->empty())
    refuse(fmt::format("the MCP server '{}' needs the environment variable {}, "
                       "which is not set, or empty",
                       server,
                       name));
  return std::move(*held);
}

std::string name_of(const mcp_source& source) {
  return source.command.empty() ? shown_url(source.url) : source.command;
}

void check(const mcp_source& source) {
  if (source.command.empty() == source.url.empty())
    refuse("an MCP server has either a command or a url: set one of them");
  const auto name = name_of(source);
  if (!source.url.empty() && !source.url.starts_with("https://")
      && !source.url.starts_with("http://"))
    refuse(fmt::format("the address '{}' of an MCP server does not begin with "
                       "https:// or http://",
                       name));
  const auto authority = source.url.substr(0, source.url.find('/', 8));
  if (authority.find('@') != std::string::npos)
    refuse("the address of an MCP server has a user or a password before '@'; "
           "use bearer_variable or header_variables");
  const bool has_program_fields = !source.args.empty() || !source.env.empty()
                                  || !source.passed_variables.empty()
                                  || !source.folder.empty();
  if (!source.url.empty() && has_program_fields)
    refuse(fmt::format("the MCP server '{}' has a url, so it has no arguments, "
                       "environment and folder",
                       name));
  const bool has_headers = !source.headers.empty()
                           || !source.header_variables.empty()
                           || !source.bearer_variable.empty();
  if (source.url.empty() && has_headers)
    refuse(fmt::format("the MCP server '{}' has a command, so it has no "
                       "headers and token",
                       name));
  if (!source.tool_name_prefix.empty()
      && !is_tool_name(source.tool_name_prefix))
    refuse(fmt::format("the prefix '{}' is not the beginning of a tool's name",
                       source.tool_name_prefix));
  if (source.start_timeout.count() <= 0 || source.call_timeout.count() < 0
      || source.list_lifetime.count() < 0)
    refuse(fmt::format("the MCP server '{}' has a time limit that is not above "
                       "0",
                       name));
  if (has_headers)
    if (const auto flaw = key_flaw(source.url); !flaw.empty())
      refuse(flaw);
}

program program_of(const mcp_source& source, const mcp_options& options) {
  program made{source.command, source.args, {}, source.folder};
  auto environment = source.env;
  for (const auto& name : source.passed_variables)
    environment.emplace(name, needed_variable(options, name, source.command));
  for (const auto* name : processes::inherited_variables)
    if (auto held = variable(options, name))
      environment.emplace(name, std::move(*held));
  for (const auto& [name, held] : environment)
    made.environment.push_back(fmt::format("{}={}", name, held));
  return made;
}

http_place place_of(const mcp_source& source, const mcp_options& options) {
  http_place made{source.url,
                  http_headers(source.headers.begin(), source.headers.end()),
                  options.message_bytes_max};
  for (const auto& [header, name] : source.header_variables)
    made.headers.emplace_back(header,
                              needed_variable(options, name, name_of(source)));
  if (!source.bearer_variable.empty())
    made.headers.emplace_back(
      "Authorization",
      "Bearer "
        + needed_variable(options, source.bearer_variable, name_of(source)));
  return made;
}

open_transport opener(const mcp_source& source, const mcp_options& options) {
  if (source.url.empty())
    return
      [started = program_of(source, options),
       limits = stdio_limits{options.message_bytes_max, options.end_grace}](
        const std::shared_ptr<io_thread>& thread, transport_events events) {
        return start_stdio(thread, started, limits, std::move(events));
      };
  return [place = place_of(source, options)](
           const std::shared_ptr<io_thread>& thread,
           transport_events events) -> result<std::shared_ptr<transport>> {
    return make_http_transport(thread, place, std::move(events));
  };
}

// -- calls --------------------------------------------------------------------

// The connection with its thread, shared by the set and its tools.
class link {
public:
  link(const mcp_source& source, const mcp_options& options)
    : thread_(std::make_shared<io_thread>()),
      connection_(std::make_shared<connection>(
        thread_, name_of(source), source, options, opener(source, options))) {}

  link(const link&) = delete;
  link& operator=(const link&) = delete;

  ~link() {
    connection_->close();
    thread_->finish();
  }

  connection& to_server() const noexcept { return *connection_; }

  std::weak_ptr<connection> watch() const noexcept { return connection_; }

private:
  const std::shared_ptr<io_thread> thread_;
  const std::shared_ptr<connection> connection_;
};

using link_ptr = std::shared_ptr<link>;

// A request to the server, which a stop token gives up.
template <class T>
class stoppable_call : public detail::call<T> {
public:
  stoppable_call(link_ptr to, std::stop_token stop)
    : link_(std::move(to)),
      stop_(std::move(stop)) {}

  void start(completion<T> done) final {
    auto asked = std::make_shared<wanted<T>>();
    auto until = std::make_shared<std::optional<std::stop_callback<stopper>>>();
    // The references end with the call.
    asked->done = [done = std::move(done), until, kept = link_](
                    result<T> answer) { done(std::move(answer)); };
    // Before the request: a stop that comes first is answered first.
    until->emplace(stop_, stopper{link_->watch(), asked});
    begin(asked);
  }

  result<T> wait() final {
    if (executor::current() != nullptr)
      return error(
        errc::would_deadlock,
        "this call would block a thread of the runtime; co_await it");
    std::promise<result<T>> promise;
    start(
      [&promise](result<T> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  }

protected:
  virtual void begin(const std::shared_ptr<wanted<T>>& asked) = 0;

  const link_ptr link_;

private:
  struct stopper {
    // Not of the link, whose end waits for the connection's thread.
    std::weak_ptr<connection> to;
    std::shared_ptr<wanted<T>> asked;

    void operator()() const {
      if (const auto there = to.lock())
        there->cancel(asked,
                      error(errc::cancelled, "the run has cancelled the call"));
    }
  };

  const std::stop_token stop_;
};

class tool_request final : public stoppable_call<json> {
public:
  tool_request(link_ptr to,
               std::stop_token stop,
               std::string name,
               std::string shown,
               json args,
               trace_context trace)
    : stoppable_call(std::move(to), std::move(stop)),
      name_(std::move(name)),
      shown_(std::move(shown)),
      args_(std::move(args)),
      trace_(std::move(trace)) {}

private:
  void begin(const std::shared_ptr<wanted<json>>& asked) override {
    link_->to_server().call(asked,
                            std::move(name_),
                            std::move(shown_),
                            std::move(args_),
                            std::move(trace_));
  }

  std::string name_;
  std::string shown_;
  json args_;
  trace_context trace_;
};

// The text with `_` for all but letters, digits, `_` and `-`.
std::string plain(std::string text) {
  for (auto& c : text) {
    const bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                         || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!is_fine)
      c = '_';
  }
  return text;
}

// Saves media as artifacts, and shows the smaller ones to the model.
task<void> keep_media(tool_context& context,
                      const std::string& tool,
                      tool_answer& answer) {
  std::size_t number = 0;
  std::size_t shown_bytes = 0;
  for (auto& each : answer.media) {
    ++number;
    auto name = fmt::format("{}_{}_{}{}",
                            tool,
                            plain(context.function_call_id()),
                            number,
                            each.extension);
    const auto saved = co_await context.artifacts().save(name, each.content);
    // The code for a runtime without artifacts.
    if (!saved && saved.error().code() != errc::invalid_argument)
      throw saved.error();
    if (saved)
      answer.result["content"][each.index]["artifact"] = std::move(name);
    if (!each.is_for_models || shown_bytes + each.bytes > shown_bytes_max)
      continue;
    shown_bytes += each.bytes;
    context.attach(std::move(each.content));
  }
}

task<json> call_tool(link_ptr to,
                     std::string name,
                     std::string shown,
                     const json& args,
                     tool_context& context) {
  pending<json> asked(std::make_unique<tool_request>(std::move(to),
                                                     context.stop(),
                                                     std::move(name),
                                                     shown,
                                                     args,
                                                     context.trace()));
  const auto said = co_await asked;
  if (!said)
    throw said.error();
  auto answer = read_answer(*said);
  if (!answer)
    throw answer.error();
  co_await keep_media(context, shown, *answer);
  co_return std::move(answer->result);
}

// -- tools --------------------------------------------------------------------

std::string shown_name(const mcp_source& source, const std::string& name) {
  auto shown = source.tool_name_prefix.empty()
                 ? name
                 : fmt::format("{}_{}", source.tool_name_prefix, name);
  shown = plain(std::move(shown));
  if (!is_tool_name(shown))
    shown.insert(0, "_");
  shown.resize(std::min(shown.size(), name_bytes_max));
  return shown;
}

json parameters_of(const offered_tool& offered) {
  auto schema = offered.schema;
  if (!schema.is_object())
    schema = json::object();
  schema.erase("$schema");
  schema.emplace("type", "object");
  return schema;
}

bool asks_user(const mcp_source& source, const offered_tool& offered) {
  switch (source.require_confirmation) {
  case mcp_confirmation::all:
    return true;
  case mcp_confirmation::destructive:
    return offered.is_destructive;
  case mcp_confirmation::none:
    break;
  }
  return false;
}

tool make_tool(const link_ptr& to,
               const mcp_source& source,
               const offered_tool& offered) {
  tool_options made;
  made.name = shown_name(source, offered.name);
  made.description = offered.description;
  made.parameters = parameters_of(offered);
  made.is_described_by_server = true;
  if (source.call_timeout.count() > 0)
    made.timeout = source.call_timeout;
  made.require_confirmation = asks_user(source, offered);
  made.run = [to, name = offered.name, shown = made.name](
               const json& args, tool_context& context) {
    return call_tool(to, name, shown, args, context);
  };
  return tool(std::move(made));
}

// The tools that the filter lets through. Those that no model could call are
// left out, with a line.
result<tool_list> make_tools(const link_ptr& to,
                             const mcp_source& source,
                             const mcp_options& options,
                             const offer& offered) {
  const auto& filter = source.tool_filter;
  for (const auto& name : filter)
    if (std::ranges::find(*offered, name, &offered_tool::name)
        == offered->end()) {
      std::vector<std::string> names;
      for (const auto& each : *offered)
        names.push_back(each.name);
      return error(errc::tool_failed,
                   fmt::format("the MCP server '{}' has no tool '{}', which "
                               "tool_filter names; it has: {}",
                               name_of(source),
                               name,
                               fmt::join(names, ", ")));
    }
  const auto leave_out = [&](const offered_tool& each, std::string_view why) {
    if (options.on_log)
      options.on_log(fmt::format("the tool '{}' of the MCP server '{}' is left "
                                 "out: {}",
                                 each.name,
                                 name_of(source),
                                 why));
  };
  auto made = std::make_shared<std::vector<tool>>();
  std::set<std::string> names;
  for (const auto& each : *offered) {
    if (!filter.empty() && std::ranges::find(filter, each.name) == filter.end())
      continue;
    if (!names.insert(shown_name(source, each.name)).second) {
      leave_out(each, "another one has the same name for models");
      continue;
    }
    try {
      made->push_back(make_tool(to, source, each));
    } catch (const error& failure) {
      leave_out(each, failure.message());
    }
  }
  return tool_list(std::move(made));
}

class offer_request final : public stoppable_call<offer> {
public:
  using stoppable_call::stoppable_call;

private:
  void begin(const std::shared_ptr<wanted<offer>>& asked) override {
    link_->to_server().ask_tools(asked);
  }
};

class mcp_toolset final : public toolset,
                          public std::enable_shared_from_this<mcp_toolset> {
public:
  mcp_toolset(mcp_source source, mcp_options options)
    : source_(std::move(source)),
      options_(std::move(options)),
      name_(name_of(source_)),
      link_(std::make_shared<link>(source_, options_)) {
    if (options_.connects_at_once)
      link_->to_server().connect();
  }

  const std::string& name() const noexcept override { return name_; }

  pending<tool_list> tools(std::stop_token stop) override;

  tool_list known_tools() const override {
    const std::lock_guard guard(mutex_);
    return known_ ? known_ : std::make_shared<const std::vector<tool>>();
  }

private:
  class question;

  // The tools of an offer, which stay the same objects as long as it does.
  result<tool_list> tools_of(const offer& offered) {
    const std::lock_guard guard(mutex_);
    if (offered_ == offered && known_)
      return known_;
    auto made = make_tools(link_, source_, options_, offered);
    if (!made)
      return made;
    offered_ = offered;
    known_ = *made;
    return made;
  }

  const mcp_source source_;
  const mcp_options options_;
  const std::string name_;
  const link_ptr link_;
  mutable std::mutex mutex_;
  offer offered_;
  tool_list known_;
};

class mcp_toolset::question final : public detail::call<tool_list> {
public:
  question(std::shared_ptr<mcp_toolset> of, link_ptr to, std::stop_token stop)
    : set_(std::move(of)),
      request_(std::move(to), std::move(stop)) {}

  void start(completion<tool_list> done) override {
    request_.start(
      [set = set_, done = std::move(done)](const result<offer>& offered) {
        done(offered ? set->tools_of(*offered)
                     : result<tool_list>(offered.error()));
      });
  }

  result<tool_list> wait() override {
    const auto offered = request_.wait();
    return offered ? set_->tools_of(*offered)
                   : result<tool_list>(offered.error());
  }

private:
  const std::shared_ptr<mcp_toolset> set_;
  offer_request request_;
};

pending<tool_list> mcp_toolset::tools(std::stop_token stop) {
  return pending<tool_list>(
    std::make_unique<question>(shared_from_this(), link_, std::move(stop)));
}

} // namespace

toolset_ptr mcp_tools(mcp_source source, mcp_options options) {
  check(source);
  return std::make_shared<mcp_toolset>(std::move(source), std::move(options));
}

} // namespace troupe

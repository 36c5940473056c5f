#include "troupe/mcp/server/agent_calls.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/mcp/client/message.hpp"
#include "troupe/mcp/server/run_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::mcp {

namespace {

// One line about an event, without the contents of the conversation.
std::string summary_of(const event& said) {
  std::vector<std::string> done;
  for (const auto& element : said.content.parts) {
    if (const auto* call = element.call())
      done.push_back("calls " + call->name);
    else if (const auto* response = element.response())
      done.push_back("has the result of " + response->name);
  }
  if (done.empty())
    done.emplace_back(said.content.parts.empty() ? "works" : "answers");
  return fmt::format("{} {}", said.author, fmt::join(done, ", "));
}

} // namespace

// The run of a call, which other threads can cancel while this lives.
class agent_calls::attached_run {
public:
  attached_run(agent_calls& calls, call& owner, troupe::run running)
    : calls_(calls),
      owner_(owner),
      running_(std::move(running)) {
    const std::lock_guard guard(calls_.mutex_);
    owner_.running = &running_;
    if (owner_.how != ending::normal)
      running_.cancel();
  }

  ~attached_run() {
    const std::lock_guard guard(calls_.mutex_);
    owner_.running = nullptr;
  }

  attached_run(const attached_run&) = delete;
  attached_run& operator=(const attached_run&) = delete;

  troupe::run* operator->() noexcept { return &running_; }

private:
  agent_calls& calls_;
  call& owner_;
  troupe::run running_;
};

agent_calls::agent_calls(runtime& on,
                         const offered_agent& offered,
                         const mcp_server_options& options,
                         line_writer& output)
  : on_(on),
    offered_(offered),
    options_(options),
    output_(output) {}

agent_calls::~agent_calls() {
  cancel_all();
  // No thread can be added any more, and a thread does not touch the list.
  for (const auto& each : calls_)
    each->thread.join();
}

bool agent_calls::knows(const json& id) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(calls_, [&id](const auto& each) {
    return !each->has_ended && each->request.id == id;
  });
}

result<void> agent_calls::start(call_request request) {
  reap();
  const std::lock_guard guard(mutex_);
  if (calls_.size() >= options_.calls_max)
    return error(errc::busy,
                 fmt::format("{} calls are under way, which is the limit; try "
                             "again when one has ended",
                             calls_.size()));
  auto made = std::make_unique<call>();
  made->request = std::move(request);
  auto& own = *made;
  try {
    made->thread = std::thread([this, &own] { work(own); });
  } catch (const std::system_error& failure) {
    return error(
      errc::busy,
      fmt::format("no thread can be started for the call: {}", failure.what()));
  }
  calls_.push_back(std::move(made));
  return {};
}

void agent_calls::cancel(const json& id) {
  const std::lock_guard guard(mutex_);
  for (const auto& each : calls_)
    if (each->request.id == id)
      stop(*each, ending::by_client);
}

void agent_calls::cancel_all() {
  const std::lock_guard guard(mutex_);
  for (const auto& each : calls_)
    stop(*each, ending::by_server);
}

void agent_calls::stop(call& which, ending how) {
  if (which.how == ending::normal)
    which.how = how;
  if (which.running != nullptr)
    which.running->cancel();
}

void agent_calls::wait(std::chrono::steady_clock::time_point until,
                       const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, stop, until, [this] {
    return std::ranges::all_of(calls_, &call::has_ended, [](const auto& each) {
      return std::cref(*each);
    });
  });
}

void agent_calls::reap() {
  std::vector<std::unique_ptr<call>> ended;
  {
    const std::lock_guard guard(mutex_);
    for (auto place = calls_.begin(); place != calls_.end();)
      if ((*place)->has_ended) {
        ended.push_back(std::move(*place));
        place = calls_.erase(place);
      } else {
        ++place;
      }
  }
  for (const auto& each : ended)
    each->thread.join();
}

void agent_calls::work(call& own) {
  json result;
  try {
    result = result_of(own);
  } catch (const std::exception& failure) {
    result = failed_result(failure.what());
  }
  result.update(own.request.version_fields);
  const std::lock_guard guard(mutex_);
  if (own.how != ending::by_client)
    output_.write(make_answer(own.request.id, std::move(result)));
  own.has_ended = true;
  changed_.notify_all();
}

json agent_calls::result_of(call& own) {
  const auto session = open_session(own.request.asked);
  if (!session)
    return failed_result(to_string(session.error()));
  auto result = run_on(own, *session);
  if (options_.keeps_sessions) {
    result["_meta"] = {{"troupe/session", session->id}};
  } else if (is_blank(own.request.asked.session)) {
    if (const auto removed = on_.sessions().remove(*session).get(); !removed)
      return failed_result(to_string(removed.error()));
  }
  return result;
}

result<session_key> agent_calls::open_session(const agent_request& asked) {
  const auto& app
    = options_.app.empty() ? offered_.root().name() : options_.app;
  const auto opened
    = on_.sessions().get_or_create({app, options_.user, asked.session}).get();
  if (!opened)
    return opened.error();
  return opened->key();
}

json agent_calls::run_on(call& own, const session_key& session) {
  user_message said(own.request.asked.message);
  said.trace = own.request.asked.trace;
  attached_run running(
    *this,
    own,
    on_.run(offered_.root(), session, std::move(said), options_.runs));
  run_answer answer;
  std::size_t count = 0;
  result<void> ended;
  for (;;) {
    const auto next = running->next().get();
    if (!next)
      ended = next.error();
    if (!next || !*next)
      break;
    answer.take(*next);
    if (!(*next)->partial)
      tell_progress(own, ++count, **next);
  }
  if (!ended && is_stopped(own))
    return failed_result("the call was cancelled, because the server ends");
  if (!ended)
    return failed_result(to_string(ended.error()));
  if (!running->waits_for().empty())
    return waiting_result(session);
  const auto kept = on_.artifacts();
  return answer.result_of(
    offered_, session, kept.get(), options_.media_bytes_max);
}

bool agent_calls::is_stopped(const call& own) const {
  const std::lock_guard guard(mutex_);
  return own.how == ending::by_server;
}

// The failure of a call whose agent needs the user.
json agent_calls::waiting_result(const session_key& session) {
  const auto open = on_.sessions().open_calls(session).get();
  if (!open)
    return failed_result(to_string(open.error()));
  std::vector<std::string> waits;
  for (const auto& each : *open)
    waits.push_back(
      each.question ? fmt::format(
        "asks if it may call {}({})", each.tool, to_text(each.args.data()))
                    : fmt::format("waits for the result of {}({})",
                                  each.tool,
                                  to_text(each.args.data())));
  const bool is_kept = options_.keeps_sessions;
  return failed_result(fmt::format(
    "the agent {}; an answer cannot be given over MCP. Let the agent work "
    "without questions{}{}{}",
    fmt::join(waits, ", and "),
    is_kept ? ", or give the answer to session '" : "",
    is_kept ? session.id : std::string(),
    is_kept ? "' by troupe run --answer" : ""));
}

void agent_calls::tell_progress(const call& own,
                                std::size_t count,
                                const event& said) {
  if (own.request.progress_token.is_null())
    return;
  json params{{"progressToken", own.request.progress_token},
              {"progress", count},
              {"message", summary_of(said)}};
  output_.write_if_room(
    make_notification("notifications/progress", std::move(params)));
}

} // namespace troupe::mcp

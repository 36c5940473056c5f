#include "troupe/runtime/runtime.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/spawn.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/append_letter.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/runs/invocation.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/contexts/lanes/artifact_service.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/contexts/lanes/memory_access.hpp"
#include "troupe/core/support/low_memory.hpp"
#include "troupe/core/support/passwords.hpp"
#include "troupe/core/support/scope_state.hpp"
#include "troupe/runtime/actors.hpp"
#include "troupe/stores/artifact_store.hpp"
#include "troupe/stores/memory_service.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace troupe {

namespace {

// The value by which the actors mean "no limit".
constexpr auto unlimited = std::chrono::nanoseconds::zero();

// Without a store the ids of all events are kept. Half of the range, so that
// additions do not overflow.
constexpr auto all_ids = SIZE_MAX / 2;

actors::setup_options choose(const runtime_options& options, bool has_store) {
  return {.limits = options.limits,
          .session_appends_max = options.session_appends_max,
          .session_bytes_max = options.session_bytes_max,
          .runtime_appends_max = options.runtime_appends_max,
          .runtime_bytes_max = options.runtime_bytes_max,
          .append_wait_max = options.append_wait_max.value_or(unlimited),
          .remembered_ids = has_store ? options.remembered_ids : all_ids,
          .tool_threads = options.tool_threads,
          .runs_max = options.runs_max,
          .events_kept = options.events_kept,
          .live_sessions_max = options.live_sessions_max,
          .session_idle_max = options.session_idle_max.value_or(unlimited),
          .follow_period = options.follow_period.value_or(unlimited),
          .run_lease = options.run_lease};
}

// Refuses limits that allow nothing.
result<void> check_limits(const runtime_options& options) {
  const auto check = [](std::optional<std::chrono::nanoseconds> time,
                        std::string_view name) -> result<void> {
    if (!time || *time > std::chrono::nanoseconds::zero())
      return {};
    return error(
      errc::invalid_argument,
      fmt::format("{} is not above 0; leave it unset for no limit", name));
  };
  if (options.store_log_bytes_max == std::uint64_t{0})
    return error(errc::invalid_argument,
                 "store_log_bytes_max is 0; leave it unset for no limit");
  // A runtime with open runs writes three times in it.
  if (options.run_lease < std::chrono::milliseconds(3))
    return error(errc::invalid_argument,
                 "run_lease is below 3 ms, in which a store cannot be written "
                 "three times; it has to be longer than a process may be slow");
  if (auto fit = check(options.append_wait_max, "append_wait_max"); !fit)
    return fit;
  if (auto fit = check(options.follow_period, "follow_period"); !fit)
    return fit;
  return check(options.session_idle_max, "session_idle_max");
}

// Opens the store that keeps the state; null if state is in memory only.
result<std::shared_ptr<store>> choose_store(const runtime_options& options) {
  const auto* const named = options.store.address();
  if (named == nullptr && !options.store.object())
    return error(errc::invalid_argument, "the store of the runtime is null");
  if (named == nullptr)
    return options.store.object();
  const auto address = read_store_address(*named);
  if (!address)
    return address.error();
  if (address->kind == store_kind::memory)
    return nullptr;
  auto opened = open_store(*named,
                           {.durability = options.durability,
                            .on_warning = options.on_warning,
                            .log_bytes_max = options.store_log_bytes_max});
  if (!opened)
    return opened.error();
  return std::shared_ptr<store>(std::move(*opened));
}

// Opens the store that keeps artifacts; null for none.
result<std::shared_ptr<artifact_store>>
choose_artifacts(const runtime_options& options, bool has_store) {
  const auto* const named = options.artifacts.address();
  if (named == nullptr && !options.artifacts.object())
    return error(errc::invalid_argument,
                 "the artifact store of the runtime is null");
  if (named == nullptr)
    return options.artifacts.object();
  if (named->empty() && has_store)
    return nullptr;
  auto opened = open_artifact_store(named->empty() ? "memory:" : *named);
  if (!opened)
    return opened.error();
  return std::shared_ptr<artifact_store>(std::move(*opened));
}

// Opens the memory service; null for none.
result<std::shared_ptr<memory_service>>
choose_memory(const runtime_options& options) {
  const auto* const named = options.memory.address();
  if (named == nullptr && !options.memory.object())
    return error(errc::invalid_argument,
                 "the memory service of the runtime is null");
  if (named == nullptr)
    return options.memory.object();
  if (named->empty())
    return nullptr;
  auto opened = open_memory_service(*named);
  if (!opened)
    return opened.error();
  return std::shared_ptr<memory_service>(std::move(*opened));
}

// The opened stores.
struct opened_places {
  std::shared_ptr<troupe::store> store;
  std::shared_ptr<artifact_store> artifacts;
  std::shared_ptr<memory_service> memory;
};

result<opened_places> open_places(const runtime_options& options) {
  if (auto fit = check_plugins(options.plugins); !fit)
    return fit.error();
  if (options.compaction)
    if (auto fit = check_compaction(*options.compaction); !fit)
      return fit.error();
  if (auto fit = check_limits(options); !fit)
    return fit.error();
  auto kept = choose_store(options);
  if (!kept)
    return kept.error();
  auto files = choose_artifacts(options, *kept != nullptr);
  if (!files)
    return files.error();
  auto memory = choose_memory(options);
  if (!memory)
    return memory.error();
  return opened_places{std::move(*kept), std::move(*files), std::move(*memory)};
}

void print_warning(const std::string& warning) {
  std::fprintf(stderr, "troupe: warning: %s\n", warning.c_str());
}

using warning_receiver = std::function<void(const std::string& warning)>;

// Removes passwords from warnings: a store of the user's own may quote its
// address.
warning_receiver without_secrets(warning_receiver told) {
  if (!told)
    told = print_warning;
  return [told = std::move(told)](const std::string& warning) {
    told(without_passwords(warning));
  };
}

// Returns a function that passes work to the threads for files. The work counts
// as a call, so it is done before the runtime ends.
std::function<bool(std::function<void()>)>
posting_files(const std::weak_ptr<actors::setup>& of) {
  return [of](std::function<void()> work) {
    const auto shared = of.lock();
    if (!shared)
      return false;
    shared->calls.enter(0);
    if (shared->ended) {
      shared->calls.leave(0);
      return false;
    }
    shared->files.post([shared, work = std::move(work)] {
      work();
      shared->calls.leave(0);
    });
    return true;
  };
}

// Returns a function that adds memories for the session of a run.
std::function<result<pending<std::size_t>>(const session_key&, memory_addition)>
adding_memories(const std::weak_ptr<detail::session_backend>& to) {
  return [to](const session_key& key,
              memory_addition wanted) -> result<pending<std::size_t>> {
    auto backend = to.lock();
    if (!backend)
      return actors::closed();
    session_service sessions(std::move(backend));
    if (auto* events = std::get_if<std::vector<event_ptr>>(&wanted.added))
      return sessions.add_to_memory(key, std::move(*events));
    if (auto* entries = std::get_if<std::vector<memory_entry>>(&wanted.added))
      return sessions.add_to_memory(key, std::move(*entries));
    return sessions.add_to_memory(key);
  };
}

runtime make_runtime(std::shared_ptr<detail::session_backend> backend,
                     runtime_options options,
                     opened_places places) {
  auto& shared = backend->shared();
  shared.plugins = std::move(options.plugins);
  if (options.compaction)
    shared.compaction = std::make_shared<const compaction_options>(
      std::move(*options.compaction));
  shared.on_commit = std::move(options.on_commit);
  shared.on_warning = std::move(options.on_warning);
  if (places.artifacts)
    shared.artifacts
      = std::make_shared<const artifact_service>(artifact_service{
        {std::move(places.artifacts), posting_files(shared.share())}});
  if (places.memory)
    shared.memory = std::make_shared<const memory_access>(
      memory_access{{std::move(places.memory), posting_files(shared.share())},
                    adding_memories(backend)});
  if (places.store)
    backend->use_store(std::move(places.store));
  return runtime(std::move(backend));
}

std::shared_ptr<environment> environment_of(const runtime_options& options) {
  return options.environment ? options.environment : system_environment();
}

// Makes the user's message an event. Fails if it cannot start a run.
result<event> make_message(user_message sent) {
  if (auto fit = check_trace_context(sent.trace); !fit)
    return fit.error();
  auto& said = sent.content;
  if (said.role.empty())
    said.role = "user";
  if (said.parts.empty())
    return error(errc::invalid_argument, "the message of a run has no parts");
  if (std::ranges::any_of(said.parts, [](const part& element) {
        return element.call() != nullptr;
      }))
    return error(errc::invalid_argument,
                 "the message of a run holds a function call; only a model "
                 "makes those");
  auto changed = delta::from_json(sent.state_delta);
  if (!changed)
    return changed.error();
  event message(std::move(said));
  message.author = "user";
  message.actions.state_delta = std::move(*changed);
  return message;
}

// The `temp:` keys of the message, with which the run starts.
result<scope_state> initial_temp(const event& message,
                                 const size_limits& limits) {
  scope_state temp;
  std::vector<resolution> resolved;
  const auto owned = message.actions.state_delta.share(scope::temp);
  if (owned.empty())
    return temp;
  if (auto judged = temp.judge(owned, resolved, false, limits); !judged)
    return judged.error();
  temp.install();
  return temp;
}

// Names the `temp:` keys of a message in it: they are lost if the run has to be
// recovered.
void name_temp(event& message) {
  temp_names written;
  for (const auto& done : message.actions.state_delta.share(scope::temp))
    written.names.push_back(done.name);
  set_temp_names(message, written);
}

// Refuses limits that allow no work.
result<void> check_limits(const run_options& options) {
  if (options.lanes_max == 0)
    return error(errc::invalid_argument,
                 "lanes_max is 0, but at least one lane must be able to run");
  if (options.tool_calls_max == 0)
    return error(
      errc::invalid_argument,
      "tool_calls_max is 0, but at least one tool must be able to run");
  for (const auto& time : {options.model_timeout, options.tool_timeout})
    if (time && time->count() <= 0)
      return error(errc::invalid_argument,
                   "a time-out of a run is not above 0");
  return {};
}

// Fills in `started` and makes all checks that need no invocation.
result<void> prepare(actors::run_shared& started,
                     detail::session_backend& backend,
                     const session_key& session) {
  if (backend.is_closing())
    return actors::closed();
  if (auto fit = check_limits(started.options); !fit)
    return fit;
  started.tool_slots.emplace(started.options.tool_calls_max);
  started.retries
    = std::make_shared<retry_budget>(started.options.model_retries_max);
  auto key = check_key(session);
  if (!key)
    return key.error();
  auto& shared = backend.shared();
  started.session = shared.directory->find(*key);
  started.app = app_of(shared, key->app);
  // A session that is not in the directory may have to be loaded, or is idle.
  if (!started.app)
    return actors::unknown_session(*key);
  if (const auto* outer = actors::current_run()) {
    started.sessions = outer->sessions;
    if (started.options.policy != run_policy::interleave
        && std::ranges::find(outer->sessions, *key) != outer->sessions.end())
      return error(errc::would_deadlock,
                   fmt::format("a run on session {} cannot wait for another "
                               "run on it",
                               to_string(*key)));
  }
  started.sessions.push_back(*key);
  started.facts.session = std::move(*key);
  return {};
}

std::shared_ptr<actors::run_shared>
make_started(detail::session_backend& backend,
             std::shared_ptr<detail::run_control> control,
             const agent& root,
             const run_options& options) {
  auto started = std::make_shared<actors::run_shared>();
  started->options = options;
  started->shared = backend.share();
  started->control = std::move(control);
  started->root_agent = root;
  if (root.transfers())
    started->tree = std::make_shared<const agent_tree>(root);
  return started;
}

// Sets the facts about the run that its agents can read.
void set_facts(actors::run_shared& started, const event& said) {
  auto& shared = *started.shared;
  started.facts.invocation_id = started.control->invocation_id;
  started.facts.user_content = said.content;
  started.facts.environment = shared.environment;
  started.facts.limits = shared.options.limits;
  started.facts.artifacts = shared.artifacts;
  started.facts.memory = shared.memory;
  started.facts.step_times = started.options.step_times;
  started.facts.lost_updates = started.options.lost_updates;
  started.facts.update_retries_max = started.options.update_retries_max;
}

void set_deadline(const actors::run_shared& started) {
  if (const auto deadline = started.options.deadline)
    started.shared->environment->call_after(
      *deadline, [weak = std::weak_ptr(started.control), deadline = *deadline] {
        if (const auto late = weak.lock())
          late->cancel({errc::deadline_exceeded,
                        fmt::format("the run did not end within {} ms",
                                    deadline.count())});
      });
}

// Counts the run as one that is under way.
result<void> enter(detail::session_backend& backend,
                   const std::shared_ptr<detail::run_control>& control) {
  auto& shared = backend.shared();
  if (!shared.runs.enter(0))
    return error(errc::busy,
                 fmt::format("{} runs are under way already; try again when "
                             "some of them have ended",
                             shared.options.runs_max));
  if (backend.enter_run(control))
    return {};
  shared.runs.leave(0);
  return actors::closed();
}

// The mark that opens a run in the store. Runs that queue, and those that are
// rejected, do not open beside a run of another process, unless that process is
// silent.
run_mark mark_of(const actors::run_shared& started,
                 const std::string& invocation_id,
                 const agent& root) {
  const auto& shared = *started.shared;
  run_mark mark{invocation_id, root.name(), shared.holder_id};
  if (started.options.policy != run_policy::interleave)
    mark.alone_after
      = std::chrono::ceil<std::chrono::microseconds>(shared.options.run_lease);
  return mark;
}

// Starts a run that is counted.
void send_start(std::shared_ptr<actors::run_shared> started,
                const agent& root,
                std::unique_ptr<actors::append> message,
                scope_state temp,
                std::unique_ptr<actors::run_claim> claims) {
  const auto control = started->control;
  auto& shared = *started->shared;
  set_deadline(*started);
  auto wanted = std::make_unique<actors::start_run>();
  wanted->key = started->facts.session;
  if (!shared.store && started->session)
    wanted->session = &*started->session;
  wanted->control = control;
  wanted->policy = started->options.policy;
  wanted->reads = root.reads();
  wanted->message = std::move(message);
  wanted->message->starts_run = true;
  wanted->message->claims = std::move(claims);
  if (!shared.holder_id.empty())
    wanted->message->mark = std::make_unique<const run_mark>(
      mark_of(*started, control->invocation_id, root));
  wanted->message->rights
    = {.takes_over = started->options.take_over,
       .takes_news = std::holds_alternative<llm_options>(root.kind()),
       .tasks = root.task_names()};
  const auto app = started->app;
  auto invocation = actors::spawn_actor<actors::invocation_actor>(
    shared.system, std::move(started), root, std::move(temp));
  wanted->invocation = invocation;
  wanted->id = invocation.id();
  wanted->message->reply_to = invocation;
  // Sent from this thread, so that the runs of one caller start in the order of
  // the calls. Sent before `attach`: a cancellation would otherwise send the
  // end of the run before its start.
  app->tell(std::move(wanted));
  control->attach(std::move(invocation));
}

// Counts the run and sends its start. After a failure nothing is counted.
result<void> begin(detail::session_backend& backend,
                   std::shared_ptr<actors::run_shared> started,
                   const agent& root,
                   event&& said,
                   std::unique_ptr<actors::run_claim> claims = {}) {
  auto& shared = *started->shared;
  said.invocation_id = started->control->invocation_id;
  auto temp = initial_temp(said, shared.options.limits);
  if (!temp)
    return temp.error();
  if (shared.store)
    name_temp(said);
  if (shared.store && !claims)
    set_cause(said, started->facts.trace);
  set_facts(*started, said);
  auto letter = actors::make_append(std::move(said), {}, shared);
  if (!letter)
    return letter.error();
  // A run that is counted and not started would never end.
  return with_memory_or_end([&]() -> result<void> {
    if (auto entered = enter(backend, started->control); !entered)
      return entered;
    send_start(std::move(started),
               root,
               std::move(*letter),
               std::move(*temp),
               std::move(claims));
    return {};
  });
}

// Starts a recovery. `holder` is that of the run, which was found to be free;
// unset if the store keeps no open runs.
void begin_recovery(detail::session_backend& backend,
                    std::shared_ptr<actors::run_shared> started,
                    const agent& root,
                    std::optional<former_holder> holder) {
  const auto control = started->control;
  auto claims = std::make_unique<actors::run_claim>();
  claims->wish = {.invocation_id = control->invocation_id,
                  .recoveries_max = started->options.recoveries_max,
                  .allow_lost_temp = started->options.allow_lost_temp};
  if (holder) {
    claims->wish.free_holder = std::move(holder->id);
    claims->silent_for = holder->silent_for;
  }
  auto claiming = make_claim_event(
    root.name(), control->invocation_id, started->shared->holder_id);
  if (auto ready = begin(backend,
                         std::move(started),
                         root,
                         std::move(claiming),
                         std::move(claims));
      !ready)
    control->end(ready);
}

error other_root(const open_run& left, const agent& root) {
  return {errc::conflict,
          fmt::format("run '{}' of session {} began with agent '{}', and the "
                      "program recovers it with '{}'; use the agent that it "
                      "began with",
                      left.invocation_id,
                      to_string(left.key),
                      left.agent,
                      root.name())};
}

// Starts a recovery if the run is open, and its process has ended. A run of
// another agent is not claimed, since a claim counts as a recovery.
void begin_if_free(const std::shared_ptr<detail::session_backend>& backend,
                   std::shared_ptr<actors::run_shared> started,
                   const agent& root) {
  auto found = actors::find_free(
    started->shared, started->facts.session, started->control->invocation_id);
  found.then(
    [backend, started, root](const result<std::optional<open_run>>& listed) {
      auto& control = *started->control;
      if (!listed)
        return control.end(listed.error());
      if (!*listed)
        return control.end(
          actors::no_open_run(started->facts.session, control.invocation_id));
      const auto& left = **listed;
      if (left.agent != root.name())
        return control.end(other_root(left, root));
      begin_recovery(
        *backend, started, root, actors::holder_of(left, *started->shared));
    });
}

} // namespace

result<runtime> runtime::open(runtime_options options) {
  options.on_warning = without_secrets(std::move(options.on_warning));
  auto places = open_places(options);
  if (!places)
    return places.error();
  auto backend = std::make_shared<detail::session_backend>(
    environment_of(options),
    choose(options, places->store != nullptr),
    options.threads);
  return make_runtime(
    std::move(backend), std::move(options), std::move(*places));
}

result<runtime> open_runtime(caf::actor_system& system,
                             runtime_options options) {
  options.on_warning = without_secrets(std::move(options.on_warning));
  auto places = open_places(options);
  if (!places)
    return places.error();
  auto backend = std::make_shared<detail::session_backend>(
    system, environment_of(options), choose(options, places->store != nullptr));
  return make_runtime(
    std::move(backend), std::move(options), std::move(*places));
}

runtime::runtime(std::shared_ptr<detail::session_backend> backend)
  : backend_(std::move(backend)),
    sessions_(std::make_unique<session_service>(backend_)) {}

runtime::runtime(runtime&&) noexcept = default;

runtime& runtime::operator=(runtime&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(sessions_, other.sessions_);
  return *this;
}

runtime::~runtime() {
  if (backend_)
    static_cast<void>(backend_->shut_down());
}

session_service& runtime::sessions() noexcept {
  return *sessions_;
}

std::shared_ptr<artifact_store> runtime::artifacts() const noexcept {
  const auto& service = backend_->shared().artifacts;
  return service ? service->store : nullptr;
}

std::shared_ptr<memory_service> runtime::memory() const noexcept {
  const auto& service = backend_->shared().memory;
  return service ? service->store : nullptr;
}

const std::shared_ptr<environment>& runtime::environment() const noexcept {
  return backend_->shared().environment;
}

result<void> runtime::shut_down() {
  return backend_->shut_down();
}

run runtime::run(const agent& root,
                 const session_key& session,
                 user_message message,
                 run_options options) {
  auto& shared = backend_->shared();
  auto control = std::make_shared<detail::run_control>(
    backend_->share(), "e-" + shared.environment->new_id());
  auto watched = actors::watch_message(
    shared.plugins, session, std::move(message.content));
  if (watched)
    message.content = std::move(*watched);
  auto started = make_started(*backend_, control, root, options);
  started->facts.trace
    = accept_trace_context(message.trace.parent, message.trace.state);
  auto said = watched ? make_message(std::move(message))
                      : result<event>(watched.error());
  auto ready
    = said ? prepare(*started, *backend_, session) : result<void>(said.error());
  if (ready)
    ready = begin(*backend_, std::move(started), root, std::move(*said));
  if (!ready)
    control->end(ready);
  return troupe::run(std::move(control));
}

run runtime::recover(const agent& root,
                     const session_key& session,
                     std::string invocation_id,
                     run_options options) {
  auto control = std::make_shared<detail::run_control>(
    backend_->share(), std::move(invocation_id));
  auto started = make_started(*backend_, control, root, options);
  result<void> ready;
  if (control->invocation_id.empty())
    ready = error(errc::invalid_argument,
                  "the id of the run to recover is empty: pass the "
                  "invocation id of its events");
  else
    ready = prepare(*started, *backend_, session);
  if (!ready)
    control->end(ready);
  else if (started->shared->holder_id.empty())
    begin_recovery(*backend_, std::move(started), root, std::nullopt);
  else
    begin_if_free(backend_, std::move(started), root);
  return troupe::run(std::move(control));
}

const std::shared_ptr<detail::session_backend>&
detail::backend_of(const runtime& on) noexcept {
  return on.backend_;
}

} // namespace troupe

#include "troupe/contexts/artifacts.hpp"

#include "troupe/contexts/lane_host.hpp"

#include <exception>
#include <utility>

namespace troupe {

namespace {

using service_ptr = std::shared_ptr<const artifact_service>;

error no_store() {
  return {errc::invalid_argument,
          "the runtime has no artifact store; set runtime_options::artifacts"};
}

// Does `work` on a thread that may wait, and goes on where it was.
template <class T, class Work>
class work_await {
public:
  work_await(service_ptr service, Work work)
    : service_(std::move(service)),
      work_(std::move(work)) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    service_->post([this, waiting, here = executor::current()] {
      try {
        outcome_ = work_(*service_->store);
      } catch (const std::exception& failure) {
        outcome_ = error(errc::internal, failure.what());
      } catch (...) {
        outcome_ = error(errc::internal,
                         "the artifact store threw something that is no "
                         "std::exception");
      }
      if (here != nullptr)
        here->post(waiting);
      else
        waiting.resume();
    });
  }

  T await_resume() { return std::move(outcome_).value(); }

private:
  const service_ptr service_;
  const Work work_;
  result<T> outcome_ = T();
};

template <class T, class Work>
task<T> do_later(service_ptr service, Work work) {
  if (!service)
    throw no_store();
  auto done = co_await work_await<T, Work>(std::move(service), std::move(work));
  co_return done;
}

template <class Work>
auto do_now(const run_facts& facts, const Work& work)
  -> decltype(work(*facts.artifacts->store)) {
  if (!facts.artifacts)
    return no_store();
  if (executor::current() != nullptr)
    return error(errc::would_deadlock,
                 "a blocking call on a thread of the runtime; co_await the "
                 "_async form");
  return work(*facts.artifacts->store);
}

auto loading(const session_key& key,
             std::string name,
             std::optional<std::int64_t> version) {
  return [key, name = std::move(name), version](artifact_store& store) {
    return store.load(key, name, version);
  };
}

auto listing(const session_key& key) {
  return [key](artifact_store& store) { return store.list(key); };
}

auto counting(const session_key& key, std::string name) {
  return [key, name = std::move(name)](artifact_store& store) {
    return store.versions(key, name);
  };
}

auto removing(const session_key& key, std::string name) {
  return [key, name = std::move(name)](artifact_store& store) {
    return store.remove(key, name);
  };
}

result<void> check_open(const std::atomic<bool>* is_closed) {
  if (is_closed != nullptr && *is_closed)
    return error(errc::cancelled, "the call of this tool was given up");
  return {};
}

task<std::int64_t> save_later(const run_facts* facts,
                              event_actions* actions,
                              const std::atomic<bool>* is_closed,
                              std::string name,
                              part content) {
  check_open(is_closed).value();
  // Not within the co_await: g++ 12 would destroy it twice.
  auto work
    = [key = facts->session, name, content = std::move(content)](
        artifact_store& store) { return store.save(key, name, content); };
  const auto version
    = co_await do_later<std::int64_t>(facts->artifacts, std::move(work));
  actions->artifact_delta[name] = version;
  co_return version;
}

task<bool> remove_later(const run_facts* facts,
                        const std::atomic<bool>* is_closed,
                        std::string name) {
  check_open(is_closed).value();
  auto work = removing(facts->session, std::move(name));
  const auto removed
    = co_await do_later<bool>(facts->artifacts, std::move(work));
  co_return removed;
}

} // namespace

result<std::optional<part>>
readonly_artifacts::load(const std::string& name,
                         std::optional<std::int64_t> version) const {
  return do_now(*facts_, loading(facts_->session, name, version));
}

task<std::optional<part>>
readonly_artifacts::load_async(std::string name,
                               std::optional<std::int64_t> version) const {
  return do_later<std::optional<part>>(
    facts_->artifacts, loading(facts_->session, std::move(name), version));
}

result<std::vector<std::string>> readonly_artifacts::list() const {
  return do_now(*facts_, listing(facts_->session));
}

task<std::vector<std::string>> readonly_artifacts::list_async() const {
  return do_later<std::vector<std::string>>(facts_->artifacts,
                                            listing(facts_->session));
}

result<std::vector<std::int64_t>>
readonly_artifacts::versions(const std::string& name) const {
  return do_now(*facts_, counting(facts_->session, name));
}

task<std::vector<std::int64_t>>
readonly_artifacts::versions_async(std::string name) const {
  return do_later<std::vector<std::int64_t>>(
    facts_->artifacts, counting(facts_->session, std::move(name)));
}

result<std::int64_t> artifacts::save(const std::string& name,
                                     const part& content) {
  if (auto open = check_open(is_closed_); !open)
    return open.error();
  auto saved = do_now(*facts_, [&](artifact_store& store) {
    return store.save(facts_->session, name, content);
  });
  if (saved)
    actions_->artifact_delta[name] = *saved;
  return saved;
}

task<std::int64_t> artifacts::save_async(std::string name, part content) {
  return save_later(
    facts_, actions_, is_closed_, std::move(name), std::move(content));
}

result<bool> artifacts::remove(const std::string& name) {
  if (auto open = check_open(is_closed_); !open)
    return open.error();
  return do_now(*facts_, removing(facts_->session, name));
}

task<bool> artifacts::remove_async(std::string name) {
  return remove_later(facts_, is_closed_, std::move(name));
}

} // namespace troupe

#include "troupe/contexts/artifacts.hpp"

#include "troupe/contexts/lanes/artifact_service.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/support/artifact_place.hpp"
#include "troupe/stores/artifact_view.hpp"

#include <utility>

namespace troupe {

namespace {

using service_ptr = std::shared_ptr<const artifact_service>;

error no_store() {
  return {errc::invalid_argument,
          "the runtime has no artifact store; set runtime_options::artifacts, "
          "or the option --artifacts of troupe"};
}

// A call of the artifact store, by a pending answer. `wait` works on the
// calling thread, `start` on a thread that may block. `check` can refuse the
// call when it starts. `note` gets a successful result on the thread that asked
// for it, except after `then`.
template <class T, class Work, class Check, class Note>
class store_call final : public detail::call<T> {
public:
  store_call(service_ptr service, Work work, Check check, Note note)
    : service_(std::move(service)),
      work_(std::make_shared<const Work>(std::move(work))),
      check_(std::move(check)),
      note_(std::move(note)) {}

  void start(completion<T> done) override {
    if (auto ready = refusal(); !ready)
      return done(ready.error());
    const auto posted
      = service_->post([service = service_, work = work_, done] {
          done(call_artifacts<T>(*service->store, *work));
        });
    if (!posted)
      done(error(errc::cancelled, "the runtime has ended"));
  }

  result<T> wait() override {
    if (auto ready = refusal(); !ready)
      return ready.error();
    if (executor::current() != nullptr)
      return error(
        errc::would_deadlock,
        "this call would block a thread of the runtime; co_await it");
    auto outcome = call_artifacts<T>(*service_->store, *work_);
    receive(outcome);
    return outcome;
  }

  void receive(const result<T>& answer) override {
    if (answer)
      note_(*answer);
  }

private:
  result<void> refusal() const {
    if (!service_)
      return no_store();
    return check_();
  }

  const service_ptr service_;
  const std::shared_ptr<const Work> work_;
  const Check check_;
  const Note note_;
};

template <class T, class Work, class Check, class Note>
pending<T>
call_store(const run_facts& facts, Work work, Check check, Note note) {
  return pending<T>(std::make_unique<store_call<T, Work, Check, Note>>(
    facts.artifacts, std::move(work), std::move(check), std::move(note)));
}

result<void> always() {
  return {};
}

// Returns a check that fails once the call of the tool was given up.
auto while_open(const std::atomic<bool>* is_closed) {
  return [is_closed]() -> result<void> {
    if (is_closed != nullptr && *is_closed)
      return error(errc::cancelled, "the call of this tool was given up");
    return {};
  };
}

template <class T, class Work>
pending<T> read_store(const run_facts& facts, Work work) {
  return call_store<T>(facts, std::move(work), always, [](const T&) {});
}

} // namespace

pending<std::optional<part>>
readonly_artifacts::load(std::string name,
                         std::optional<std::int64_t> version) const {
  return read_store<std::optional<part>>(
    *facts_,
    [key = facts_->session, state = *state_, name = std::move(name), version](
      artifact_store& store) {
      return artifact_view(store, key, state).load(name, version);
    });
}

pending<std::vector<std::string>> readonly_artifacts::list() const {
  return read_store<std::vector<std::string>>(
    *facts_, [key = facts_->session, state = *state_](artifact_store& store) {
      return artifact_view(store, key, state).list();
    });
}

pending<std::vector<std::int64_t>>
readonly_artifacts::versions(std::string name) const {
  return read_store<std::vector<std::int64_t>>(
    *facts_,
    [key = facts_->session, name = std::move(name)](artifact_store& store) {
      return store.versions(key, name);
    });
}

pending<std::int64_t> artifacts::save(std::string name, part content) {
  const auto note
    = [actions = actions_, state = written_, name](std::int64_t version) {
        actions->artifact_delta[name] = version;
        // The number was given before: the artifact was removed after a rewind.
        const auto place = artifact_place_of(*state, name);
        if (place && version <= place->set_aside)
          state->erase(artifact_place_key(name));
      };
  return call_store<std::int64_t>(
    *facts_,
    [key = facts_->session,
     name = std::move(name),
     content = std::move(content)](artifact_store& store) {
      return store.save(key, name, content);
    },
    while_open(is_closed_),
    note);
}

pending<bool> artifacts::remove(std::string name) {
  // Versions are counted anew, so none is set aside any more.
  const auto note = [state = written_, name](bool) {
    if (artifact_place_of(*state, name))
      state->erase(artifact_place_key(name));
  };
  return call_store<bool>(
    *facts_,
    [key = facts_->session, name = std::move(name)](artifact_store& store) {
      return store.remove(key, name);
    },
    while_open(is_closed_),
    note);
}

} // namespace troupe

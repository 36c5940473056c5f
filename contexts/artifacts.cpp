#include "troupe/contexts/artifacts.hpp"

#include "troupe/contexts/lanes/artifact_service.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/support/artifact_place.hpp"
#include "troupe/stores/artifact_view.hpp"

#include <utility>

namespace troupe {

namespace {

error no_store() {
  return {errc::invalid_argument,
          "the runtime has no artifact store; set runtime_options::artifacts, "
          "or the option --artifacts of troupe"};
}

// Fails if the runtime has no store, or the call of the tool was given up.
auto ready_check(const run_facts& facts,
                 const std::atomic<bool>* is_closed = nullptr) {
  return [has_store = facts.artifacts != nullptr, is_closed]() -> result<void> {
    if (!has_store)
      return no_store();
    return check_open(is_closed);
  };
}

template <class T, class Work>
pending<T> read_store(const run_facts& facts, Work work) {
  return call_store<T>(
    facts.artifacts, std::move(work), ready_check(facts), [](const T&) {});
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
    facts_->artifacts,
    [key = facts_->session,
     name = std::move(name),
     content = std::move(content)](artifact_store& store) {
      return store.save(key, name, content);
    },
    ready_check(*facts_, is_closed_),
    note);
}

pending<bool> artifacts::remove(std::string name) {
  // Versions are counted anew, so none is set aside any more.
  const auto note = [state = written_, name](bool) {
    if (artifact_place_of(*state, name))
      state->erase(artifact_place_key(name));
  };
  return call_store<bool>(
    facts_->artifacts,
    [key = facts_->session, name = std::move(name)](artifact_store& store) {
      return store.remove(key, name);
    },
    ready_check(*facts_, is_closed_),
    note);
}

} // namespace troupe

// A call of the artifact store, which may block, as a pending answer.

#pragma once

#include "troupe/actors/failure.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/contexts/lanes/artifact_service.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace troupe::actors {

/// Calls `work` with the store. A store of the user's own may throw.
template <class T, class Work>
result<T> call_artifacts(artifact_store& kept, const Work& work) {
  try {
    return work(kept);
  } catch (const std::exception& thrown) {
    return error(errc::internal, thrown.what());
  } catch (...) {
    return error(errc::internal,
                 "the artifact store threw an exception that is not a "
                 "std::exception");
  }
}

/// Runs `work`, which gets the store and returns a `result<T>`, on a thread
/// that may block. Fails once the runtime closes. The runtime must have an
/// artifact store.
template <class T, class Work>
pending<T> make_artifact_call(const std::shared_ptr<setup>& shared, Work work) {
  return make_pending<T>(
    *shared, [shared, work = std::move(work)](completion<T> done) {
      // The work may outlive the backend, whose end waits for this count.
      shared->calls.enter(0);
      const bool is_posted
        = !shared->closing && shared->artifacts->post([shared, work, done] {
            done(call_artifacts<T>(*shared->artifacts->store, work));
            shared->calls.leave(0);
          });
      if (!is_posted) {
        shared->calls.leave(0);
        done(closed());
      }
    });
}

} // namespace troupe::actors

// A call of the artifact store, which may block, as a pending answer.

#pragma once

#include "troupe/actors/failure.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/contexts/lanes/artifact_service.hpp"

#include <memory>
#include <utility>

namespace troupe::actors {

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

// A call of the artifact store or of the memory service, which may block, as a
// pending answer.

#pragma once

#include "troupe/actors/failure.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/contexts/lanes/artifact_service.hpp"
#include "troupe/contexts/lanes/memory_access.hpp"

#include <memory>
#include <utility>

namespace troupe::actors {

/// Runs `work`, which gets the store and returns a `result<T>`, on a thread
/// that may block. Fails once the runtime closes. `access` is not null.
template <class T, class Access, class Work>
pending<T> make_kept_call(const std::shared_ptr<setup>& shared,
                          std::shared_ptr<const Access> access,
                          Work work) {
  return make_pending<T>(
    *shared,
    [shared, access = std::move(access), work = std::move(work)](
      completion<T> done) {
      // The work may outlive the backend, whose end waits for this count.
      shared->calls.enter(0);
      const bool is_posted
        = !shared->closing && access->post([shared, access, work, done] {
            done(call_kept<T>(*access->store, work));
            shared->calls.leave(0);
          });
      if (!is_posted) {
        shared->calls.leave(0);
        done(closed());
      }
    });
}

/// The same for the artifact store, which the runtime must have.
template <class T, class Work>
pending<T> make_artifact_call(const std::shared_ptr<setup>& shared, Work work) {
  return make_kept_call<T>(shared, shared->artifacts, std::move(work));
}

/// The same for the memory service, which the runtime must have.
template <class T, class Work>
pending<T> make_memory_call(const std::shared_ptr<setup>& shared, Work work) {
  return make_kept_call<T>(shared, shared->memory, std::move(work));
}

} // namespace troupe::actors

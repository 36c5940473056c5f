// The answers of models that a run ended with although they were blocked or
// failed. The run itself has not failed: the runtime stores such an answer as
// an event with an `errorCode`.

#pragma once

#include "troupe/core/event.hpp"

#include <map>
#include <string>
#include <utility>

namespace troupe::cli {

/// Collects the blocked answers of one run.
class blocked_answers {
public:
  /// Takes an event of the run. A later answer of the same agent replaces a
  /// blocked one; partial events do not.
  void take(const event& said);

  /// Fails with `errc::model_failed` if the last answer of an agent was blocked
  /// or failed. The message names agent, code and reason.
  result<void> check() const;

private:
  // Reasons by author and branch.
  std::map<std::pair<std::string, std::string>, std::string> reasons_;
};

} // namespace troupe::cli

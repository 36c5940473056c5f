#include "troupe/server/adk/conflict.hpp"

#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/query.hpp"

namespace troupe::serving {

response stale() {
  return detail(412, "the session has another revision than If-Match names")
    .with("troupe-error", "conflict");
}

void answer_failed_write(const served_ptr& on,
                         const exchange& asked,
                         const error& why) {
  const auto expected = expected_revision(asked.asked);
  if (why.code() != errc::conflict || !expected || !*expected)
    return asked.to.send(failure(why));
  on->on.sessions()
    .get(key_in(asked.path), {.num_recent_events = 0})
    .then([to = asked.to, why, expected = **expected](
            const result<session>& present) {
      const bool holds = !present || present->revision() == expected;
      to.send(holds ? failure(why) : stale());
    });
}

} // namespace troupe::serving

#include "troupe/core/mechanism.hpp"

#ifdef TROUPE_BREAKABLE

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using named = std::pair<std::string_view, mechanism>;

constexpr std::array names = {
  named{"inbox_order", mechanism::inbox_order},
  named{"climb_order", mechanism::climb_order},
  named{"drop_refused", mechanism::drop_refused},
  named{"decided_existence", mechanism::decided_existence},
  named{"expected_revision", mechanism::expected_revision},
  named{"known_roots", mechanism::known_roots},
  named{"newest_view", mechanism::newest_view},
  named{"drop_temp", mechanism::drop_temp},
  named{"failed_deltas", mechanism::failed_deltas},
  named{"answers_when_installed", mechanism::answers_when_installed},
  named{"answers_when_durable", mechanism::answers_when_durable},
  named{"told_failures", mechanism::told_failures},
  named{"reads_when_durable", mechanism::reads_when_durable},
  named{"generations", mechanism::generations},
  named{"reload", mechanism::reload},
  named{"queue_lock", mechanism::queue_lock},
  named{"store_revisions", mechanism::store_revisions},
  named{"look_elsewhere", mechanism::look_elsewhere},
  named{"look_behind", mechanism::look_behind},
  named{"synced_commits", mechanism::synced_commits},
  named{"row_sums", mechanism::row_sums},
  named{"event_ids", mechanism::event_ids},
  named{"compared_retries", mechanism::compared_retries},
  named{"loaded_ids", mechanism::loaded_ids},
  named{"admission", mechanism::admission},
  named{"byte_limits", mechanism::byte_limits},
  named{"runtime_limits", mechanism::runtime_limits},
  named{"leaving_memory", mechanism::leaving_memory},
  named{"write_order", mechanism::write_order},
};

mechanism read_broken() noexcept {
  // Safe while nobody changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* wanted = std::getenv("TROUPE_BREAK");
  if (wanted == nullptr || *wanted == '\0')
    return mechanism::none;
  for (const auto& [name, which] : names)
    if (name == wanted)
      return which;
  std::fprintf(stderr, "TROUPE_BREAK: there is no mechanism '%s'\n", wanted);
  std::abort();
}

} // namespace

bool is_broken(mechanism which) noexcept {
  static const auto broken = read_broken();
  return which == broken;
}

} // namespace troupe

#endif

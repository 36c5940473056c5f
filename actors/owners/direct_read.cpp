#include "troupe/actors/owners/direct_read.hpp"

#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"

namespace troupe::actors {

std::optional<session> read_directly(setup& shared,
                                     const session_key& key,
                                     const get_options& options) {
  if (shared.store || shared.closing || options.at)
    return std::nullopt;
  const auto found = shared.directory->find(key);
  if (!found)
    return std::nullopt;
  found->note_use();
  const auto& wanted = *found;
  const auto& user = wanted.parent();
  const auto& app = user.parent();
  // In this order: an answer that a wider owner sends before it is paused
  // reaches an owner that is paused already, and shows there as a letter.
  const inbox_actor::pause session_pause(*found);
  const inbox_actor::pause user_pause(wanted.parent());
  const inbox_actor::pause app_pause(user.parent());
  if (!app_pause.holds() || !user_pause.holds() || !session_pause.holds())
    return std::nullopt;
  return wanted.read(options, user.keys(), app.keys());
}

} // namespace troupe::actors

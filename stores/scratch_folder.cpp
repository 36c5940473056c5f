#include "troupe/stores/scratch_folder.hpp"

#include <fmt/format.h>

#include <random>

namespace troupe {

namespace {

// Never used twice, so that a name always means the same folder or none.
std::string new_name() {
  std::random_device entropy;
  return fmt::format(
    "{:08x}{:08x}{:08x}{:08x}", entropy(), entropy(), entropy(), entropy());
}

// Takes away what nobody holds. Whoever has just made a folder and not locked
// it yet will see that it is gone, and make another.
void sweep(const disk_folder& shelf) {
  for (const auto& name : shelf.entries()) {
    try {
      const auto left = shelf.find(name);
      if (left && left->try_lock()) {
        const std::unique_lock lock(*left, std::adopt_lock);
        shelf.remove(name);
      }
    } catch (const error&) {
      // It may be another user's. It is in nobody's way, so the work goes on.
      continue;
    }
  }
}

} // namespace

scratch_folder::named scratch_folder::make_locked(const disk_folder& shelf) {
  for (;;) {
    auto name = new_name();
    shelf.make_new(name);
    auto made = shelf.find(name);
    if (made && made->try_lock() && shelf.find(name))
      return {std::move(name), std::move(*made)};
  }
}

scratch_folder::scratch_folder(const disk_folder& root)
  : shelf_(root.make("scratch")),
    own_((sweep(shelf_), make_locked(shelf_))) {}

scratch_folder::~scratch_folder() {
  try {
    shelf_.remove(own_.name);
  } catch (const error&) {
    // Somebody may take it away later, when it is no longer locked.
  }
  own_.folder.unlock();
}

} // namespace troupe

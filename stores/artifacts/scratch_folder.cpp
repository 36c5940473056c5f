#include "troupe/stores/artifacts/scratch_folder.hpp"

#include <fmt/format.h>

#include <random>

namespace troupe {

namespace {

// Random and never used again, so a name always means the same folder or none.
std::string new_name() {
  std::random_device entropy;
  return fmt::format(
    "{:08x}{:08x}{:08x}{:08x}", entropy(), entropy(), entropy(), entropy());
}

// Removes the folders that no process has locked. A process that has just made
// a folder and not locked it yet finds it gone and makes another.
void sweep(const disk_folder& shelf) {
  for (const auto& name : shelf.entries()) {
    try {
      const auto left = shelf.find(name);
      if (left && left->try_lock()) {
        const std::unique_lock lock(*left, std::adopt_lock);
        shelf.remove(name);
      }
    } catch (const error&) {
      // The folder may belong to another user. It does no harm, so the sweep
      // continues.
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
    // The name is looked up again after the lock: a sweep may have removed the
    // folder before it was locked.
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
    // A later sweep removes it once it is unlocked.
  }
  own_.folder.unlock();
}

} // namespace troupe

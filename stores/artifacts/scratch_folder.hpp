// A private folder for files that are not published yet or no longer.
//
// It lies in `scratch` of the root folder, on the same file system, so that a
// rename can move its content to its place. It is locked while in use. A lock
// ends with its process, so an unlocked folder is left over from a crash; the
// next scratch folder removes it.

#pragma once

#include "troupe/stores/artifacts/folder.hpp"

#include <mutex>
#include <string>

namespace troupe {

class scratch_folder {
public:
  /// Throws `error` as folder.hpp does.
  explicit scratch_folder(const disk_folder& root);
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  /// Removes the folder with its content.
  ~scratch_folder();

  const disk_folder& folder() const noexcept { return own_.folder; }

private:
  struct named {
    std::string name;
    disk_folder folder;
  };

  static named make_locked(const disk_folder& shelf);

  disk_folder shelf_;
  named own_;
};

} // namespace troupe

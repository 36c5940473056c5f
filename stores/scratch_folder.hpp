// A folder of its own for work that is not to be seen yet, or not any more.
//
// It lies in `scratch` of the root, in the file system of what is moved out of
// it and into it. As long as it is in use it is locked; a lock ends with its
// process, so what is not locked was left behind by a crash, and the next
// scratch folder takes it away.

#pragma once

#include "troupe/stores/disk_folder.hpp"

#include <mutex>
#include <string>

namespace troupe {

class scratch_folder {
public:
  /// Throws `error`, as disk_folder.hpp.
  explicit scratch_folder(const disk_folder& root);
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  /// Removes it with what is in it by then.
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

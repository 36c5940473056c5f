// A file artifact store in a temporary folder, and other processes that use it.

#pragma once

#include "troupe/stores/artifacts/in_files.hpp"
#include "troupe/stores/artifacts/path.hpp"

#include "../outcome.hpp"
#include "child_process.hpp"
#include "temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace troupe::testing {

inline const session_key ann_1{"press", "ann", "s1"};

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream opened(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(opened), {}};
}

inline void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A store in a folder, with access to its files.
struct in_folder {
  std::unique_ptr<artifact_store> open() const {
    return open_file_artifacts(root).value();
  }

  std::int64_t save(std::string_view name, const part& content) const {
    return open()->save(ann_1, name, content).value();
  }

  std::string load(std::string_view name) const {
    const auto loaded = open()->load(ann_1, name);
    if (!loaded)
      return code_of(loaded);
    return *loaded ? *(*loaded)->text() : "nothing";
  }

  std::filesystem::path place_of(const artifact_key& key) const {
    auto place = root / "kept";
    for (const auto& name : path_of(key))
      place /= name;
    return place;
  }

  std::filesystem::path place_of(const std::string& name) const {
    return place_of({{"press", "ann", "s1"}, name});
  }

  /// Returns all files of the folder except those that form the tree.
  std::set<std::string> files() const {
    std::set<std::string> found;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root))
      if (!entry.is_directory())
        found.insert(entry.path().lexically_relative(root).string());
    return found;
  }

  bool scratch_is_empty() const {
    return std::filesystem::is_empty(root / "scratch");
  }

  temporary_folder folder;
  std::filesystem::path root = folder.path() / "root";
};

} // namespace troupe::testing

#include "troupe/stores/artifacts/in_files.hpp"

#include "troupe/stores/artifacts/form.hpp"
#include "troupe/stores/artifacts/path.hpp"
#include "troupe/stores/artifacts/scratch_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <span>

namespace troupe {

// Ordering of a save: files are synced in `scratch`, one rename publishes the
// version, then all folders on the path are synced, and only then it is
// acknowledged. A sync before the rename prevents empty files after a power
// failure; one after it prevents the loss of an acknowledged name.

namespace {

constexpr auto kept_name = "kept";
constexpr auto data_name = "data";
constexpr auto metadata_name = "metadata.json";
constexpr auto first_version_name = "0";

using path_view = std::span<const std::string>;

// Returns the folder at the end of `path`; nothing if it does not exist.
std::optional<disk_folder> find(const disk_folder& from, path_view path) {
  auto found = from.find(path.front());
  for (const auto& name : path.subspan(1)) {
    if (!found)
      break;
    found = found->find(name);
  }
  return found;
}

// Opens all folders on `path`; creates the missing ones.
std::vector<disk_folder> make_way(const disk_folder& from, path_view path) {
  std::vector<disk_folder> way;
  for (const auto& name : path)
    way.push_back((way.empty() ? from : way.back()).make(name));
  return way;
}

std::vector<std::int64_t> versions_in(const disk_folder& artifact) {
  std::vector<std::int64_t> versions;
  for (const auto& name : artifact.entries())
    if (const auto version = version_of(name))
      versions.push_back(*version);
  std::ranges::sort(versions);
  return versions;
}

// Adds the names of the artifacts in `folder`. `before` is the encoded part of
// their names that the outer folders hold. Entries that are not encodings are
// skipped.
void add_names(const disk_folder& folder,
               const std::string& before,
               std::vector<std::string>& names) {
  for (const auto& entry : folder.entries()) {
    auto encoded = before + entry;
    if (is_continued(entry)) {
      encoded.pop_back();
      if (const auto inner = folder.find(entry))
        add_names(*inner, encoded, names);
    } else if (auto name = decoded_name(encoded)) {
      names.push_back(std::move(*name));
    }
  }
}

// A version whose files are open, so that it can be read even after it was
// removed.
struct open_version {
  disk_file metadata;
  disk_file data;

  part read() const {
    auto content = part_from_files({metadata.read(), data.read()});
    if (!content)
      throw error(
        content.error().code(),
        fmt::format("{}: {}", metadata.path(), content.error().message()));
    return std::move(*content);
  }
};

class file_artifacts final : public artifact_store {
public:
  file_artifacts(disk_folder root, const artifact_options& options)
    : artifact_store(options),
      root_(std::move(root)) {}

protected:
  result<std::int64_t> do_save(const artifact_key& key,
                               const part& content) override {
    return guarded<std::int64_t>(
      "save " + to_string(key),
      [this, &key, &content] { return save_new(key, content); });
  }

  result<std::optional<part>>
  do_load(const artifact_key& key,
          std::optional<std::int64_t> version) override {
    return guarded<std::optional<part>>(
      "load " + to_string(key), [this, &key, version]() -> std::optional<part> {
        const auto found = find_version(key, version);
        if (!found)
          return std::nullopt;
        return found->read();
      });
  }

  result<std::vector<std::string>> do_list(const owner_name& owner) override {
    return guarded<std::vector<std::string>>(
      "list the artifacts of " + to_string(owner), [this, &owner] {
        std::vector<std::string> names;
        visit(artifacts_path_of(owner), [&names](const disk_folder& folder) {
          add_names(folder, {}, names);
        });
        return names;
      });
  }

  result<std::vector<std::int64_t>>
  do_versions(const artifact_key& key) override {
    return guarded<std::vector<std::int64_t>>(
      "list the versions of " + to_string(key), [this, &key] {
        std::vector<std::int64_t> versions;
        visit(path_of(key), [&versions](const disk_folder& artifact) {
          versions = versions_in(artifact);
        });
        return versions;
      });
  }

  result<void> do_copy(const artifact_key& from,
                       const artifact_key& to,
                       std::size_t count) override {
    const auto copied = guarded<bool>(
      fmt::format("copy {} to {}", to_string(from), to_string(to.owner)),
      [this, &from, &to, count] { return copy_new(from, to, count); });
    if (!copied)
      return copied.error();
    return {};
  }

  result<bool> do_remove(const artifact_key& key) override {
    return guarded<bool>("remove " + to_string(key),
                         [this, &key] { return take_away(path_of(key)); });
  }

  result<void> do_remove_owner(const owner_name& owner) override {
    const auto removed
      = guarded<bool>("remove the artifacts of " + to_string(owner),
                      [this, &owner] { return take_away(path_of(owner)); });
    if (!removed)
      return removed.error();
    return {};
  }

private:
  template <class T, class Act>
  static result<T> guarded(const std::string& attempt, const Act& act) {
    try {
      return act();
    } catch (const error& failure) {
      return error(failure.code(),
                   fmt::format("{}: {}", attempt, failure.message()));
    } catch (const std::exception& failure) {
      return error(errc::store_failed,
                   fmt::format("{}: {}", attempt, failure.what()));
    }
  }

  // -- reading ----

  // Calls `act` with the folder at `path`, if it exists. The shared lock keeps
  // the folder from being removed meanwhile.
  template <class Act>
  void visit(const folder_path& path, const Act& act) const {
    const auto kept = root_.find(kept_name);
    if (!kept)
      return;
    const std::shared_lock lock(*kept);
    if (const auto found = find(*kept, path))
      act(*found);
  }

  std::optional<open_version>
  find_version(const artifact_key& key,
               std::optional<std::int64_t> version) const {
    std::optional<open_version> opened;
    visit(path_of(key), [&opened, version](const disk_folder& artifact) {
      if (version)
        opened = open(artifact, *version);
      else if (const auto versions = versions_in(artifact); !versions.empty())
        opened = open(artifact, versions.back());
    });
    return opened;
  }

  static std::optional<open_version> open(const disk_folder& artifact,
                                          std::int64_t number) {
    const auto folder = artifact.find(std::to_string(number));
    if (!folder)
      return std::nullopt;
    auto metadata = folder->find_file(metadata_name);
    auto data = folder->find_file(data_name);
    if (!metadata || !data)
      throw error(errc::corrupt,
                  fmt::format("{}: {} is missing",
                              folder->path(),
                              metadata ? data_name : metadata_name));
    return open_version{std::move(*metadata), std::move(*data)};
  }

  // -- writing ----

  std::int64_t save_new(const artifact_key& key, const part& content) const {
    const scratch_folder scratch(root_);
    const auto made = write_first(scratch.folder(), key, content);
    const auto kept = root_.make(kept_name);
    const auto path = path_of(key);
    std::vector<disk_folder> way;
    std::int64_t version = 0;
    {
      // The lock is shared, so saves do not wait for each other. A removal
      // takes it exclusively; without it the removal of a folder could also
      // remove a version that is just being put into it.
      const std::shared_lock lock(kept);
      way = make_way(kept, path_view(path).first(path.size() - 1));
      if (scratch.folder().move(made_name, way.back(), path.back())
          != move_outcome::moved) {
        way.push_back(way.back().make(path.back()));
        version = add_version(made, way.back());
      }
    }
    sync_all(way, kept);
    return version;
  }

  // Syncs the whole path: the process that made one of the folders may not have
  // synced it yet.
  void sync_all(const std::vector<disk_folder>& way,
                const disk_folder& kept) const {
    for (const auto& folder : way)
      folder.sync();
    kept.sync();
    root_.sync();
  }

  // Returns false if there was nothing to copy.
  bool copy_new(const artifact_key& from,
                const artifact_key& to,
                std::size_t count) const {
    const scratch_folder scratch(root_);
    if (!share_versions(scratch.folder(), from, count))
      return false;
    const auto kept = root_.make(kept_name);
    const auto path = path_of(to);
    std::vector<disk_folder> way;
    {
      const std::shared_lock lock(kept);
      way = make_way(kept, path_view(path).first(path.size() - 1));
      if (scratch.folder().move(made_name, way.back(), path.back())
          != move_outcome::moved)
        throw exists_already(to);
    }
    sync_all(way, kept);
    return true;
  }

  // Makes an artifact of the first `count` versions of another one, in a
  // scratch folder. The files are shared: nothing ever writes into them.
  bool share_versions(const disk_folder& scratch,
                      const artifact_key& from,
                      std::size_t count) const {
    std::size_t shared = 0;
    visit(path_of(from), [&](const disk_folder& source) {
      auto versions = versions_in(source);
      versions.resize(std::min(count, versions.size()));
      for (const auto number : versions) {
        const auto name = std::to_string(number);
        const auto found = source.find(name);
        if (!found)
          throw error(errc::store_failed,
                      fmt::format("another process has removed {}/{}",
                                  source.path(),
                                  name));
        const auto version = scratch.make(made_name).make(name);
        for (const auto* file : {data_name, metadata_name})
          found->share_file(file, version);
        version.sync();
        ++shared;
      }
    });
    if (shared > 0)
      scratch.make(made_name).sync();
    return shared > 0;
  }

  // Makes a durable artifact with one version in a scratch folder.
  static disk_folder write_first(const disk_folder& scratch,
                                 const artifact_key& key,
                                 const part& content) {
    const auto files = to_files(key.owner.where() == scope::user
                                  ? join_key(scope::user, key.name)
                                  : key.name,
                                content);
    auto artifact = scratch.make(made_name);
    const auto version = artifact.make(first_version_name);
    version.write_file(data_name, files.data);
    version.write_file(metadata_name, files.metadata);
    version.sync();
    artifact.sync();
    return artifact;
  }

  // Moves the version to the first free number after the existing ones. A
  // number that another process took first is occupied.
  static std::int64_t add_version(const disk_folder& made,
                                  const disk_folder& artifact) {
    const auto versions = versions_in(artifact);
    for (auto version = versions.empty() ? 0 : versions.back() + 1;;
         ++version) {
      switch (
        made.move(first_version_name, artifact, std::to_string(version))) {
      case move_outcome::moved:
        return version;
      case move_outcome::absent:
        throw error(errc::store_failed,
                    fmt::format("another process has removed {} or {}",
                                made.path(),
                                artifact.path()));
      case move_outcome::occupied:
        break;
      }
    }
  }

  // Removes the folder at `path`; returns false if there is none. The rename
  // makes it invisible at once. Deleting the content takes longer and may fail
  // unnoticed.
  bool take_away(const folder_path& path) const {
    const auto kept = root_.find(kept_name);
    const auto outer = path_view(path).first(path.size() - 1);
    // The folder of an app is in `kept` itself.
    const auto find_parent = [&] {
      return outer.empty() ? root_.find(kept_name) : find(*kept, outer);
    };
    if (!kept || !find_parent())
      return false;
    const scratch_folder scratch(root_);
    std::optional<disk_folder> parent;
    {
      const std::unique_lock lock(*kept);
      parent = find_parent();
      if (!parent
          || parent->move(path.back(), scratch.folder(), "removed")
               != move_outcome::moved)
        return false;
    }
    parent->sync();
    return true;
  }

  static constexpr auto made_name = "made";

  disk_folder root_;
};

} // namespace

result<std::unique_ptr<artifact_store>>
open_file_artifacts(const std::filesystem::path& path,
                    const artifact_options& options) {
  try {
    return std::make_unique<file_artifacts>(disk_folder::open(path), options);
  } catch (const error& failure) {
    return failure;
  }
}

} // namespace troupe

#include "fault_vfs.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <vector>

namespace troupe::testing {

namespace {

constexpr sqlite3_int64 sector_size = 512;

// A part of the file whose content on the disk differs from the file.
struct sector {
  std::vector<char> durable; ///< Shorter than a sector at the end of the file.
  bool is_forgotten = false; ///< A failed sync has dropped it.
};

struct disk_file {
  std::map<sqlite3_int64, sector> unsynced;
  sqlite3_int64 durable_size = 0;
};

} // namespace

struct fault_vfs::disk {
  explicit disk(std::uint64_t seed) : dice(seed) {}

  // Decides whether a call that fails one time in `count` fails now.
  bool strikes(std::uint32_t count) {
    if (!has_power)
      return true;
    if (count == 0 || failure_count >= faults.failures_max
        || dice() % count != 0)
      return false;
    ++failure_count;
    return true;
  }

  // The same for a call that changes the disk.
  bool strikes_change(std::uint32_t count) {
    if (changes_left == 0)
      has_power = false;
    else
      --changes_left;
    return strikes(count);
  }

  sqlite3_vfs vfs{};
  sqlite3_vfs* below = nullptr;
  std::string name;

  std::mutex mutex; // Guards all members below.
  std::mt19937_64 dice;
  disk_faults faults;
  bool has_power = true;
  std::size_t changes_left = SIZE_MAX; // Before the power is cut.
  std::size_t failure_count = 0;
  std::size_t sync_count = 0;
  std::map<std::string, disk_file> files;
};

namespace {

using disk = fault_vfs::disk;

// SQLite's handle of an open file. The handle of the layer below follows it in
// memory.
struct open_file {
  sqlite3_file base;
  disk* on;
  disk_file* file; ///< Null for a temporary file.

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

static_assert(sizeof(open_file) % alignof(std::max_align_t) == 0
              || sizeof(open_file) % 8 == 0);

open_file& own(sqlite3_file* handle) {
  return *reinterpret_cast<open_file*>(handle);
}

sqlite3_file* below(sqlite3_file* handle) {
  return own(handle).below();
}

sqlite3_int64 size_of(sqlite3_file* handle) {
  sqlite3_int64 size = 0;
  handle->pMethods->xFileSize(handle, &size);
  return size;
}

// Saves the content of the sectors from `start` to `end` before they change.
int keep(open_file& target, sqlite3_int64 start, sqlite3_int64 end) {
  const auto size = size_of(target.below());
  for (auto at = start / sector_size; at * sector_size < end; ++at) {
    const auto [found, is_new] = target.file->unsynced.try_emplace(at);
    found->second.is_forgotten = false;
    if (!is_new)
      continue;
    const auto left = std::clamp(size - at * sector_size, 0LL, sector_size);
    found->second.durable.resize(static_cast<std::size_t>(left));
    if (left == 0)
      continue;
    const int code
      = target.below()->pMethods->xRead(target.below(),
                                        found->second.durable.data(),
                                        static_cast<int>(left),
                                        at * sector_size);
    if (code != SQLITE_OK)
      return code;
  }
  return SQLITE_OK;
}

// -- operations of a file ----

int close(sqlite3_file* handle) {
  return below(handle)->pMethods->xClose(below(handle));
}

int read(sqlite3_file* handle, void* bytes, int count, sqlite3_int64 at) {
  auto& target = own(handle);
  {
    const std::lock_guard guard(target.on->mutex);
    if (target.on->strikes(target.on->faults.read_error))
      return SQLITE_IOERR_READ;
  }
  return below(handle)->pMethods->xRead(below(handle), bytes, count, at);
}

int write(sqlite3_file* handle,
          const void* bytes,
          int count,
          sqlite3_int64 at) {
  auto& target = own(handle);
  auto& on = *target.on;
  const std::lock_guard guard(on.mutex);
  if (on.strikes_change(on.faults.write_error))
    return SQLITE_IOERR_WRITE;
  const bool is_full = on.strikes(on.faults.disk_full);
  const bool is_short = is_full || on.strikes(on.faults.short_write);
  if (is_short)
    count = static_cast<int>(on.dice() % static_cast<unsigned>(count));
  if (count > 0) {
    int code = target.file ? keep(target, at, at + count) : SQLITE_OK;
    if (code == SQLITE_OK)
      code = below(handle)->pMethods->xWrite(below(handle), bytes, count, at);
    if (code != SQLITE_OK)
      return code;
  }
  return is_full ? SQLITE_FULL : is_short ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

int truncate(sqlite3_file* handle, sqlite3_int64 size) {
  auto& target = own(handle);
  auto& on = *target.on;
  const std::lock_guard guard(on.mutex);
  if (on.strikes_change(on.faults.write_error))
    return SQLITE_IOERR_TRUNCATE;
  if (target.file)
    if (const int code = keep(target, size, size_of(below(handle)));
        code != SQLITE_OK)
      return code;
  return below(handle)->pMethods->xTruncate(below(handle), size);
}

// The file is not really synced: the machine that runs the test stays up.
int sync(sqlite3_file* handle, int) {
  auto& target = own(handle);
  auto& on = *target.on;
  const std::lock_guard guard(on.mutex);
  if (on.strikes_change(on.faults.sync_error)) {
    if (target.file)
      for (auto& [at, each] : target.file->unsynced)
        each.is_forgotten = true;
    return SQLITE_IOERR_FSYNC;
  }
  ++on.sync_count;
  if (target.file) {
    std::erase_if(target.file->unsynced,
                  [](const auto& each) { return !each.second.is_forgotten; });
    target.file->durable_size = size_of(below(handle));
  }
  return SQLITE_OK;
}

int file_size(sqlite3_file* handle, sqlite3_int64* size) {
  return below(handle)->pMethods->xFileSize(below(handle), size);
}

int lock(sqlite3_file* handle, int level) {
  return below(handle)->pMethods->xLock(below(handle), level);
}

int unlock(sqlite3_file* handle, int level) {
  return below(handle)->pMethods->xUnlock(below(handle), level);
}

int check_reserved_lock(sqlite3_file* handle, int* is_held) {
  return below(handle)->pMethods->xCheckReservedLock(below(handle), is_held);
}

// Refuses to allocate space ahead of the writes, so that the size of a file is
// that of its content.
int file_control(sqlite3_file* handle, int request, void* data) {
  if (request == SQLITE_FCNTL_SIZE_HINT || request == SQLITE_FCNTL_CHUNK_SIZE)
    return SQLITE_NOTFOUND;
  return below(handle)->pMethods->xFileControl(below(handle), request, data);
}

int sector_size_of(sqlite3_file* handle) {
  return below(handle)->pMethods->xSectorSize(below(handle));
}

int device_characteristics(sqlite3_file* handle) {
  return below(handle)->pMethods->xDeviceCharacteristics(below(handle));
}

int shm_map(sqlite3_file* handle,
            int region,
            int size,
            int extends,
            volatile void** memory) {
  return below(handle)->pMethods->xShmMap(
    below(handle), region, size, extends, memory);
}

int shm_lock(sqlite3_file* handle, int offset, int count, int flags) {
  return below(handle)->pMethods->xShmLock(below(handle), offset, count, flags);
}

void shm_barrier(sqlite3_file* handle) {
  below(handle)->pMethods->xShmBarrier(below(handle));
}

int shm_unmap(sqlite3_file* handle, int deletes) {
  return below(handle)->pMethods->xShmUnmap(below(handle), deletes);
}

// Version 2 has shared memory for the write-ahead log, and no mapped files,
// whose writes this layer would not see.
constexpr sqlite3_io_methods methods = [] {
  sqlite3_io_methods all{};
  all.iVersion = 2;
  all.xClose = close;
  all.xRead = read;
  all.xWrite = write;
  all.xTruncate = truncate;
  all.xSync = sync;
  all.xFileSize = file_size;
  all.xLock = lock;
  all.xUnlock = unlock;
  all.xCheckReservedLock = check_reserved_lock;
  all.xFileControl = file_control;
  all.xSectorSize = sector_size_of;
  all.xDeviceCharacteristics = device_characteristics;
  all.xShmMap = shm_map;
  all.xShmLock = shm_lock;
  all.xShmBarrier = shm_barrier;
  all.xShmUnmap = shm_unmap;
  return all;
}();

// -- operations of the layer ----

disk& disk_of(sqlite3_vfs* vfs) {
  return *static_cast<disk*>(vfs->pAppData);
}

int open(sqlite3_vfs* vfs,
         const char* path,
         sqlite3_file* handle,
         int flags,
         int* flags_out) {
  auto& on = disk_of(vfs);
  auto& target = *new (handle) open_file{{}, &on, nullptr};
  const int code
    = on.below->xOpen(on.below, path, target.below(), flags, flags_out);
  if (code != SQLITE_OK)
    return code;
  target.base.pMethods = &methods;
  if (path != nullptr) {
    const std::lock_guard guard(on.mutex);
    const auto [found, is_new] = on.files.try_emplace(path);
    if (is_new)
      found->second.durable_size = size_of(target.below());
    target.file = &found->second;
  }
  return SQLITE_OK;
}

// A removal is final at once; the return of a removed file is not simulated.
int remove(sqlite3_vfs* vfs, const char* path, int syncs_folder) {
  auto& on = disk_of(vfs);
  const std::lock_guard guard(on.mutex);
  if (on.strikes_change(0))
    return SQLITE_IOERR_DELETE;
  // Other handles may still have the file open. Its entry stays, without the
  // saved sectors.
  if (const auto found = on.files.find(path); found != on.files.end())
    found->second = {};
  return on.below->xDelete(on.below, path, syncs_folder);
}

int access(sqlite3_vfs* vfs, const char* path, int flags, int* is_granted) {
  auto* below = disk_of(vfs).below;
  return below->xAccess(below, path, flags, is_granted);
}

int full_pathname(sqlite3_vfs* vfs, const char* path, int size, char* full) {
  auto* below = disk_of(vfs).below;
  return below->xFullPathname(below, path, size, full);
}

int randomness(sqlite3_vfs* vfs, int size, char* bytes) {
  auto* below = disk_of(vfs).below;
  return below->xRandomness(below, size, bytes);
}

int pause(sqlite3_vfs* vfs, int microseconds) {
  auto* below = disk_of(vfs).below;
  return below->xSleep(below, microseconds);
}

int current_time(sqlite3_vfs* vfs, double* days) {
  auto* below = disk_of(vfs).below;
  return below->xCurrentTime(below, days);
}

int last_error(sqlite3_vfs* vfs, int size, char* text) {
  auto* below = disk_of(vfs).below;
  return below->xGetLastError(below, size, text);
}

// -- after a power failure ----

void put_back(const std::string& path,
              const disk_file& file,
              bool all_lost,
              std::mt19937_64& dice) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    return; // The file was removed.

  struct stat found {};

  ::fstat(descriptor, &found);
  const auto size_lost = all_lost || dice() % 2 == 0;
  for (const auto& [at, each] : file.unsynced) {
    const bool is_lost = all_lost || each.is_forgotten || dice() % 2 == 0;
    if (!is_lost)
      continue;
    std::array<char, sector_size> bytes{};
    std::ranges::copy(each.durable, bytes.begin());
    const auto length
      = std::min(sector_size,
                 std::max<sqlite3_int64>(found.st_size, file.durable_size)
                   - at * sector_size);
    if (length > 0
        && ::pwrite(descriptor,
                    bytes.data(),
                    static_cast<std::size_t>(length),
                    at * sector_size)
             != length)
      throw std::runtime_error("cannot put back " + path);
  }
  if (size_lost && ::ftruncate(descriptor, file.durable_size) != 0)
    throw std::runtime_error("cannot put back " + path);
  ::close(descriptor);
}

std::string unused_name() {
  static std::atomic<int> count{0};
  return "faulty" + std::to_string(++count);
}

} // namespace

fault_vfs::fault_vfs(std::uint64_t seed) : disk_(std::make_unique<disk>(seed)) {
  disk_->below = sqlite3_vfs_find(nullptr);
  disk_->name = unused_name();
  auto& vfs = disk_->vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(sizeof(open_file)) + disk_->below->szOsFile;
  vfs.mxPathname = disk_->below->mxPathname;
  vfs.zName = disk_->name.c_str();
  vfs.pAppData = disk_.get();
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = full_pathname;
  vfs.xRandomness = randomness;
  vfs.xSleep = pause;
  vfs.xCurrentTime = current_time;
  vfs.xGetLastError = last_error;
  if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
    throw std::runtime_error("SQLite does not take the layer");
}

fault_vfs::~fault_vfs() {
  sqlite3_vfs_unregister(&disk_->vfs);
}

const std::string& fault_vfs::name() const noexcept {
  return disk_->name;
}

void fault_vfs::fail(const disk_faults& faults) {
  const std::lock_guard guard(disk_->mutex);
  disk_->faults = faults;
}

std::size_t fault_vfs::failures() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->failure_count;
}

std::size_t fault_vfs::syncs() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->sync_count;
}

void fault_vfs::cut_power() {
  const std::lock_guard guard(disk_->mutex);
  disk_->has_power = false;
}

void fault_vfs::cut_power_after(std::size_t changes) {
  const std::lock_guard guard(disk_->mutex);
  disk_->changes_left = changes;
}

void fault_vfs::restore_power(bool all_lost) {
  const std::lock_guard guard(disk_->mutex);
  for (auto& [path, file] : disk_->files)
    put_back(path, file, all_lost, disk_->dice);
  disk_->files.clear();
  disk_->has_power = true;
  disk_->changes_left = SIZE_MAX;
}

} // namespace troupe::testing

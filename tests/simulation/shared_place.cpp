#include "shared_place.hpp"

#include "troupe/stores/sqlite_store.hpp"

#include <cstdlib>
#include <system_error>

namespace troupe::testing {

namespace {

std::filesystem::path make_folder() {
  auto name
    = (std::filesystem::temp_directory_path() / "simulation-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  return name;
}

} // namespace

shared_place::shared_place(place_kind kind) {
  if (kind == place_kind::memory)
    memory_ = make_memory_place();
  else
    folder_ = make_folder();
}

shared_place::~shared_place() {
  std::error_code ignored;
  if (!folder_.empty())
    std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<store> shared_place::open() const {
  if (memory_)
    return make_memory_store(memory_);
  store_options options;
  options.durability = durability::none;
  return open_sqlite_store(folder_ / "simulated.db", options).value();
}

} // namespace troupe::testing

// A store in the memory of this process: for tests, and as the shortest example
// of a user-defined store.

#pragma once

#include "troupe/stores/store.hpp"

#include <functional>
#include <memory>

namespace troupe {

/// The data of memory stores. Several stores may share one object, as processes
/// share a file. The object lives as long as a pointer to it.
class memory_data;

/// Makes empty data. Stores on it may be used on different threads. `clock` is
/// the clock of the store, for the times of open runs and their holders; unset:
/// that of the machine. It must be safe on all threads that use the stores.
std::shared_ptr<memory_data> make_memory_data(std::function<timestamp()> clock
                                              = {});

/// Makes a store with its own empty data, which lives as long as the store.
std::unique_ptr<store> make_memory_store();

/// Makes a store on `data`. It sees the commits of all other stores on that
/// data. `data` must not be null.
std::unique_ptr<store> make_memory_store(std::shared_ptr<memory_data> data);

} // namespace troupe

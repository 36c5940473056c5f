// Calls of a store, which may be code of users and throw.

#pragma once

#include "troupe/core/error.hpp"

#include <exception>
#include <new>
#include <string>

namespace troupe::actors {

/// Returns the result of `work`, which calls a store. A store must not throw;
/// an exception becomes `errc::store_failed`.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return error(errc::store_failed, "the store is out of memory");
  } catch (const std::exception& thrown) {
    return error(errc::store_failed,
                 std::string("the store threw: ") + thrown.what());
  } catch (...) {
    return error(errc::store_failed, "the store threw");
  }
}

} // namespace troupe::actors

// App and user of a session; shared by all sessions of a user.

#pragma once

#include <memory>
#include <string>

namespace troupe::actors {

class list_index;

struct user_names {
  std::string app;
  std::string user;
  /// Index in which its sessions are listed; null over a store, which lists
  /// them itself.
  std::shared_ptr<list_index> listed = nullptr;
};

} // namespace troupe::actors

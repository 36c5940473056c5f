// Finds the handler of a request by its method and its path.

#pragma once

#include "troupe/server/http/caller.hpp"
#include "troupe/server/http/reply.hpp"
#include "troupe/server/http/request.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::serving {

/// Values of the segments that a pattern names.
class path_values {
public:
  void add(std::string name, std::string data) {
    values_.emplace_back(std::move(name), std::move(data));
  }

  /// The value of a name that the pattern has.
  const std::string& operator[](std::string_view name) const;

  /// Returns the value of a name; null if the pattern does not have it.
  const std::string* find(std::string_view name) const;

private:
  std::vector<std::pair<std::string, std::string>> values_;
};

/// A request on its way to a handler.
struct exchange {
  request asked;
  path_values path;
  caller who;
  reply to;
};

using route_handler = std::function<void(exchange)>;

/// The decision to let a request in, made on its head.
struct admission {
  caller who;
  path_values path;
  /// Of the router, which outlives the request.
  const route_handler* handle = nullptr;
  /// Headers for the answer.
  header_list headers;
};

/// Returns the answer to a request that the caller may not send, as far as its
/// head tells.
using rights_check = std::function<std::optional<response>(
  const request& head, const path_values& path, const caller& who)>;

/// Routes are added before the first request; then it is safe from any thread.
class router {
public:
  struct route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;
    route_handler handle;
  };

  /// Adds a route. A segment of the pattern in braces takes any text that is
  /// not empty: `/apps/{app}/users`. The last segment `{name...}` takes all
  /// segments that are left, joined by `/`.
  void add(std::string method, std::string pattern, route_handler handle);

  /// Sets the check of all requests.
  void check_by(rights_check check) { check_ = std::move(check); }

  /// Finds the first route that fits; that of GET for HEAD. Returns the answer
  /// to a request without a route, 404 or 405, and to one that the check
  /// refuses.
  std::variant<admission, response> find(const request& head, caller who) const;

  const std::vector<route>& routes() const noexcept { return routes_; }

private:
  std::vector<route> routes_;
  rights_check check_;
};

} // namespace troupe::serving

#include "troupe/server/http/router.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>

namespace troupe::serving {

namespace {

bool is_variable(std::string_view segment) {
  return segment.starts_with('{');
}

bool is_rest(std::string_view segment) {
  return segment.ends_with("...}");
}

std::string name_of(std::string_view segment) {
  return std::string(
    segment.substr(1, segment.size() - (is_rest(segment) ? 5 : 2)));
}

std::string joined(const std::vector<std::string>& segments, std::size_t from) {
  std::string text;
  for (auto index = from; index < segments.size(); ++index)
    text += (index == from ? "" : "/") + segments[index];
  return text;
}

std::optional<path_values> match(const std::vector<std::string>& pattern,
                                 const std::vector<std::string>& segments) {
  path_values found;
  for (std::size_t index = 0; index < pattern.size(); ++index) {
    if (index == segments.size())
      return std::nullopt;
    const auto& wanted = pattern[index];
    if (is_rest(wanted)) {
      found.add(name_of(wanted), joined(segments, index));
      return found;
    }
    if (is_variable(wanted) ? segments[index].empty()
                            : wanted != segments[index])
      return std::nullopt;
    if (is_variable(wanted))
      found.add(name_of(wanted), segments[index]);
  }
  if (pattern.size() != segments.size())
    return std::nullopt;
  return found;
}

const std::string get = "GET";

response no_route(std::set<std::string> allowed) {
  if (allowed.empty())
    return json_response({{"detail", "Not Found"}}, 404);
  if (allowed.contains(get))
    allowed.insert("HEAD");
  std::string methods;
  for (const auto& each : allowed)
    methods += (methods.empty() ? "" : ", ") + each;
  return json_response({{"detail", "Method Not Allowed"}}, 405)
    .with("allow", methods);
}

} // namespace

const std::string* path_values::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
    values_, [name](const auto& each) { return each.first == name; });
  return found == values_.end() ? nullptr : &found->second;
}

const std::string& path_values::operator[](std::string_view name) const {
  const auto* found = find(name);
  assert(found != nullptr);
  return *found;
}

void router::add(std::string method,
                 std::string pattern,
                 route_handler handle) {
  route added{std::move(method), std::move(pattern), {}, std::move(handle)};
  std::string_view left = added.pattern;
  while (!left.empty()) {
    left.remove_prefix(1);
    const auto end = left.find('/');
    added.segments.emplace_back(left.substr(0, end));
    left = end == left.npos ? std::string_view() : left.substr(end);
  }
  routes_.push_back(std::move(added));
}

std::variant<admission, response> router::find(const request& head,
                                               caller who) const {
  // The connection leaves the body of its answer out.
  const auto& method = head.method == "HEAD" ? get : head.method;
  std::set<std::string> allowed;
  for (const auto& each : routes_) {
    auto path = match(each.segments, head.target.segments);
    if (!path)
      continue;
    if (each.method != method) {
      allowed.insert(each.method);
      continue;
    }
    if (check_)
      if (auto refused = check_(head, *path, who))
        return std::move(*refused);
    return admission{std::move(who), std::move(*path), &each.handle, {}};
  }
  return no_route(std::move(allowed));
}

} // namespace troupe::serving

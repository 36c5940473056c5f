#include "troupe/stores/postgres/address.hpp"

#include "troupe/stores/postgres/conninfo.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe {

namespace {

constexpr auto npos = std::string_view::npos;

conninfo parse(const std::string& url) {
  return conninfo(PQconninfoParse(url.c_str(), nullptr));
}

bool is_port(std::string_view text) {
  int number = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && number > 0
         && number <= 65'535;
}

// Accepts an empty port, for which libpq uses its default.
bool are_ports(std::string_view list) {
  for (;;) {
    const auto comma = list.find(',');
    const auto port = list.substr(0, comma);
    if (!port.empty() && !is_port(port))
      return false;
    if (comma == npos)
      return true;
    list.remove_prefix(comma + 1);
  }
}

// A socket's folder, or a name in the abstract namespace, may contain an `@`.
bool is_host(std::string_view host) {
  return host.starts_with('/') || host.starts_with('@')
         || host.find('@') == npos;
}

bool are_hosts(std::string_view list) {
  for (;;) {
    const auto comma = list.find(',');
    if (!is_host(list.substr(0, comma)))
      return false;
    if (comma == npos)
      return true;
    list.remove_prefix(comma + 1);
  }
}

bool is_password(std::string_view parameter) {
  // Asks libpq, because it decodes parameter names too. `k=v` in a URL of its
  // own shows how libpq reads it.
  const auto parsed = parse("postgres:///?" + std::string(parameter));
  for (const auto* option = parsed.get(); option && option->keyword; ++option)
    if (option->val
        && (std::string_view(option->keyword) == "password"
            || std::string_view(option->keyword) == "sslpassword"))
      return true;
  return false;
}

// Returns the size of the scheme with its slashes; 0 for another address.
std::size_t size_of_scheme(std::string_view address) {
  for (const std::string_view scheme : {"postgres://", "postgresql://"})
    if (address.starts_with(scheme))
      return scheme.size();
  return 0;
}

} // namespace

std::string postgres_address_flaw(const std::string& url) {
  const auto parsed = parse(url);
  if (!parsed)
    return "does not read as postgres://USER@HOST:PORT/DATABASE";
  for (const auto* option = parsed.get(); option->keyword; ++option) {
    const std::string_view name = option->keyword;
    if (option->val && name == "port" && !are_ports(option->val))
      return "has a port that is not a number from 1 to 65535; in a password, "
             "/ "
             "is spelled %2F, @ %40 and : %3A";
    if (option->val && name == "host" && !are_hosts(option->val))
      return "has a host with an @ in it; in a password, @ is spelled %40";
  }
  // A password with an unescaped slash ends up in the name of the database.
  const auto slashes = url.find("://");
  if (slashes == std::string::npos)
    return {}; // Keywords have no separators.
  const auto path = url.find('/', slashes + 3);
  if (path != npos && url.find('@', path) < std::min(url.find('?'), url.size()))
    return "has an @ after its host; in a password, / is spelled %2F, and in "
           "the name of a database @ is spelled %40";
  return {};
}

std::string leave_out_passwords(std::string_view address) {
  const auto scheme_size = size_of_scheme(address);
  std::string text(address);
  if (scheme_size == 0 || !postgres_address_flaw(text).empty())
    return text;
  // The user ends at the first @ before a slash, as in libpq.
  const auto user_end = text.find_first_of("@/", scheme_size);
  if (user_end != npos && text[user_end] == '@')
    if (const auto colon = text.find(':', scheme_size); colon < user_end)
      text.erase(colon, user_end - colon);
  // A question mark in a password was removed with it.
  const auto query = text.find('?', scheme_size);
  if (query == npos)
    return text;
  std::string kept = text.substr(0, query);
  char before = '?';
  for (std::string_view rest = std::string_view(text).substr(query + 1);;) {
    const auto end = rest.find('&');
    if (const auto each = rest.substr(0, end);
        !each.empty() && !is_password(each)) {
      kept += std::exchange(before, '&');
      kept += each;
    }
    if (end == npos)
      return kept;
    rest.remove_prefix(end + 1);
  }
}

} // namespace troupe

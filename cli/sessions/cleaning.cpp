#include "troupe/cli/sessions/cleaning.hpp"

#include "troupe/cli/sessions/on_sessions.hpp"
#include "troupe/cli/terminal/confirmation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe::cli {

namespace {

constexpr std::size_t page_rows = 1'000;

struct counts {
  std::size_t users = 0;
  std::size_t sessions = 0;
};

result<counts> count_all(session_service& sessions, const unwanted& wanted) {
  counts found;
  list_request rows(wanted.app, wanted.user, page_rows);
  do {
    const auto page = sessions.list(rows).get();
    if (!page)
      return page.error();
    found.sessions += page->sessions.size();
    rows.cursor = page->next_cursor;
  } while (!rows.cursor.empty());
  if (wanted.user)
    return found;
  user_list_request users(wanted.app, page_rows);
  do {
    const auto page = sessions.list_users(users).get();
    if (!page)
      return page.error();
    found.users += page->names.size();
    users.cursor = page->next_cursor;
  } while (!users.cursor.empty());
  return found;
}

std::string plural(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string removal_question(const unwanted& wanted, const counts& found) {
  if (wanted.user)
    return fmt::format("Remove user {} of app {} with {}?",
                       *wanted.user,
                       wanted.app,
                       plural(found.sessions, "session"));
  return fmt::format("Remove app {} with {} and {}?",
                     wanted.app,
                     plural(found.users, "user"),
                     plural(found.sessions, "session"));
}

// Tells if the user or the app exists.
result<bool> is_there(session_service& sessions, const unwanted& wanted) {
  if (wanted.user) {
    const auto name = check_id(*wanted.user, "user");
    if (!name)
      return name.error();
    user_list_request users(wanted.app, page_rows);
    for (;;) {
      const auto page = sessions.list_users(users).get();
      if (!page)
        return page.error();
      if (std::ranges::find(page->names, *name) != page->names.end())
        return true;
      if (page->next_cursor.empty())
        return false;
      users.cursor = page->next_cursor;
    }
  }
  const auto keys = sessions.app_state(wanted.app).get();
  if (!keys)
    return keys.error();
  const auto users = sessions.list_users({wanted.app, 1}).get();
  if (!users)
    return users.error();
  return !keys->empty() || !users->names.empty();
}

json removal_line(const unwanted& wanted, const counts& found, bool removed) {
  json line{{"removed", removed}, {"app", wanted.app}};
  if (wanted.user)
    line["user"] = *wanted.user;
  else
    line["users"] = found.users;
  line["sessions"] = found.sessions;
  return line;
}

} // namespace

int remove_from(const store_option& store,
                const unwanted& wanted,
                interrupts& signals) {
  auto owners = runtime::open(store.for_runtime());
  if (!owners)
    return report(owners.error());
  auto sessions = owners->sessions();
  const auto found = count_all(sessions, wanted);
  if (!found)
    return report(found.error());
  if (!wanted.is_confirmed) {
    const auto there = is_there(sessions, wanted);
    if (!there)
      return report(there.error());
    if (*there)
      if (const auto agreed = confirm(removal_question(wanted, *found));
          !agreed)
        return report(agreed.error(),
                      agreed.error().code() == errc::invalid_argument
                        ? exit_usage
                        : exit_failed);
  }
  // From here on the first signal does not end the program, because an app
  // could be left half removed.
  signals.begin();
  signals.set_exit_timeout(interrupts::forever);
  const auto removed = wanted.user
                         ? sessions.remove_user(wanted.app, *wanted.user).get()
                         : sessions.remove_app(wanted.app).get();
  if (!removed)
    return report(removed.error());
  constexpr int never = -1;
  output target(STDOUT_FILENO, never);
  return end(print_line(target, removal_line(wanted, *found, *removed)),
             target,
             signals);
}

result<std::size_t> remove_apps(const store_option& store,
                                const std::string& prefix) {
  std::size_t removed = 0;
  if (store.address() == "memory:")
    return removed;
  auto owners = runtime::open(store.for_runtime());
  if (!owners)
    return owners.error();
  auto sessions = owners->sessions();
  // Names with a prefix stand together, behind the prefix itself.
  app_list_request request(page_rows, prefix);
  do {
    const auto page = sessions.list_apps(request).get();
    if (!page)
      return page.error();
    request.cursor = page->next_cursor;
    for (const auto& app : page->names) {
      if (!app.starts_with(prefix)) {
        request.cursor.clear();
        break;
      }
      if (const auto done = sessions.remove_app(app).get(); !done)
        return done.error();
      ++removed;
    }
  } while (!request.cursor.empty());
  if (const auto closed = owners->shut_down(); !closed)
    return closed.error();
  return removed;
}

result<std::size_t> remove_sessions(const store_option& store,
                                    const std::vector<session_key>& unwanted) {
  auto owners = runtime::open(store.for_runtime());
  if (!owners)
    return owners.error();
  auto sessions = owners->sessions();
  std::size_t removed = 0;
  result<void> failed;
  for (const auto& key : unwanted) {
    const auto done = sessions.remove(key).get();
    if (done)
      removed += *done ? 1 : 0;
    else if (failed)
      failed = done.error();
  }
  if (const auto closed = owners->shut_down(); failed && !closed)
    failed = closed.error();
  if (!failed)
    return failed.error();
  return removed;
}

} // namespace troupe::cli

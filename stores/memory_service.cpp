#include "troupe/stores/memory_service.hpp"

#include "troupe/stores/memory_words.hpp"

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fmt/format.h>

#include <optional>
#include <utility>

namespace troupe {

namespace {

// Role and texts of a message.
content texts_of(const content& said) {
  content kept(said.role, {});
  for (const auto& each : said.parts)
    if (const auto* line = each.text();
        line != nullptr && !line->empty() && !each.thought)
      kept.parts.emplace_back(*line);
  return kept;
}

bool has_word(const content& said) {
  return !query_words(memory_text(said)).empty();
}

// Checks that a store can keep the texts of a memory. `subject` begins the
// message of the error.
result<void> check_texts(const memory_entry& made, std::string_view subject) {
  const auto text = memory_text(made.content);
  if (text.size() > memory_bytes_max)
    return error(errc::too_large,
                 fmt::format("{} has {} bytes of text, above the limit of {}",
                             subject,
                             text.size(),
                             memory_bytes_max));
  if (!is_utf8(text))
    return error(errc::invalid_argument,
                 fmt::format("{} has a text that is not UTF-8", subject));
  if (!is_utf8(made.author) || !is_utf8(made.content.role))
    return error(
      errc::invalid_argument,
      fmt::format("{} has an author or a role that is not UTF-8", subject));
  return {};
}

// The memory of an event; nothing if it has no word.
result<std::optional<memory_entry>> entry_of(const session_key& key,
                                             const event& said) {
  memory_entry made(texts_of(said.content));
  if (said.partial || !has_word(made.content))
    return std::optional<memory_entry>();
  auto id = check_id(said.id, "the id of an event to remember");
  if (!id)
    return id.error();
  made.session = key.id;
  made.id = std::move(*id);
  made.author = said.author;
  made.timestamp = said.timestamp;
  if (auto fit
      = check_texts(made, fmt::format("the event '{}' to remember", made.id));
      !fit)
    return fit.error();
  return std::optional(std::move(made));
}

// The memories of events, which are `event_ptr`.
template <class Events>
result<std::vector<memory_entry>> entries_of(const session_key& key,
                                             const Events& events) {
  std::vector<memory_entry> entries;
  for (const auto& said : events) {
    if (!said)
      return error(errc::invalid_argument, "an event to remember is null");
    auto made = entry_of(key, *said);
    if (!made)
      return made.error();
    if (*made)
      entries.push_back(std::move(**made));
  }
  return entries;
}

// The id of a memory without one: a UUID of version 5, whose name is author,
// role and texts. It must stay the same, because stored ids were made by it.
std::string id_by_content(const memory_entry& of) {
  // Made at random, for this use.
  const auto memories
    = boost::uuids::string_generator()("5b1fd26e-930c-4a7d-a854-e1376c0bf942");
  std::string name;
  // With their lengths, different lists of texts have different names.
  const auto add = [&name](std::string_view text) {
    name += fmt::format("{}:{},", text.size(), text);
  };
  add(of.author);
  add(of.content.role);
  for (const auto& each : of.content.parts)
    add(*each.text());
  return to_string(boost::uuids::name_generator_sha1(memories)(name));
}

// Checks a memory that was given by itself, and completes its id.
result<memory_entry> checked(memory_entry given) {
  const auto refuse = [](std::string_view why) {
    return error(errc::invalid_argument, fmt::format("a memory {}", why));
  };
  if (!given.session.empty())
    return refuse("names a session; use add_events for its events");
  given.content = texts_of(given.content);
  if (given.id.empty())
    given.id = id_by_content(given);
  auto id = check_id(given.id, "the id of a memory");
  if (!id)
    return id.error();
  given.id = std::move(*id);
  if (auto fit = check_texts(given, "a memory"); !fit)
    return fit.error();
  if (!has_word(given.content))
    return refuse("has no word in its text, so no search could find it");
  return given;
}

owner_name memory_owner(const session_key& key) {
  return {key.app, key.user, key.id};
}

result<owner_name> memory_owner(std::string_view app, std::string_view user) {
  auto app_id = check_id(app, "app");
  if (!app_id)
    return app_id.error();
  auto user_id = check_id(user, "user");
  if (!user_id)
    return user_id.error();
  return owner_name{std::move(*app_id), std::move(*user_id)};
}

// The number of new memories, whose ids go to `added` unless it is null.
result<std::size_t> counted(result<std::vector<std::string>> ids,
                            std::vector<std::string>* added) {
  if (!ids)
    return ids.error();
  const auto count = ids->size();
  if (added != nullptr)
    *added = *std::move(ids);
  return count;
}

} // namespace

result<std::size_t> memory_service::add_session(const session& fetched) {
  const auto key = check_key(fetched.key());
  if (!key)
    return key.error();
  const auto entries = entries_of(*key, fetched.events().live());
  if (!entries)
    return entries.error();
  return counted(do_add(memory_owner(*key), *entries, earlier::replaced),
                 nullptr);
}

result<std::size_t>
memory_service::add_events(const session_key& key,
                           const std::vector<event_ptr>& events,
                           std::vector<std::string>* added) {
  if (added != nullptr)
    added->clear();
  const auto of = check_key(key);
  if (!of)
    return of.error();
  const auto entries = entries_of(*of, events);
  if (!entries)
    return entries.error();
  if (entries->empty())
    return std::size_t{0};
  return counted(do_add(memory_owner(*of), *entries, earlier::stay), added);
}

result<std::size_t> memory_service::add(std::string_view app,
                                        std::string_view user,
                                        std::vector<memory_entry> entries,
                                        std::vector<std::string>* added) {
  if (added != nullptr)
    added->clear();
  const auto of = memory_owner(app, user);
  if (!of)
    return of.error();
  for (auto& each : entries) {
    auto fit = checked(std::move(each));
    if (!fit)
      return fit.error();
    each = std::move(*fit);
  }
  if (entries.empty())
    return std::size_t{0};
  return counted(do_add(*of, entries, earlier::stay), added);
}

result<std::vector<memory_entry>> memory_service::search(std::string_view app,
                                                         std::string_view user,
                                                         std::string_view query,
                                                         std::size_t limit) {
  const auto of = memory_owner(app, user);
  if (!of)
    return of.error();
  if (limit == 0)
    return error(errc::invalid_argument, "the limit of a search is 0");
  if (!is_utf8(query))
    return error(errc::invalid_argument,
                 "the query of a search in memory is not UTF-8");
  const auto words = query_words(query);
  if (words.empty())
    return std::vector<memory_entry>();
  return do_search(*of, words, limit);
}

result<bool> memory_service::remove(std::string_view app,
                                    std::string_view user,
                                    std::string_view session,
                                    std::string_view id) {
  const auto count = remove(app, user, session, std::vector{std::string(id)});
  if (!count)
    return count.error();
  return *count > 0;
}

result<std::size_t> memory_service::remove(std::string_view app,
                                           std::string_view user,
                                           std::string_view session,
                                           std::vector<std::string> ids) {
  auto of = memory_owner(app, user);
  if (!of)
    return of.error();
  if (!session.empty()) {
    auto session_id = check_id(session, "session id");
    if (!session_id)
      return session_id.error();
    of->session = std::move(*session_id);
  }
  for (auto& each : ids) {
    auto id = check_id(each, "the id of a memory");
    if (!id)
      return id.error();
    each = *std::move(id);
  }
  if (ids.empty())
    return std::size_t{0};
  return do_remove(*of, ids);
}

result<bool> memory_service::remove_session(const session_key& key) {
  const auto of = check_key(key);
  if (!of)
    return of.error();
  return do_remove_all(memory_owner(*of));
}

result<bool> memory_service::remove_user(std::string_view app,
                                         std::string_view user) {
  const auto of = memory_owner(app, user);
  if (!of)
    return of.error();
  return do_remove_all(*of);
}

result<bool> memory_service::remove_app(std::string_view app) {
  auto app_id = check_id(app, "app");
  if (!app_id)
    return app_id.error();
  return do_remove_all({std::move(*app_id)});
}

} // namespace troupe

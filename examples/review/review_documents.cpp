// Reviews documents with a pipeline of agents, then shows the owner of each
// piece of state and the event that wrote it.
//
//     review_documents [--store STORE] [FILE...]
//         without FILE: README.md, docs/architecture.md and the GPL
//
// All scopes are used: `temp:` carries the raw text through one run, the
// session keeps outline and findings, `user:` the reader's preferences, and
// `app:` counts the documents. All documents are reviewed concurrently. State
// of earlier runs in the store is shown first and then extended.

#include "troupe/agents/agent_file.hpp"
#include "troupe/runtime/runtime.hpp"

#include "review_tools.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using troupe::errc;
using troupe::json;

constexpr std::size_t document_bytes_max = std::size_t{4} << 20U;
const std::string app = "review";

struct reader {
  std::string user;
  json preferences;
};

// Preferences of two readers, which make their reports differ. They are set
// once, and kept by a store.
const std::array<reader, 2> readers{
  reader{"ann",
         {{"user:greeting", "Dear Ann,"},
          {"user:closing", "Kind regards, your reviewers"},
          {"user:sentences_shown", 3},
          {"user:sentence_words_max", 30}}},
  reader{"ben",
         {{"user:greeting", "Ben:"},
          {"user:closing", "That is all."},
          {"user:sentences_shown", 1},
          {"user:sentence_words_max", 45}}},
};

struct document {
  std::string name;
  std::string text;
};

// The review of one document: its session and its run.
struct review_job {
  troupe::session_key session;
  std::size_t text_bytes;
  troupe::run run;
};

struct arguments {
  std::string store = "sqlite:review.db";
  std::vector<std::string> files;
  bool help = false;
};

// A file whose name starts with a dash is given as `./-name`.
arguments read_arguments(std::span<char*> words) {
  arguments read;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const std::string word = words[index];
    if (word == "--help" || word == "-h")
      read.help = true;
    else if (!word.starts_with('-'))
      read.files.push_back(word);
    else if (word == "--store" && index + 1 < words.size())
      read.store = words[++index];
    else
      throw troupe::error(
        errc::invalid_argument,
        fmt::format("{} {}, see --help",
                    word,
                    word == "--store" ? "needs a store" : "is not an option"));
  }
  if (read.files.empty())
    read.files = {
      "README.md", "docs/architecture.md", "/usr/share/common-licenses/GPL-3"};
  return read;
}

[[noreturn]] void
refuse(errc code, const std::string& file, std::string_view why) {
  throw troupe::error(code, fmt::format("document {}: {}", file, why));
}

document read_document(const std::string& file) {
  std::error_code unused;
  if (fs::is_directory(file, unused))
    refuse(errc::invalid_argument, file, "is a folder");
  errno = 0;
  std::ifstream source(file, std::ios::binary);
  if (!source)
    refuse(errc::not_found, file, std::generic_category().message(errno));
  document read{file, {}};
  std::array<char, 65'536> piece;
  while (source.read(piece.data(), piece.size()) || source.gcount() > 0) {
    read.text.append(piece.data(), static_cast<std::size_t>(source.gcount()));
    if (read.text.size() > document_bytes_max)
      refuse(errc::too_large,
             file,
             fmt::format("has more than {} bytes", document_bytes_max));
  }
  if (source.bad())
    refuse(errc::invalid_argument, file, "cannot be read");
  if (!troupe::is_utf8(read.text))
    refuse(errc::invalid_argument, file, "is not UTF-8");
  if (read.text.find('\0') != std::string::npos)
    refuse(errc::invalid_argument, file, "is not text, since it has a NUL");
  if (constexpr std::string_view mark = "\xEF\xBB\xBF";
      read.text.starts_with(mark))
    read.text.erase(0, mark.size());
  return read;
}

troupe::runtime open_runtime(const std::string& store) {
  troupe::runtime_options options;
  options.store = store;
  options.limits = {.value_bytes_max = document_bytes_max + 1024,
                    .event_bytes_max = 2 * document_bytes_max};
  return troupe::runtime::open(std::move(options)).value();
}

// -- state of earlier runs ----------------------------------------------------

struct known_user {
  json state;
  // The newest sessions; `next_cursor` tells whether there are more.
  troupe::session_page newest;
};

struct carried_over {
  json app_state;
  std::map<std::string, known_user> users;

  std::size_t documents() const {
    return app_state.value("documents_reviewed", std::size_t{0});
  }
};

carried_over look_back(troupe::session_service& sessions) {
  constexpr std::size_t sessions_shown = 5;
  carried_over found{sessions.app_state(app).value(), {}};
  for (const auto& each : readers) {
    auto state = sessions.user_state(app, each.user).value();
    if (!state.empty())
      found.users.emplace(
        each.user,
        known_user{std::move(state),
                   sessions.list({app, each.user, sessions_shown}).value()});
  }
  return found;
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The URL of a database may hold a password, so it is not shown.
std::string shown(const std::string& store) {
  return store.starts_with("postgres") ? "the database" : store;
}

void print_carried_over(const carried_over& before, const std::string& store) {
  if (before.users.empty()) {
    fmt::print("Carried over from earlier runs: nothing, {} is empty.\n\n",
               shown(store));
    return;
  }
  fmt::print("Carried over from earlier runs, in {}:\n  {} reviewed\n",
             shown(store),
             counted(before.documents(), "document"));
  for (const auto& [user, known] : before.users) {
    fmt::print("  user {}, {}\n",
               user,
               counted(known.state.value("documents_reviewed", std::size_t{0}),
                       "document"));
    for (const auto& each : known.newest.sessions) {
      const auto& state = each.state();
      fmt::print("      session {}: {}, {}\n",
                 each.key().id,
                 state.get<std::string>("document", "no document"),
                 state.get<std::string>("verdict", "its review did not end"));
    }
    if (!known.newest.next_cursor.empty())
      fmt::print("      and older ones\n");
  }
  fmt::print("\n");
}

// -- reviewing ----------------------------------------------------------------

// Continues the numbers of earlier runs, and skips those that other processes
// have taken meanwhile.
troupe::session_key create_session(troupe::session_service& sessions,
                                   const std::string& user,
                                   const json& state,
                                   std::size_t& number) {
  for (;;) {
    auto created
      = sessions
          .create({app, user, fmt::format("document-{}", ++number)}, state)
          .get();
    if (created || created.error().code() != errc::already_exists)
      return created.value().key();
  }
}

review_job start_review(troupe::runtime& runtime,
                        const document& read,
                        const reader& who,
                        const carried_over& before,
                        std::size_t& number) {
  // Each loading restarts the script, so every document gets all of it.
  const auto root
    = troupe::load_agent_file(TROUPE_REVIEW_AGENTS,
                              {.tools = review::make_tools(), .model = nullptr})
        .value();
  auto state = who.preferences;
  if (const auto known = before.users.find(who.user);
      known != before.users.end())
    for (const auto& [name, data] : known->second.state.items())
      state.erase("user:" + name);
  state["document"] = read.name;
  auto session = create_session(runtime.sessions(), who.user, state, number);
  const troupe::json delta
    = {{"temp:text", read.text},
       {"temp:folder", fs::path(read.name).parent_path().string()}};
  auto run = runtime.run(root, session, {"Please review.", delta});
  return {std::move(session), read.text.size(), std::move(run)};
}

// -- the resulting state ------------------------------------------------------

struct writer {
  std::string author;
  std::string event;
  std::uint64_t revision = 0;
  troupe::session_key session;
};

// The newest event that wrote each key, by owner (`"app"`, `"user ann"`, or a
// session) and key.
using writers = std::map<std::pair<std::string, std::string>, writer>;

std::string owner_of(const troupe::session_key& session, troupe::scope where) {
  switch (where) {
  case troupe::scope::app:
    return "app " + session.app;
  case troupe::scope::user:
    return "user " + session.user;
  default:
    return to_string(session);
  }
}

void note_writers(writers& known,
                  const troupe::session& fetched,
                  const json& app_state,
                  const json& user_state) {
  auto revision = fetched.revision() - fetched.events().size();
  for (const auto& said : fetched.events()) {
    ++revision;
    for (const auto& done : said->actions.state_delta.operations()) {
      // Several sessions write here: the event whose value is in the state is
      // the newest.
      const auto* shared = done.where == troupe::scope::app    ? &app_state
                           : done.where == troupe::scope::user ? &user_state
                                                               : nullptr;
      if (shared != nullptr
          && shared->value(done.name, json()) != done.operand.data())
        continue;
      known[{owner_of(fetched.key(), done.where), done.name}]
        = {said->author, said->id.substr(0, 8), revision, fetched.key()};
    }
  }
}

std::string one_line(const json& data) {
  constexpr std::size_t bytes_max = 56;
  auto text = troupe::to_text(data);
  if (text.size() <= bytes_max)
    return text;
  auto end = bytes_max;
  while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end) + "…";
}

// For keys of users and apps, also prints the session that holds the event.
void print_keys(const writers& known,
                const std::string& owner,
                std::string_view prefix,
                const json& keys,
                const json& before) {
  for (const auto& [name, data] : keys.items()) {
    fmt::print("  {}{} = {}\n", prefix, name, one_line(data));
    const auto found = known.find({owner, name});
    if (found == known.end()) {
      fmt::print("      {}\n",
                 before.contains(name) ? "carried over from an earlier run"
                                       : "given when the session was created");
      continue;
    }
    const auto& [author, event, revision, session] = found->second;
    fmt::print("      written by {}, event {}, revision {}{}\n",
               author,
               event,
               revision,
               prefix.empty() ? "" : " of session " + to_string(session));
  }
}

json session_keys(const json& merged) {
  auto own = json::object();
  for (const auto& [key, data] : merged.items())
    if (troupe::split_key(key).where == troupe::scope::session)
      own[key] = data;
  return own;
}

void check(bool holds, std::string_view what) {
  if (!holds)
    throw troupe::error(errc::internal, fmt::format("expected {}", what));
}

void print_reviews(troupe::runtime& runtime,
                   const std::deque<review_job>& jobs,
                   const carried_over& before) {
  auto& sessions = runtime.sessions();
  const auto app_state = sessions.app_state(app).value();
  std::map<std::string, json> user_states;
  std::vector<troupe::session> fetched;
  writers known;
  for (const auto& job : jobs) {
    const auto& user = job.session.user;
    user_states[user] = sessions.user_state(app, user).value();
    fetched.push_back(sessions.get(job.session).value());
    note_writers(known, fetched.back(), app_state, user_states[user]);
  }

  for (const auto& each : fetched)
    fmt::print(
      "{}\n\n{:-<72}\n\n", each.state().get<std::string>("report"), "");
  fmt::print("State of the app:\n");
  print_keys(known, "app " + app, "app:", app_state, before.app_state);
  for (const auto& [user, keys] : user_states) {
    fmt::print("\nState of user {}:\n", user);
    const auto earlier = before.users.find(user);
    print_keys(known,
               "user " + user,
               "user:",
               keys,
               earlier == before.users.end() ? json::object()
                                             : earlier->second.state);
  }
  for (std::size_t index = 0; index < fetched.size(); ++index) {
    const auto& each = fetched[index];
    const auto merged = each.state().all();
    fmt::print("\nState of session {}, {} events:\n",
               to_string(each.key()),
               each.events().size());
    print_keys(
      known, to_string(each.key()), "", session_keys(merged), json::object());
    const auto left
      = std::ranges::count_if(merged.items(), [](const auto& item) {
          return item.key().starts_with(troupe::key_prefix_temp);
        });
    fmt::print(
      "  temp: {} keys; the run carried temp:text, {} bytes, and took it "
      "along when it ended\n",
      left,
      jobs[index].text_bytes);
    check(left == 0, "no temp: keys behind a run");
  }
  // Greater if other programs review into the same store.
  check(app_state.value("documents_reviewed", std::size_t{0})
          >= before.documents() + jobs.size(),
        "app:documents_reviewed to count every document");
}

void review_all(const arguments& wanted) {
  std::vector<document> documents; // All are read before the first review.
  documents.reserve(wanted.files.size());
  for (const auto& file : wanted.files)
    documents.push_back(read_document(file));
  auto runtime = open_runtime(wanted.store);
  const auto before = look_back(runtime.sessions());
  print_carried_over(before, wanted.store);
  std::deque<review_job> jobs;
  auto number = before.documents();
  for (std::size_t index = 0; index < documents.size(); ++index)
    jobs.push_back(start_review(runtime,
                                documents[index],
                                readers[index % readers.size()],
                                before,
                                number));
  for (auto& job : jobs)
    job.run.wait().value();
  print_reviews(runtime, jobs, before);
  runtime.shut_down().value();
}

void print_help() {
  fmt::print(
    "usage: review_documents [--store STORE] [FILE...]\n\nReviews texts "
    "(UTF-8, best as Markdown) with a pipeline of agents. Without FILE\nthe "
    "README, docs/architecture.md and the GPL, from the root of the "
    "repository.\n\n  --store STORE  where state is kept from run to run: "
    "sqlite:PATH, postgres:URL, or\n                 memory: to keep nothing; "
    "sqlite:review.db unless said otherwise\n  --help         prints "
    "this\n");
}

} // namespace

int main(int count, char** words) {
  try {
    const auto wanted = read_arguments(std::span(words + 1, words + count));
    if (wanted.help)
      print_help();
    else
      review_all(wanted);
    if (std::fflush(stdout) == 0)
      return 0;
    throw troupe::error(errc::store_failed,
                        fmt::format("write to stdout: {}",
                                    std::generic_category().message(errno)));
  } catch (const troupe::error& failure) {
    std::fputs(("error: " + to_string(failure) + '\n').c_str(), stderr);
  } catch (const std::exception& failure) {
    std::fputs(fmt::format("error: internal: {}\n", failure.what()).c_str(),
               stderr);
  }
  return 1;
}

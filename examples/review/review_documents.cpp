// Reviews documents with a pipeline of agents, and shows afterwards where every
// piece of state is and which event wrote it.
//
//     review_documents [FILE...]      without FILE: README.md,
//     docs/architecture.md and the GPL
//
// Every scope is used: `temp:` carries the raw text through one run, the
// session keeps outline and findings, `user:` the reader's preferences, and
// `app:` counts the documents. All documents are reviewed at the same time.

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

// What two people want to hear differs, and so do their reports.
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

// One document's review: its session, and the run under way.
struct review_job {
  troupe::session_key session;
  std::size_t text_bytes;
  troupe::run run;
};

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
    refuse(errc::invalid_argument, file, "is no text, it holds a NUL");
  if (constexpr std::string_view mark = "\xEF\xBB\xBF";
      read.text.starts_with(mark))
    read.text.erase(0, mark.size());
  return read;
}

troupe::runtime open_runtime() {
  troupe::runtime_options options;
  options.limits = {.value_bytes_max = document_bytes_max + 1024,
                    .event_bytes_max = 2 * document_bytes_max};
  return troupe::runtime::open(std::move(options)).value();
}

review_job start_review(troupe::runtime& runtime,
                        const document& read,
                        const reader& who,
                        std::size_t number) {
  // The script starts over with each loading, so every document gets the whole
  // of it.
  const auto root
    = troupe::load_agent_file(TROUPE_REVIEW_AGENTS,
                              {.tools = review::make_tools(), .model = nullptr})
        .value();
  auto state = who.preferences;
  state["document"] = read.name;
  const auto session = runtime.sessions()
                         .create({.app = app,
                                  .user = who.user,
                                  .id = fmt::format("document-{}", number),
                                  .state = std::move(state)})
                         .value();
  troupe::run_options options;
  options.state_delta
    = {{"temp:text", read.text},
       {"temp:folder", fs::path(read.name).parent_path().string()}};
  return {
    session.key(),
    read.text.size(),
    runtime.run(root, session.key(), "Please review.", std::move(options))};
}

// -- what is left afterwards ----

struct writer {
  std::string author;
  std::string event;
  std::uint64_t revision = 0;
  troupe::session_key session;
};

// The newest event that wrote each key, by the owner that the key belongs to:
// `"app"`, `"user ann"`, or a session.
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
    for (const auto& done : said.actions.state_delta.operations()) {
      // Several sessions write here; the last writer is the one whose outcome
      // stands.
      const auto* shared = done.where == troupe::scope::app    ? &app_state
                           : done.where == troupe::scope::user ? &user_state
                                                               : nullptr;
      if (shared != nullptr
          && shared->value(done.name, json()) != done.operand.data())
        continue;
      known[{owner_of(fetched.key(), done.where), done.name}]
        = {said.author, said.id.substr(0, 8), revision, fetched.key()};
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

// Where the owner is not the session itself, the session that the event is in
// is worth naming.
void print_keys(const writers& known,
                const std::string& owner,
                std::string_view prefix,
                const json& keys) {
  for (const auto& [name, data] : keys.items()) {
    fmt::print("  {}{} = {}\n", prefix, name, one_line(data));
    const auto found = known.find({owner, name});
    if (found == known.end()) {
      fmt::print("      given when the session was created\n");
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
                   const std::deque<review_job>& jobs) {
  auto& sessions = runtime.sessions();
  const auto app_state = sessions.get_app_state(app).value();
  std::map<std::string, json> user_states;
  std::vector<troupe::session> fetched;
  writers known;
  for (const auto& job : jobs) {
    const auto& user = job.session.user;
    user_states[user] = sessions.get_user_state(app, user).value();
    fetched.push_back(sessions.get(job.session).value());
    note_writers(known, fetched.back(), app_state, user_states[user]);
  }

  for (const auto& each : fetched)
    fmt::print(
      "{}\n\n{:-<72}\n\n", each.state().get<std::string>("report"), "");
  fmt::print("State of the app:\n");
  print_keys(known, "app " + app, "app:", app_state);
  for (const auto& [user, keys] : user_states) {
    fmt::print("\nState of user {}:\n", user);
    print_keys(known, "user " + user, "user:", keys);
  }
  for (std::size_t index = 0; index < fetched.size(); ++index) {
    const auto& each = fetched[index];
    const auto merged = each.state().all();
    fmt::print("\nState of session {}, {} events:\n",
               to_string(each.key()),
               each.events().size());
    print_keys(known, to_string(each.key()), "", session_keys(merged));
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
  check(app_state.value("documents_reviewed", std::size_t{0}) == jobs.size(),
        "app:documents_reviewed to count every document");
}

void review_all(const std::vector<std::string>& files) {
  std::vector<document> documents; // All are read before the first is reviewed.
  documents.reserve(files.size());
  for (const auto& file : files)
    documents.push_back(read_document(file));
  auto runtime = open_runtime();
  std::deque<review_job> jobs;
  for (std::size_t index = 0; index < documents.size(); ++index)
    jobs.push_back(start_review(
      runtime, documents[index], readers[index % readers.size()], index + 1));
  for (auto& job : jobs)
    job.run.wait().value();
  print_reviews(runtime, jobs);
}

} // namespace

int main(int count, char** words) {
  std::vector<std::string> files(words + 1, words + count);
  if (!files.empty() && (files.front() == "--help" || files.front() == "-h")) {
    fmt::print(
      "usage: review_documents [FILE...]\n\nReviews texts (UTF-8, best "
      "as Markdown) with a pipeline of agents. Without FILE\nthe "
      "README, docs/architecture.md and the GPL, from the root of the "
      "repository.\n");
    return 0;
  }
  if (files.empty())
    files = {
      "README.md", "docs/architecture.md", "/usr/share/common-licenses/GPL-3"};
  try {
    review_all(files);
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

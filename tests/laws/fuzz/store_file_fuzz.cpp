// A SQLite file with changed or missing bytes. A read returns data that was
// once written, or an error; it never crashes.
//
// The input is a list of four bytes each: the place (two bytes: one of 65,536
// places spread evenly over the file and its log), the kind of change, and a
// byte. With one more byte at the end, the store was closed before: all data is
// in the pages of the file, none in the log.

#include "troupe/stores/sqlite/open.hpp"

#include "fuzz_target.hpp"
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using troupe::testing::expect;

namespace {

namespace fs = std::filesystem;

const session_key ann{"press", "ann", "s1"};
constexpr std::uint64_t last = 40;

store_change change(change_kind kind, std::uint64_t revision) {
  event said(content("writer", {part(fmt::format("word {}", revision))}));
  said.id = fmt::format("e{}", revision);
  said.author = "writer";
  said.timestamp = timestamp(std::chrono::seconds(1'700'000'000 + revision));
  const auto set = [&said](const char* key, json data) {
    said.actions.state_delta.record(key, operation_kind::set, std::move(data))
      .value();
  };
  set(fmt::format("k{}", revision % 5).c_str(), revision);
  set("app:total", revision);
  store_change made;
  made.kind = kind;
  made.owner = {ann.app, ann.user, ann.id};
  made.event = std::make_shared<const event>(std::move(said));
  made.session_revision = revision;
  made.app_revision = revision + 1;
  return made;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream source(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(source), {}};
}

struct place {
  place() {
    auto name = ((fs::exists("/dev/shm") ? fs::path("/dev/shm")
                                         : fs::temp_directory_path())
                 / "troupe-fuzz-XXXXXX")
                  .string();
    expect(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    folder = name;
    const auto file = folder / "sound.db";
    const auto filled = open_sqlite_store(file, {durability::none}).value();
    std::vector<store_change> changes{change(change_kind::create, 0)};
    for (std::uint64_t revision = 1; revision <= last; ++revision)
      changes.push_back(change(change_kind::append, revision));
    expect(filled->commit(changes).value().moved.empty(),
           "the store can be filled");
    expect(filled->load_session(ann, {}).value().has_value(),
           "the filled store can be read");
    opened = {bytes_of(file), bytes_of(file.string() + "-wal")};
    filled->close().value();
    closed = {bytes_of(file), ""};
  }

  place(const place&) = delete;
  place& operator=(const place&) = delete;

  ~place() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  struct contents {
    std::string database;
    std::string log;
  };

  fs::path folder;
  contents opened;
  contents closed;
};

void damage(std::string& bytes, std::size_t at, std::uint8_t how, char with) {
  if (bytes.empty())
    return;
  at = std::min(at, bytes.size() - 1);
  switch (how % 4) {
  case 0:
    bytes[at] = with;
    break;
  case 1:
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (with & 7)));
    break;
  case 2:
    bytes.resize(at);
    break;
  default:
    for (std::size_t more = 0; more < 512 && at + more < bytes.size(); ++more)
      bytes[at + more] = with;
  }
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream written(file, std::ios::binary);
  written << bytes;
}

template <class Result>
bool is_told(const Result& read) {
  if (!read)
    expect(read.error().code() == errc::corrupt
             || read.error().code() == errc::store_failed,
           "the code of a failure");
  return read.has_value();
}

// Checks the session as `change` made it, up to its current revision: the end
// of the log may be missing.
void check_session(const stored_session& read) {
  const auto revision = read.scope.revision;
  auto number = revision - read.events.size();
  expect(number <= revision, "events have numbers");
  for (const auto& said : read.events) {
    ++number;
    expect(said->id == fmt::format("e{}", number), "events are in order");
    expect(said->text() == fmt::format("word {}", number),
           "events have the text that was written");
  }
  const auto keys = std::min<std::uint64_t>(revision + 1, 5);
  expect(read.scope.keys.size() == keys, "all keys");
  for (std::uint64_t key = 0; key < keys; ++key) {
    const auto* found = read.scope.keys.find(fmt::format("k{}", key));
    expect(found != nullptr
             && found->data() == revision - (revision + 5 - key) % 5,
           "keys have the values that were set");
  }
}

// Checks that no event is missing if `check` finds no damage and there is no
// log whose end may be missing. A plain read cannot notice entries that a
// damaged index no longer reaches.
void look_for_all(store& opened) {
  const auto checked = opened.check({});
  if (!is_told(checked) || !checked->empty())
    return;
  if (const auto read = opened.load_session(ann, {.events_max = 100});
      is_told(read))
    expect(*read && (*read)->scope.revision == last
             && (*read)->events.size() == last,
           "the whole session");
  if (const auto past = opened.load_session_at(ann, 5, 100); is_told(past))
    expect(*past && (*past)->scope.revision == 5 && (*past)->events.size() == 5,
           "the session as it was");
  if (const auto past = opened.load_shared_state_at(ann, 5); is_told(past))
    expect(past->has_value(), "the user and the app as they were");
  if (const auto app = opened.load_scope({"press"}); is_told(app))
    expect(*app && (*app)->revision == last + 1, "the whole app");
  if (const auto some = opened.load_events(ann, 3, 9); is_told(some)) {
    expect(some->size() == 7, "the events that were asked for");
    for (std::size_t index = 0; index < some->size(); ++index)
      expect((*some)[index]->id == fmt::format("e{}", index + 3),
             "and no others");
  }
  if (const auto listed = opened.list({.app = "press"}); is_told(listed))
    expect(listed->size() == 1 && listed->front().key == ann
             && listed->front().revision == last,
           "one session");
}

void look_at(store& opened) {
  is_told(opened.check({}));
  if (const auto read = opened.load_session(ann, {.events_max = 100});
      is_told(read) && *read)
    check_session(**read);
  if (const auto app = opened.load_scope({"press"}); is_told(app) && *app) {
    const auto* total = (*app)->keys.find("total");
    expect(total != nullptr && total->data() == (*app)->revision - 1,
           "what the total was set to");
  }
  is_told(opened.load_scope({"press", "ann"}));
  is_told(opened.load_events(ann, 3, 9));
  is_told(opened.list({.app = "press"}));
  is_told(opened.changed_elsewhere());
  const std::array changes{change(change_kind::append, last + 1)};
  is_told(opened.commit(changes));
  is_told(opened.load_session(ann, {}));
  is_told(opened.close());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  static const place sound;
  const bool is_closed = size % 4 != 0;
  auto [database, log] = is_closed ? sound.closed : sound.opened;
  const auto behind = database.size();
  const auto whole = behind + log.size();
  for (std::size_t at = 0; at + 4 <= size && at < 64; at += 4) {
    const auto where
      = (static_cast<std::size_t>(bytes[at]) * 256 + bytes[at + 1]) * whole
        / 65'536;
    const bool is_in_log = where >= behind;
    damage(is_in_log ? log : database,
           is_in_log ? where - behind : where,
           bytes[at + 2],
           static_cast<char>(bytes[at + 3]));
  }
  const auto file = sound.folder / "damaged.db";
  fs::remove(file.string() + "-shm");
  write(file, database);
  write(file.string() + "-wal", log);
  const auto opened = open_sqlite_store(file, {durability::none});
  if (!is_told(opened))
    return 0;
  // SQLite takes an empty file, or one with a single byte, for a new database.
  if (is_closed && database.size() > 1)
    look_for_all(**opened);
  look_at(**opened);
  return 0;
}

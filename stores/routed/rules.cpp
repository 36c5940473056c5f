#include "troupe/stores/routed/rules.hpp"

#include "troupe/core/json.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/open_store.hpp"
#include "troupe/stores/postgres/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// -- words of a line ----

struct word {
  std::string text;
  bool ends_with_star = false; ///< A star outside of quotes, not in `text`.
  bool has_inner_star = false; ///< Another one outside of quotes.
};

constexpr std::string_view blanks = " \t\r";

// Returns the size of the JSON string at the start of `text`, with its quotes;
// 0 if it has no end.
std::size_t size_of_quoted(std::string_view text) noexcept {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return 0;
}

// Takes the next word from `line`. Returns nothing if a quoted part of it is
// not a JSON string. Requires that `line` does not begin with a blank.
std::optional<word> take_word(std::string_view& line) {
  word taken;
  while (!line.empty() && blanks.find(line.front()) == std::string_view::npos) {
    if (std::exchange(taken.ends_with_star, false))
      taken.has_inner_star = true;
    if (line.front() == '"') {
      const auto size = size_of_quoted(line);
      const auto read = json::parse(
        line.substr(0, size), nullptr, /*allow_exceptions=*/false);
      if (size == 0 || !read.is_string())
        return std::nullopt;
      taken.text += read.get_ref<const std::string&>();
      line.remove_prefix(size);
      continue;
    }
    taken.text += line.front();
    taken.ends_with_star = line.front() == '*';
    line.remove_prefix(1);
  }
  if (taken.ends_with_star)
    taken.text.pop_back();
  return taken;
}

std::string_view without_leading_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first);
}

// -- databases ----

// Divides `NAME=ADDRESS`; an address alone has an empty name.
std::pair<std::string, std::string> divided(const std::string& text) {
  constexpr std::string_view letters
    = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  const auto end = text.find_first_not_of(letters);
  if (end == 0 || end == std::string::npos || text[end] != '=')
    return {std::string(), text};
  return {text.substr(0, end), text.substr(end + 1)};
}

// Returns a text that is the same for two spellings of one database, as far as
// the spelling shows it.
std::string identity_of(const store_address& read) {
  if (read.kind == store_kind::sqlite) {
    std::error_code failed;
    const auto path = std::filesystem::absolute(read.location, failed);
    const auto whole = std::filesystem::weakly_canonical(path, failed);
    return "sqlite:" + (failed ? read.location : whole.string());
  }
  const auto plain = leave_out_passwords(read.location);
  return "postgres:" + plain.substr(plain.find(':') + 1);
}

// The hash decides where an app is kept, so the function never changes: FNV-1a
// of 64 bits, mixed once more, since names that differ in their last letter
// would else have close hashes.
std::uint64_t rank_of(std::string_view database,
                      std::string_view app) noexcept {
  std::uint64_t hash = 14'695'981'039'346'656'037ULL;
  const auto add = [&hash](unsigned char byte) {
    hash = (hash ^ byte) * 1'099'511'628'211ULL;
  };
  for (const auto letter : database)
    add(static_cast<unsigned char>(letter));
  add(0);
  for (const auto letter : app)
    add(static_cast<unsigned char>(letter));
  hash = (hash ^ (hash >> 33U)) * 0xff51'afd7'ed55'8ccdULL;
  hash = (hash ^ (hash >> 33U)) * 0xc4ce'b9fe'1a85'ec53ULL;
  return hash ^ (hash >> 33U);
}

} // namespace

// Reads one line after the other, and throws `troupe::error`.
class rule_reader {
public:
  explicit rule_reader(const std::string& file) : file_(file) {}

  void take_line(std::string_view line) {
    ++line_;
    apps_.clear();
    line = without_leading_blanks(line);
    if (line.empty() || line.front() == '#')
      return;
    const auto apps = take_word(line);
    if (!apps)
      throw flaw("a quoted name is not a string of JSON");
    const bool is_address = is_store_scheme(divided(apps->text).second);
    // An address that stands in the wrong place may hold a password.
    if (!is_address && apps->text.find('@') == std::string::npos)
      apps_ = apps->text + (apps->ends_with_star ? "*" : "");
    if (is_address)
      throw flaw("the line begins with an address; a rule is APPS ADDRESS, and "
                 "* stands for all apps");
    auto& shares = add_rule(*apps);
    for (line = without_leading_blanks(line); !line.empty();
         line = without_leading_blanks(line)) {
      const auto database = take_word(line);
      if (!database)
        throw flaw("a quoted address is not a string of JSON");
      add_share(shares, database->text + (database->ends_with_star ? "*" : ""));
    }
    if (shares.empty())
      throw flaw("the rule has no address; a rule is APPS ADDRESS");
    if (shares.size() > 1
        && std::ranges::any_of(
          shares, [](const app_share& each) { return each.name.empty(); }))
      throw flaw("a rule with several databases names each: NAME=ADDRESS");
  }

  app_rules finish() && {
    if (!made_.prefixes_.contains(""))
      throw error(errc::invalid_argument,
                  fmt::format("{}: no rule is for all other apps; add one: * "
                              "ADDRESS",
                              file_));
    for (const auto& [prefix, shares] : made_.prefixes_)
      made_.sizes_.push_back(prefix.size());
    std::ranges::sort(made_.sizes_, std::greater());
    made_.sizes_.erase(std::unique(made_.sizes_.begin(), made_.sizes_.end()),
                       made_.sizes_.end());
    return std::move(made_);
  }

private:
  error flaw(std::string_view why) const {
    return {errc::invalid_argument,
            apps_.empty()
              ? fmt::format("{}:{}: {}", file_, line_, why)
              : fmt::format("{}:{}: '{}': {}", file_, line_, apps_, why)};
  }

  std::vector<app_share>& add_rule(const word& apps) {
    auto& rules = apps.ends_with_star ? made_.prefixes_ : made_.apps_;
    if (apps.has_inner_star)
      throw flaw("a * stands at the end only; a name that has one is quoted: "
                 "\"a*b\"");
    if (!apps.ends_with_star) {
      const auto checked = check_id(apps.text, "app");
      if (!checked)
        throw flaw(checked.error().message());
      if (*checked != apps.text)
        throw flaw("the name of an app has no space at its ends");
    }
    const auto [rule, is_new] = rules.try_emplace(apps.text);
    const auto before
      = lines_.try_emplace({apps.text, apps.ends_with_star}, line_).first;
    if (!is_new)
      throw flaw(fmt::format("these apps have a rule already, in line {}",
                             before->second));
    return rule->second;
  }

  void add_share(std::vector<app_share>& shares, const std::string& text) {
    auto [name, address] = divided(text);
    const auto read = read_store_address(address);
    if (!read)
      throw flaw(read.error().message());
    if (read->kind != store_kind::sqlite && read->kind != store_kind::postgres)
      throw flaw("a database of a rule is sqlite:PATH or postgres:URL");
    const auto known
      = databases_
          .try_emplace(identity_of(*read), made_.addresses_.size(), line_)
          .first->second;
    if (known.index == made_.addresses_.size())
      made_.addresses_.push_back(address);
    else if (made_.addresses_[known.index] != address)
      throw flaw(fmt::format("the database is that of line {}, with another "
                             "address; write the same address in both",
                             known.line));
    for (const auto& each : shares) {
      if (each.name == name && !name.empty())
        throw flaw(fmt::format("two databases have the name {}", name));
      if (each.database == known.index)
        throw flaw("the rule has the same database twice");
    }
    shares.push_back({std::move(name), known.index});
  }

  struct known_database {
    known_database(std::size_t index_, std::size_t line_)
      : index(index_),
        line(line_) {}

    std::size_t index;
    std::size_t line;
  };

  const std::string& file_;
  std::size_t line_ = 0;
  std::string apps_; // Of the rule in `line_`, for errors.
  std::map<std::pair<std::string, bool>, std::size_t> lines_;
  std::map<std::string, known_database> databases_; // By `identity_of`.
  app_rules made_;
};

result<app_rules> app_rules::read(std::string_view text,
                                  const std::string& file) {
  try {
    rule_reader reader(file);
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      reader.take_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(reader).finish();
  } catch (const error& failure) {
    return failure;
  }
}

const app_rules::shares&
app_rules::shares_of(std::string_view app) const noexcept {
  if (const auto found = apps_.find(app); found != apps_.end())
    return found->second;
  for (const auto size : sizes_) {
    if (size > app.size())
      continue;
    if (const auto found = prefixes_.find(app.substr(0, size));
        found != prefixes_.end())
      return found->second;
  }
  return prefixes_.begin()->second; // The empty prefix is always there.
}

std::size_t app_rules::database_of(std::string_view app) const noexcept {
  const auto& among = shares_of(app);
  const auto* chosen = &among.front();
  auto highest = among.size() > 1 ? rank_of(chosen->name, app) : 0;
  for (const auto& each : among) {
    if (&each == chosen || among.size() == 1)
      continue;
    const auto rank = rank_of(each.name, app);
    if (rank > highest || (rank == highest && each.name < chosen->name)) {
      chosen = &each;
      highest = rank;
    }
  }
  return chosen->database;
}

} // namespace troupe

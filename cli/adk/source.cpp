#include "troupe/cli/adk/source.hpp"

#include "troupe/cli/adk/event_form.hpp"
#include "troupe/cli/terminal/count_progress.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

/// A user, or an app with an empty user name.
using owner_id = std::pair<std::string, std::string>;

owner_id app_of(const session_key& key) {
  return {key.app, {}};
}

owner_id user_of(const session_key& key) {
  return {key.app, key.user};
}

std::string name_of(const adk_tables::owner& owner) {
  return owner.user ? owner.app + '/' + *owner.user : owner.app;
}

std::string_view table_of(const adk_tables::owner& owner) {
  return owner.user ? "user_states" : "app_states";
}

// Reads a state without the keys that a session does not keep, and adds a
// prefix to its keys.
result<json> read_state(const std::string& text, std::string_view prefix) {
  if (text.empty())
    return json::object();
  const auto data = parse_json(text);
  if (!data)
    return data.error();
  if (!data->is_object())
    return error(errc::invalid_argument, "its state is no JSON object");
  auto state = json::object();
  for (const auto& [key, held] : data->items())
    state[std::string(prefix) + key] = held;
  return portable_state_from_json(state);
}

// ADK takes id and invocation id from the columns in one layout, and from the
// JSON in the other.
result<event> read_event(const adk_event& row, adk_layout layout) {
  const auto data = row.data.empty() ? json::object() : parse_json(row.data);
  if (!data)
    return data.error();
  if (!data->is_object())
    return error(errc::invalid_argument, "its event_data is no JSON object");
  auto wire = to_wire_form(*data);
  const bool columns_count = layout == adk_layout::database_service;
  if (columns_count || !wire.contains("id"))
    wire["id"] = row.id;
  if (columns_count || !wire.contains("invocationId"))
    wire["invocationId"] = row.invocation_id;
  auto said = portable_event_from_json(wire);
  if (!said || said->timestamp != timestamp())
    return said;
  if (!row.time)
    return error(errc::invalid_argument, "its timestamp is no time");
  said->timestamp = *row.time;
  return said;
}

// For example `app 'press', user 'ann'`.
std::string name_of(const adk_choice& chosen) {
  std::string text;
  for (const auto& [noun, name] : {std::pair("app", chosen.app),
                                   std::pair("user", chosen.user),
                                   std::pair("session", chosen.session)})
    if (name)
      text += fmt::format("{}{} '{}'", text.empty() ? "" : ", ", noun, *name);
  return text;
}

bool is_chosen(const std::optional<std::string>& wanted,
               const std::string& name) {
  return !wanted || *wanted == name;
}

class adk_source {
public:
  explicit adk_source(std::shared_ptr<adk_tables> tables)
    : tables_(std::move(tables)) {}

  /// Lists the chosen sessions, oldest update first.
  result<void> choose(const adk_choice& chosen) {
    auto all = tables_->sessions();
    if (!all)
      return all.error();
    std::erase_if(*all, [&chosen](const adk_session& row) {
      return !is_chosen(chosen.app, row.key.app)
             || !is_chosen(chosen.user, row.key.user)
             || !is_chosen(chosen.session, row.key.id);
    });
    std::ranges::sort(*all, {}, [](const adk_session& row) {
      return std::tie(row.update_time, row.key);
    });
    rows_ = std::move(*all);
    if (auto named = check_names(); !named)
      return named;
    return choose_owners(chosen);
  }

  /// Reads everything once, and notes the facts that the import needs.
  result<void> check() {
    count_progress shown("checked", rows_.size(), "sessions");
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      shown.show(index);
      if (auto noted = check_session(index); !noted)
        return noted;
    }
    for (const auto& owner : lone_)
      if (const auto state = state_of(owner); !state)
        return state.error();
    return tables_->finish();
  }

  result<portable_session> read(std::size_t index) {
    auto made = read_own(index);
    if (!made)
      return made;
    if (auto added = add_wider_keys(index, *made); !added)
      return added.error();
    if (index + 1 < rows_.size())
      return made;
    const auto finished = tables_->finish();
    return finished ? std::move(made) : finished.error();
  }

  /// Keys of an owner, with prefixes.
  result<json> state_of(const adk_tables::owner& owner) {
    const auto text = tables_->state_of(owner);
    if (!text)
      return text.error();
    auto state
      = read_state(*text, prefix_of(owner.user ? scope::user : scope::app));
    if (!state)
      return in_row(table_of(owner), name_of(owner), state.error());
    return state;
  }

  const std::vector<session_key>& keys() const { return keys_; }

  const std::vector<adk_tables::owner>& lone() const { return lone_; }

  std::size_t state_bytes_max() const { return state_bytes_max_; }

private:
  /// The sessions and the touched keys of an app or a user.
  struct wide_owner {
    std::size_t first = 0;
    std::size_t last = 0;
    std::set<std::string, std::less<>> touched = {};
  };

  result<void> check_names() {
    std::set<session_key> seen;
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      const auto& row = rows_[index].key;
      auto key = check_key(row);
      if (!key)
        return in_row("sessions", to_string(row), key.error());
      if (!seen.insert(*key).second)
        return in_row("sessions",
                      to_string(row),
                      error(errc::invalid_argument,
                            "without blanks at its ends the key comes twice"));
      keys_.push_back(std::move(*key));
      for (const auto& owner : {app_of(row), user_of(row)}) {
        const auto [found, is_new]
          = wide_.try_emplace(owner, wide_owner{.first = index});
        found->second.last = index;
      }
    }
    return {};
  }

  // Owners without a chosen session. The state of an app is that of all users,
  // so a choice of a user or a session does not include it.
  result<void> choose_owners(const adk_choice& chosen) {
    if (chosen.session)
      return {};
    auto all = tables_->owners();
    if (!all)
      return all.error();
    for (auto& each : *all) {
      const bool is_wanted
        = is_chosen(chosen.app, each.app)
          && (each.user ? is_chosen(chosen.user, *each.user) : !chosen.user);
      if (is_wanted && !wide_.contains({each.app, each.user.value_or("")}))
        lone_.push_back(std::move(each));
    }
    return {};
  }

  result<void> check_session(std::size_t index) {
    const auto made = read_own(index);
    if (!made)
      return made.error();
    const auto& row = rows_[index].key;
    auto bytes = to_text(made->state).size();
    for (const auto& owner : {adk_tables::owner{row.app, {}},
                              adk_tables::owner{row.app, row.user}}) {
      auto& wide = wide_.at({owner.app, owner.user.value_or("")});
      if (wide.first != index && wide.last != index)
        continue;
      const auto state = state_of(owner);
      if (!state)
        return state.error();
      bytes += to_text(*state).size();
    }
    state_bytes_max_ = std::max(state_bytes_max_, bytes);
    for (const auto& key : made->keys_of_events())
      if (const auto where = split_key(key).where; where == scope::user)
        wide_.at(user_of(row)).touched.insert(key);
      else if (where == scope::app)
        wide_.at(app_of(row)).touched.insert(key);
    return {};
  }

  // The session with its own keys only.
  result<portable_session> read_own(std::size_t index) {
    const auto& row = rows_[index];
    const auto name = to_string(row.key);
    portable_session made;
    made.key = keys_[index];
    made.last_update_time = row.update_time;
    const auto text = tables_->state_of(row.key);
    if (!text)
      return text.error();
    auto state = read_state(*text, "");
    if (!state)
      return in_row("sessions", name, state.error());
    made.state = std::move(*state);
    const auto layout = tables_->layout();
    const auto read = tables_->read_events(
      row.key, [&made, &name, layout](const adk_event& each) -> result<void> {
        auto said = read_event(each, layout);
        if (!said)
          return in_row("events", name + '/' + each.id, said.error());
        made.events.push_back(std::move(*said));
        return {};
      });
    if (!read)
      return read.error();
    return made;
  }

  result<void> add_wider_keys(std::size_t index, portable_session& made) {
    const auto& row = rows_[index].key;
    for (const auto& owner : {adk_tables::owner{row.app, {}},
                              adk_tables::owner{row.app, row.user}}) {
      const auto& wide = wide_.at({owner.app, owner.user.value_or("")});
      if (wide.first != index && wide.last != index)
        continue;
      const auto state = state_of(owner);
      if (!state)
        return state.error();
      for (const auto& [key, held] : state->items())
        if (wide.touched.contains(key) ? wide.last == index
                                       : wide.first == index)
          made.state[key] = held;
    }
    return {};
  }

  std::shared_ptr<adk_tables> tables_;
  std::vector<adk_session> rows_;
  std::vector<session_key> keys_; // Of `rows_`, trimmed.
  std::map<owner_id, wide_owner> wide_;
  std::vector<adk_tables::owner> lone_;
  std::size_t state_bytes_max_ = 0;
};

} // namespace

result<std::unique_ptr<adk_tables>> open_adk_tables(std::string_view address) {
  const auto read = read_store_address(address);
  if (!read)
    return read.error();
  switch (read->kind) {
  case store_kind::sqlite:
    return open_adk_sqlite(read->location);
  case store_kind::postgres:
    return open_adk_postgres(read->location);
  case store_kind::memory:
  case store_kind::apps:
    break;
  }
  return error(errc::invalid_argument,
               "a database of ADK is sqlite:PATH or postgres:URL");
}

result<import_source> make_adk_source(std::shared_ptr<adk_tables> tables,
                                      const adk_choice& chosen) {
  const auto source = std::make_shared<adk_source>(std::move(tables));
  if (auto listed = source->choose(chosen); !listed)
    return listed.error();
  const bool is_choice = chosen.app || chosen.user || chosen.session;
  if (is_choice && source->keys().empty() && source->lone().empty())
    return error(
      errc::not_found,
      fmt::format("the database has nothing of {}", name_of(chosen)));
  if (auto sound = source->check(); !sound)
    return sound.error();
  import_source made;
  made.keys = source->keys();
  made.state_bytes_max = source->state_bytes_max();
  made.read = [source](std::size_t index) { return source->read(index); };
  made.owners = source->lone();
  made.read_state = [source](const import_source::owner& owner) {
    return source->state_of(owner);
  };
  return made;
}

} // namespace troupe::cli

#include "ledger_check.hpp"

#include "troupe/stores/open_store.hpp"

#include "../../outcome.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::testing {

namespace {

constexpr std::size_t findings_max = 20;

// Number of newest acknowledged events of each load that are sent again.
constexpr std::size_t retried_max = 12;

class findings {
public:
  template <class... Values>
  void add(fmt::format_string<Values...> pattern, Values&&... values) {
    if (all_.size() < findings_max)
      all_.push_back(fmt::format(pattern, std::forward<Values>(values)...));
  }

  std::vector<std::string> take() { return std::move(all_); }

private:
  std::vector<std::string> all_;
};

// The content of the ledgers.
struct books {
  std::set<job_name> sent;
  std::set<job_name> acknowledged;
  std::set<job_name> failed;
  std::set<std::uint32_t> created;
};

books books_of(const ledgers& written) {
  books read;
  for (const auto& each : written.sent.records())
    read.sent.insert(each.job);
  for (const auto& each : written.answered.records()) {
    switch (each.entry) {
    case ledger_entry::acknowledged:
      read.acknowledged.insert(each.job);
      break;
    case ledger_entry::failed:
      read.failed.insert(each.job);
      break;
    case ledger_entry::created:
      read.created.insert(each.job.number);
      break;
    case ledger_entry::sent:
      break;
    }
  }
  return read;
}

// One scope as its events describe it. The order of the events follows from the
// sums and lists in their resolved values.
class scope_story {
public:
  explicit scope_story(std::string title) : title_(std::move(title)) {}

  void add(const job& wanted, scope where, const json& stored) {
    const auto& own = *wanted.scopes[static_cast<std::size_t>(where)];
    const auto prefix = std::string(prefix_of(where));
    const auto id = to_string(wanted.name);
    sums_.push_back({stored.value(prefix + "total", json(-1)), own.added, id});
    if (!own.list.empty())
      lists_[own.list].push_back(
        {stored.value(prefix + own.list, json::array()), id});
  }

  // Checks the events, and returns the keys that the scope must have after
  // them.
  json keys(findings& found) {
    auto keys = json::object();
    std::ranges::sort(sums_, {}, [](const sum& each) {
      return each.total.is_number_integer() ? each.total.get<std::int64_t>()
                                            : -1;
    });
    std::int64_t total = 0;
    for (const auto& each : sums_) {
      total += each.added;
      if (each.total != json(total)) {
        found.add("{}: {} adds {} and gives {}, not {}",
                  title_,
                  each.id,
                  each.added,
                  to_text(each.total),
                  total);
        break;
      }
      keys["total"] = total;
      keys["seen"] = each.id;
    }
    for (auto& [name, steps] : lists_)
      keys[name] = list_of(name, steps, found);
    return keys;
  }

private:
  struct sum {
    json total;
    int added;
    std::string id;
  };

  struct step {
    json list;
    std::string id;
  };

  json
  list_of(const std::string& name, std::vector<step>& steps, findings& found) {
    std::ranges::sort(
      steps, {}, [](const step& each) { return each.list.size(); });
    auto list = json::array();
    for (const auto& each : steps) {
      list.push_back(each.id);
      if (each.list != list) {
        found.add("{}: {} leaves {} as {}, not as {}",
                  title_,
                  each.id,
                  name,
                  to_text(each.list),
                  to_text(list));
        break;
      }
    }
    return list;
  }

  std::string title_;
  std::vector<sum> sums_;
  std::map<std::string, std::vector<step>> lists_;
};

void compare(const std::string& title,
             const json& wanted,
             const json& there,
             findings& found) {
  const auto text_in = [](const json& all, const std::string& key) {
    return all.contains(key) ? to_text(all[key]).substr(0, 200) : "nothing";
  };
  auto keys = wanted;
  keys.update(there);
  for (const auto& [key, unused] : keys.items())
    if (text_in(wanted, key) != text_in(there, key))
      found.add("{}: {} is {}, and should be {}",
                title,
                key,
                text_in(there, key),
                text_in(wanted, key));
}

class comparison {
public:
  comparison(session_service& sessions,
             const work_plan& work,
             const books& read)
    : sessions_(sessions),
      work_(work),
      read_(read) {}

  std::vector<std::string> run() {
    for (const auto& each : read_.sent)
      if (!read_.failed.contains(each))
        queue_of(each).push_back(each);
    auto app_keys = json::object();
    std::map<std::string, json> user_keys;
    for (std::uint32_t number = 0; number < work_.sessions; ++number)
      read_session(number, app_keys, user_keys);
    for (const auto& each : read_.acknowledged)
      if (!there_.contains(each))
        found_.add("lost: {} was acknowledged", to_string(each));
    for (auto& [user, keys] : user_keys) {
      keys.update(story_of(user).keys(found_));
      const auto state = sessions_.user_state(work_app, user).get();
      if (!state)
        found_.add("user {}: {}", user, to_string(state.error()));
      else
        compare("user " + user, keys, *state, found_);
    }
    app_keys.update(app_.keys(found_));
    const auto state = sessions_.app_state(work_app).get();
    if (!state)
      found_.add("app: {}", to_string(state.error()));
    else
      compare("app", app_keys, *state, found_);
    return found_.take();
  }

private:
  // Events of one thread to one session, in order.
  using sender = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  std::vector<job_name>& queue_of(const job_name& name) {
    return queues_[{name.run, name.thread, job_of(work_, name).session}];
  }

  scope_story& story_of(const std::string& user) {
    return users_.try_emplace(user, "user " + user).first->second;
  }

  void read_session(std::uint32_t number,
                    json& app_keys,
                    std::map<std::string, json>& user_keys) {
    const auto key = session_of(work_, number);
    const auto fetched = sessions_.get(key).get();
    if (!fetched) {
      if (fetched.error().code() != errc::not_found)
        found_.add("{}: {}", to_string(key), to_string(fetched.error()));
      else if (read_.created.contains(number))
        found_.add("lost: {} was created", to_string(key));
      return;
    }
    const auto own = "born." + std::to_string(number);
    app_keys[own] = number;
    user_keys.try_emplace(key.user, json::object())
      .first->second.emplace(own, number);
    read_events(number, *fetched);
  }

  void read_events(std::uint32_t number, const session& fetched) {
    const auto title = to_string(fetched.key());
    if (fetched.revision() != fetched.events().size())
      found_.add("{}: revision {} with {} events",
                 title,
                 fetched.revision(),
                 fetched.events().size());
    scope_story own(title);
    auto keys = json::object({{"born", number}});
    std::map<sender, std::vector<job_name>> order;
    std::size_t place = 0;
    for (const auto& said : fetched.events()) {
      job_name name;
      try {
        name = job_name_from(said->id);
      } catch (const std::exception&) {
        found_.add("{}: the event {} was never sent", title, said->id);
        continue;
      }
      const auto wanted = job_of(work_, name);
      if (!read_.sent.contains(name) || wanted.session != number)
        found_.add("{}: {} was never sent there", title, said->id);
      ++place;
      if (const auto [known, is_new] = there_.emplace(name, place); !is_new)
        found_.add("{}: {} is stored twice, as number {} and {} of {}",
                   title,
                   said->id,
                   known->second,
                   place,
                   fetched.events().size());
      if (!read_.failed.contains(name))
        order[{name.run, name.thread, number}].push_back(name);
      read_event(title, wanted, *said, own);
      for (const auto& [key, data] : wanted.sets.items()) {
        if (data.is_null())
          keys.erase(key);
        else
          keys[key] = data;
      }
    }
    keys.update(own.keys(found_));
    auto there = json::object();
    const auto merged = fetched.state().all();
    for (const auto& [key, data] : merged.items())
      if (split_key(key).where == scope::session)
        there[key] = data;
    compare(title, keys, there, found_);
    // All events of the queue must be stored, or a first part of them if the
    // others were not acknowledged.
    for (const auto& [who, names] : order) {
      const auto& queue = queues_[who];
      const auto differ = std::ranges::mismatch(names, queue);
      if (differ.in1 != names.end())
        found_.add("{}: {} is where {} should be; {} of {} of its thread are "
                   "stored",
                   title,
                   to_string(*differ.in1),
                   differ.in2 == queue.end() ? "nothing"
                                             : to_string(*differ.in2),
                   names.size(),
                   queue.size());
    }
  }

  void read_event(const std::string& title,
                  const job& wanted,
                  const event& said,
                  scope_story& own) {
    const auto sent = event_of(wanted);
    if (said.text() != sent.text() || said.author != sent.author
        || said.timestamp != sent.timestamp
        || said.invocation_id != sent.invocation_id)
      found_.add("{}: {} differs from the event that was sent", title, said.id);
    const auto stored = said.actions.state_delta.to_json();
    auto keys_wanted = std::set<std::string>();
    for (const auto& done : sent.actions.state_delta.operations())
      if (done.where != scope::temp)
        keys_wanted.insert(join_key(done.where, done.name));
    auto keys_there = std::set<std::string>();
    for (const auto& [key, unused] : stored.items())
      keys_there.insert(key);
    if (keys_there != keys_wanted)
      found_.add("{}: {} has other keys than it was sent with: {}",
                 title,
                 said.id,
                 to_text(stored).substr(0, 300));
    own.add(wanted, scope::session, stored);
    if (wanted.scopes[static_cast<std::size_t>(scope::user)])
      story_of(session_of(work_, wanted.session).user)
        .add(wanted, scope::user, stored);
    if (wanted.scopes[static_cast<std::size_t>(scope::app)])
      app_.add(wanted, scope::app, stored);
  }

  session_service& sessions_;
  const work_plan& work_;
  const books& read_;
  findings found_;
  std::map<job_name, std::size_t> there_; // Number in its session.
  std::map<sender, std::vector<job_name>> queues_;
  std::map<std::string, scope_story> users_;
  scope_story app_{"app"};
};

// Sends unacknowledged events once more, and the newest acknowledged ones.
void retry(session_service& sessions,
           const work_plan& work,
           ledgers& written,
           findings& found) {
  const auto read = books_of(written);
  std::vector<job_name> open;
  std::ranges::set_difference(
    read.sent, read.acknowledged, std::back_inserter(open));
  std::map<std::uint32_t, std::vector<job_name>> newest;
  for (const auto& each : read.acknowledged)
    newest[each.run].push_back(each);
  if (!newest.empty()) {
    const auto& names = newest.rbegin()->second;
    open.insert(
      open.end(),
      names.end()
        - static_cast<std::ptrdiff_t>(std::min(names.size(), retried_max)),
      names.end());
  }
  for (const auto& each : open) {
    const auto wanted = job_of(work, each);
    const auto answer
      = sessions
          .append_event(session_of(work, wanted.session), event_of(wanted))
          .get();
    if (!answer) {
      found.add("retry of {}: {}", to_string(each), to_string(answer.error()));
      continue;
    }
    if ((*answer)->actions.state_delta.has_typed())
      found.add("retry of {}: the answer is not the stored event",
                to_string(each));
    written.answered.write(ledger_entry::acknowledged, each);
  }
}

} // namespace

std::vector<std::string> findings_of(session_service& sessions,
                                     const work_plan& work,
                                     ledgers& written) {
  const auto read = books_of(written);
  return comparison(sessions, work, read).run();
}

std::vector<std::string> findings_at(const runtime_options& options,
                                     const work_plan& work,
                                     ledgers& written) {
  findings found;
  const auto checked_store = [&options]() -> result<std::unique_ptr<store>> {
    return open_store(name_of(options.store),
                      {.durability = options.durability});
  }();
  if (!checked_store)
    return {"open: " + to_string(checked_store.error())};
  const auto damage = (*checked_store)->check({});
  if (!damage)
    return {"check: " + to_string(damage.error())};
  if (!damage->empty())
    return *damage;
  if (const auto closed = (*checked_store)->close(); !closed)
    return {"close: " + to_string(closed.error())};
  auto opened = runtime::open(options);
  if (!opened)
    return {"open: " + to_string(opened.error())};
  if (auto all = findings_of(opened->sessions(), work, written); !all.empty())
    return all;
  retry(opened->sessions(), work, written, found);
  if (auto all = found.take(); !all.empty())
    return all;
  if (auto all = findings_of(opened->sessions(), work, written); !all.empty())
    return all;
  if (const auto closed = opened->shut_down(); !closed)
    return {"shut down: " + to_string(closed.error())};
  return {};
}

} // namespace troupe::testing

#include "history.hpp"

#include "../../random.hpp"
#include "key_finder.hpp"
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <semaphore>
#include <span>
#include <thread>
#include <utility>

namespace troupe::testing {

namespace {

using register_operation = register_spec::operation;

constexpr std::size_t registers_each = 4;
constexpr std::uint32_t segments_max = 4'096;
constexpr std::int64_t balance_start = 100;
constexpr std::array account_keys = {"bal", "user:bal", "app:bal", "app:pot"};

// The owner of a group of keys. Owner 0 is the app; users follow, then
// sessions.
struct owner {
  scope where;
  std::string label;
  std::atomic<std::uint32_t> sent{0}; // Number of tokens appended to its list.
};

// One call: its request and its answer.
struct note {
  std::string id; // Id of the event, for an append.
  list_transaction lists;
  std::vector<std::pair<std::uint32_t, list_spec::operation>> list_calls;
  std::vector<std::pair<std::size_t, register_operation>> registers;
  std::optional<std::size_t> group; // Accounts moved or read.
  std::optional<transfer> moved;
  std::optional<balance_read> balances;
  bool may_be_refused = false;
  bool must_be_refused = false;
  std::string code;
};

class recorder {
public:
  recorder(std::vector<session_service*> sessions,
           std::string app,
           const workload& wanted)
    : sessions_(std::move(sessions)),
      app_(std::move(app)),
      wanted_(wanted),
      session_count_(wanted.users * wanted.sessions_per_user),
      owners_(1 + wanted.users + session_count_),
      last_seen_(owners_.size() * registers_each) {
    owners_[0].where = scope::app;
    owners_[0].label = app_;
    for (std::size_t user = 0; user < wanted.users; ++user) {
      owners_[1 + user].where = scope::user;
      owners_[1 + user].label = fmt::format("{}/u{}", app_, user);
    }
    for (std::size_t index = 0; index < session_count_; ++index) {
      auto& own = owners_[owner_of(index)];
      own.where = scope::session;
      own.label = to_string(key_of(index));
      json state{{"text", "t"}, {"user:text", "t"}, {"app:text", "t"}};
      for (const auto* key : account_keys)
        state[account(key, index)] = balance_start;
      const auto key = key_of(index);
      sessions_.front()->create(key, state).value();
    }
  }

  history record() {
    std::vector<std::deque<note>> notes(wanted_.threads + 1);
    std::deque<caller> callers;
    for (std::size_t index = 0; index < wanted_.threads; ++index)
      callers.emplace_back(*this, notes[index], index);
    std::vector<std::thread> threads;
    for (auto& each : callers)
      threads.emplace_back(
        [this, &each] { each.run(wanted_.operations / wanted_.threads); });
    for (auto& thread : threads)
      thread.join();
    const auto logs = read_everything(notes.back());
    for (auto& own : notes)
      for (auto& each : own)
        settle(each, logs);
    history told;
    told.accounts.resize(session_count_);
    for (auto& group : told.accounts)
      group.total
        = balance_start * static_cast<std::int64_t>(account_keys.size());
    for (std::size_t at = 0; at < owners_.size(); ++at)
      for (std::uint32_t part = 0; part < segments_max; ++part)
        told.list_names.push_back(part > segment(owners_[at].sent)
                                    ? std::string()
                                    : owners_[at].label + " "
                                        + list_key(at, part));
    for (auto& own : notes)
      for (auto& each_note : own)
        file(told, each_note);
    return told;
  }

private:
  // -- names ----

  std::size_t user_of(std::size_t session) const {
    return session / wanted_.sessions_per_user;
  }

  session_key key_of(std::size_t session) const {
    return {
      app_, fmt::format("u{}", user_of(session)), fmt::format("s{}", session)};
  }

  std::size_t owner_of(std::size_t session) const {
    return 1 + wanted_.users + session;
  }

  std::array<std::size_t, 3> owners_of(std::size_t session) const {
    return {0, 1 + user_of(session), owner_of(session)};
  }

  std::string list_key(std::size_t at, std::uint32_t part) const {
    return join_key(owners_[at].where, fmt::format("l{}", part));
  }

  std::string register_key(std::size_t at, std::size_t number) const {
    return join_key(owners_[at].where, fmt::format("r{}", number));
  }

  std::string account(const char* key, std::size_t session) const {
    return fmt::format("{}{}", key, session);
  }

  std::uint32_t segment(std::uint32_t sent) const {
    return sent / static_cast<std::uint32_t>(wanted_.list_length);
  }

  static std::uint32_t list_id(std::size_t at, std::uint32_t part) {
    return static_cast<std::uint32_t>(at) * segments_max + part;
  }

  std::uint64_t tick() { return ++clock_; }

  // -- answers ----

  void read_list(note& on,
                 std::size_t at,
                 std::uint32_t part,
                 const key_finder& find) {
    auto list = tokens_of(find(list_key(at, part)));
    on.list_calls.push_back({list_id(at, part), {.seen = digest_of(list)}});
    on.lists.reads.push_back({list_id(at, part), std::move(list)});
  }

  void read_registers(note& on, std::size_t at, const key_finder& find) {
    for (std::size_t number = 0; number < registers_each; ++number) {
      const auto id = at * registers_each + number;
      const auto seen = number_of(find(register_key(at, number)));
      last_seen_[id] = seen.value_or(-1);
      on.registers.push_back(
        {id, {.what = register_spec::kind::read, .seen = seen}});
    }
  }

  void read_accounts(note& on, std::size_t session, const key_finder& find) {
    on.group = session;
    on.balances.emplace();
    for (const auto* key : account_keys)
      on.balances->accounts[account(key, session)]
        = find(account(key, session))->get<std::int64_t>();
  }

  // Takes the results of the operations from the stored event.
  void look_at_stored(note& on, const event& stored) {
    const auto find = find_in(stored);
    auto& appends = on.lists.appends;
    for (auto& each : appends) {
      const auto list = tokens_of(
        find(list_key(each.key / segments_max, each.key % segments_max)));
      // The token is near the end of the list. The tokens before it were there
      // when it was appended.
      const auto found
        = std::ranges::find(list.rbegin(), list.rend(), each.what);
      each.place = static_cast<std::size_t>(list.rend() - found);
      on.list_calls.push_back(
        {each.key,
         {.appended = each.what,
          .seen = digest_of(std::span(list).first(each.place))}});
    }
    for (auto& [id, done] : on.registers) {
      done.seen = number_of(
        find(register_key(id / registers_each, id % registers_each)));
      last_seen_[id] = done.seen.value_or(-1);
    }
  }

  void look(note& on, const result<event_ptr>& answer) {
    on.code = code(answer);
    if (answer)
      return look_at_stored(on, **answer);
    const bool refused = answer.error().code() == errc::conflict
                         || answer.error().code() == errc::type_error;
    on.lists.came_to = refused ? fate::refused : fate::unknown;
    for (auto& [id, done] : on.registers)
      done.refused = refused;
    on.moved.reset();
  }

  // Decides whether a call with an unknown outcome took effect. The log tells
  // it at the end, when no call is under way.
  void settle(note& on, const std::map<std::string, event_ptr>& logs) {
    if (on.lists.came_to != fate::unknown)
      return;
    on.lists.answered = tick();
    if (const auto found = logs.find(on.id); found != logs.end()) {
      on.lists.came_to = fate::done;
      return look_at_stored(on, *found->second);
    }
    on.lists.came_to = fate::refused;
    on.registers.clear();
  }

  template <class T>
  static std::string code(const result<T>& answer) {
    return answer ? "ok" : std::string(to_string(answer.error().code()));
  }

  // -- one thread ----

  class caller {
  public:
    caller(recorder& all, std::deque<note>& notes, std::size_t index)
      : all_(all),
        sessions_(*all.sessions_[index % all.sessions_.size()]),
        notes_(notes),
        index_(index),
        random_(all.wanted_.seed * 1'000 + index),
        slots_(static_cast<std::ptrdiff_t>(all.wanted_.in_flight)) {}

    void run(std::size_t count) {
      while (count-- > 0)
        take_step();
      for (std::size_t slot = 0; slot < all_.wanted_.in_flight; ++slot)
        slots_.acquire();
    }

  private:
    void take_step() {
      const auto session
        = random_.below(5) < 2 ? 0 : random_.below(all_.session_count_);
      switch (random_.below(20)) {
      default:
        return append_tokens(session);
      case 8:
      case 9:
      case 10:
      case 11:
        return use_register(session);
      case 12:
      case 13:
      case 14:
        return move_amount(session);
      case 15:
      case 16:
      case 17:
        return get(session);
      case 18:
        return get_wide(session);
      case 19:
        return random_.one_in(40) ? list() : get(session);
      }
    }

    note& new_note(std::size_t channel) {
      auto& made = notes_.emplace_back();
      made.lists.process = index_;
      made.lists.channel = channel;
      return made;
    }

    // Starts a call. `look` gets the answer, on the thread that delivers it.
    template <class T, class Start, class Look>
    void ask(note& on, const Start& start, Look look) {
      slots_.acquire();
      on.lists.asked = all_.tick();
      start(completion<T>([this, &on, look](const result<T>& answer) {
        on.lists.answered = all_.tick();
        look(answer);
        slots_.release();
      }));
    }

    void append(std::size_t session, note& on, event said) {
      const auto look = [&all = all_, &on](const result<event_ptr>& answer) {
        all.look(on, answer);
      };
      const auto key = all_.key_of(session);
      if (said.id.empty())
        said.id = fmt::format("{}-{}", index_, notes_.size());
      on.id = said.id;
      if (random_.one_in(8)) {
        on.lists.asked = all_.tick();
        const auto answer = sessions_.append_event(key, std::move(said)).get();
        on.lists.answered = all_.tick();
        return look(answer);
      }
      ask<event_ptr>(
        on,
        [&](completion<event_ptr> done) {
          sessions_.append_event(key, std::move(said)).then(std::move(done));
        },
        look);
    }

    void append_tokens(std::size_t session) {
      auto& on = new_note(session);
      const auto owners = all_.owners_of(session);
      event said;
      said.author = "writer";
      const auto to = [&](std::size_t at) {
        const auto part = all_.segment(all_.owners_[at].sent++);
        // Sometimes appends two tokens at once; a reader must see both or none.
        for (auto left = random_.one_in(20) ? 2 : 1; left > 0; --left) {
          const auto what = ++all_.tokens_;
          on.lists.appends.push_back({list_id(at, part), what});
          record(said, all_.list_key(at, part), operation_kind::append, what);
        }
      };
      switch (random_.below(8)) {
      case 0:
        to(owners[0]);
        break;
      case 1:
        to(owners[1]);
        break;
      case 2:
        for (const auto at : owners)
          to(at);
        break;
      default:
        to(owners[2]);
      }
      if (random_.one_in(25)) {
        on.must_be_refused = true;
        record(said,
               random_.pick(std::array{"text", "user:text", "app:text"}),
               operation_kind::add,
               1);
      } else if (random_.one_in(25)) {
        return append_twice(session, on, std::move(said));
      }
      append(session, on, std::move(said));
    }

    // Sends the event twice with one id, the second time while the first is
    // under way: one effect, one answer.
    void append_twice(std::size_t session, note& on, event said) {
      said.id = fmt::format("twice-{}-{}", index_, notes_.size());
      auto& again = new_note(session);
      const auto key = all_.key_of(session);
      ask<event_ptr>(
        again,
        [&](completion<event_ptr> done) {
          sessions_.append_event(key, said).then(std::move(done));
        },
        [&again](const result<event_ptr>& answer) {
          again.code = code(answer);
        });
      append(session, on, std::move(said));
      // The first sending may take effect before this one was asked.
      on.lists.asked = again.lists.asked;
    }

    void use_register(std::size_t session) {
      using enum register_spec::kind;
      auto& on = new_note(session);
      const auto at = random_.pick(all_.owners_of(session));
      const auto number = random_.one_in(2) ? 0 : random_.below(registers_each);
      const auto id = at * registers_each + number;
      const auto key = all_.register_key(at, number);
      event said;
      said.author = "writer";
      register_operation done;
      done.operand = static_cast<std::int64_t>(random_.below(1'000));
      const auto choice = random_.below(20);
      if (choice < 9) {
        done.what = add;
        record(said, key, operation_kind::add, *done.operand);
      } else if (choice < 13) {
        done.what = set;
        record(said, key, operation_kind::set, *done.operand);
      } else if (choice < 18) {
        done.what = compare_and_set;
        done.expected = all_.last_seen_[id].load();
        if (*done.expected < 0)
          done.expected.reset();
        on.may_be_refused = true;
        said.actions.state_delta
          .record(key,
                  operation_kind::compare_and_set,
                  json(*done.operand),
                  done.expected ? json(*done.expected) : json())
          .value();
      } else {
        done.what = erase;
        done.operand.reset();
        record(said, key, operation_kind::erase, nullptr);
      }
      on.registers.push_back({id, done});
      append(session, on, std::move(said));
    }

    void move_amount(std::size_t session) {
      auto& on = new_note(session);
      auto group = session;
      std::size_t from = random_.below(account_keys.size());
      auto to = (from + 1 + random_.below(account_keys.size() - 1))
                % account_keys.size();
      // Another session of the same user can move amounts of its user and its
      // app.
      if (random_.one_in(4)) {
        group = all_.user_of(session) * all_.wanted_.sessions_per_user
                + random_.below(all_.wanted_.sessions_per_user);
        from = 1;
        to = 2 + random_.below(2);
        if (random_.one_in(2))
          std::swap(from, to);
      }
      const auto amount = static_cast<std::int64_t>(random_.below(9)) + 1;
      on.group = group;
      on.moved = transfer{all_.account(account_keys[from], group),
                          all_.account(account_keys[to], group),
                          amount};
      event said;
      said.author = "writer";
      record(said, on.moved->from, operation_kind::add, -amount);
      record(said, on.moved->to, operation_kind::add, amount);
      append(session, on, std::move(said));
    }

    void get(std::size_t session) {
      auto& on = new_note(session);
      const auto owners = all_.owners_of(session);
      std::array<std::uint32_t, 3> parts{};
      for (std::size_t index = 0; index < 3; ++index)
        parts[index] = all_.segment(all_.owners_[owners[index]].sent);
      const bool looks_back = random_.one_in(8);
      const auto look = [&all = all_, &on, owners, parts, looks_back, session](
                          const result<troupe::session>& answer) {
        on.code = code(answer);
        if (!answer)
          return;
        const auto find = find_in(answer->state());
        for (std::size_t index = 0; index < 3; ++index) {
          if (looks_back && parts[index] > 0)
            all.read_list(on, owners[index], parts[index] - 1, find);
          all.read_list(on, owners[index], parts[index], find);
          all.read_registers(on, owners[index], find);
        }
        all.read_accounts(on, session, find);
      };
      const auto key = all_.key_of(session);
      const get_options few{.num_recent_events = random_.below(3)};
      if (random_.one_in(4)) {
        on.lists.asked = all_.tick();
        const auto answer = sessions_.get(key, few).get();
        on.lists.answered = all_.tick();
        return look(answer);
      }
      ask<troupe::session>(
        on,
        [&](completion<troupe::session> done) {
          sessions_.get(key, few).then(std::move(done));
        },
        look);
    }

    // Reads the state of the user or of the app alone. Its owner answers and
    // does not wait for calls on their way to a session, so the call is on a
    // channel of the owner's.
    void get_wide(std::size_t session) {
      const auto at = all_.owners_of(session)[random_.below(2)];
      auto& on = new_note(all_.session_count_ + at);
      const auto part = all_.segment(all_.owners_[at].sent);
      const auto look
        = [&all = all_, &on, at, part](const result<json>& answer) {
            on.code = code(answer);
            if (!answer)
              return;
            const auto find = find_in(*answer);
            all.read_list(on, at, part, find);
            all.read_registers(on, at, find);
          };
      const auto key = all_.key_of(session);
      ask<json>(
        on,
        [&](completion<json> done) {
          if (at == 0)
            sessions_.app_state(key.app).then(std::move(done));
          else
            sessions_.user_state(key.app, key.user).then(std::move(done));
        },
        look);
    }

    // Each row is consistent by itself; rows may be of different moments.
    void list() {
      const auto asked = all_.tick();
      const auto page = sessions_.list({all_.app_, {}, 4}).get();
      const auto answered = all_.tick();
      if (!page) {
        new_note(0).code = code(page);
        return;
      }
      for (const auto& row : page->sessions) {
        const auto session
          = static_cast<std::size_t>(std::stoul(row.key().id.substr(1)));
        auto& on = new_note(session);
        on.code = "ok";
        on.lists.asked = asked;
        on.lists.answered = answered;
        all_.read_accounts(on, session, find_in(row.state()));
      }
    }

    static void record(event& said,
                       const std::string& key,
                       operation_kind kind,
                       json operand) {
      said.actions.state_delta.record(key, kind, std::move(operand)).value();
    }

    recorder& all_;
    session_service& sessions_;
    std::deque<note>& notes_;
    const std::size_t index_;
    random_source random_;
    std::counting_semaphore<> slots_;
  };

  // -- at the end ----

  std::map<std::string, event_ptr> read_everything(std::deque<note>& notes) {
    std::map<std::string, event_ptr> logs;
    for (std::size_t session = 0; session < session_count_; ++session) {
      auto& on = notes.emplace_back();
      on.lists.process = wanted_.threads;
      on.lists.channel = session;
      on.lists.asked = tick();
      const auto held = sessions_.front()->get(key_of(session)).value();
      on.lists.answered = tick();
      on.code = "ok";
      const auto find = find_in(held.state());
      for (const auto at : owners_of(session)) {
        for (std::uint32_t part = 0; part <= segment(owners_[at].sent); ++part)
          read_list(on, at, part, find);
        read_registers(on, at, find);
      }
      read_accounts(on, session, find);
      for (std::size_t at = 0; at < held.events().size(); ++at)
        logs.emplace(held.events()[at]->id, held.events()[at]);
    }
    return logs;
  }

  void file(history& told, note& one) {
    ++told.operations;
    ++told.answers[one.code];
    const auto expected
      = one.must_be_refused
          ? one.code == "type_error"
          : one.code == "ok" || (one.may_be_refused && one.code == "conflict");
    const bool may_fail = wanted_.store_fails && one.code == "store_failed";
    if (!expected && !may_fail && told.unexpected.size() < 5)
      told.unexpected.push_back(fmt::format("process {} [{}, {}]: {}",
                                            one.lists.process,
                                            one.lists.asked,
                                            one.lists.answered,
                                            one.code));
    const auto timed = [&one](auto what) {
      return timed_call<decltype(what)>{std::move(what),
                                        one.lists.asked,
                                        one.lists.answered,
                                        one.lists.process};
    };
    for (auto& [id, done] : one.list_calls)
      told.list_calls[told.list_names[id]].push_back(timed(done));
    for (auto& [id, done] : one.registers) {
      const auto at = id / registers_each;
      told
        .registers[owners_[at].label + " "
                   + register_key(at, id % registers_each)]
        .push_back(timed(done));
    }
    if (one.moved) {
      one.moved->process = one.lists.process;
      one.moved->asked = one.lists.asked;
      one.moved->answered = one.lists.answered;
      told.accounts[*one.group].transfers.push_back(std::move(*one.moved));
    }
    if (one.balances) {
      one.balances->process = one.lists.process;
      one.balances->asked = one.lists.asked;
      one.balances->answered = one.lists.answered;
      told.accounts[*one.group].reads.push_back(std::move(*one.balances));
    }
    if (!one.lists.appends.empty() || !one.lists.reads.empty())
      told.lists.push_back(std::move(one.lists));
  }

  const std::vector<session_service*> sessions_;
  const std::string app_;
  const workload wanted_;
  const std::size_t session_count_;
  std::deque<owner> owners_;
  // The newest value seen in each register by any thread; below 0: no value.
  std::vector<std::atomic<std::int64_t>> last_seen_;
  std::atomic<std::uint64_t> clock_{0};
  std::atomic<token> tokens_{0};
};

} // namespace

history record_history(const std::vector<session_service*>& sessions,
                       const std::string& app,
                       const workload& wanted) {
  return recorder(sessions, app, wanted).record();
}

} // namespace troupe::testing

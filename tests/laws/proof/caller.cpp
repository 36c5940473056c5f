#include "caller.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace troupe::testing {

caller::caller(recording& all,
               std::deque<recorded_call>& notes,
               std::size_t index)
  : all_(all),
    sessions_(*all.sessions[index % all.sessions.size()]),
    notes_(notes),
    index_(index),
    random_(all.wanted.seed * 1'000 + index),
    slots_(static_cast<std::ptrdiff_t>(all.wanted.in_flight)) {}

void caller::run(std::size_t count) {
  while (count-- > 0)
    take_step();
  for (std::size_t slot = 0; slot < all_.wanted.in_flight; ++slot)
    slots_.acquire();
}

void caller::take_step() {
  const auto session
    = random_.below(5) < 2 ? 0 : random_.below(all_.session_count);
  switch (random_.below(22)) {
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
  case 20:
  case 21:
    return write_shared(session);
  }
}

recorded_call& caller::new_note(std::size_t channel) {
  auto& made = notes_.emplace_back();
  made.lists.process = index_;
  made.lists.channel = channel;
  return made;
}

// Starts a call. `look` gets the answer, on the thread that delivers it.
template <class T, class Start, class Look>
void caller::ask(recorded_call& on, const Start& start, Look look) {
  slots_.acquire();
  on.lists.asked = all_.tick();
  start(completion<T>([this, &on, look](const result<T>& answer) {
    on.lists.answered = all_.tick();
    look(answer);
    slots_.release();
  }));
}

void caller::append(std::size_t session, recorded_call& on, event said) {
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

void caller::append_tokens(std::size_t session) {
  auto& on = new_note(session);
  const auto owners = all_.owners_of(session);
  event said;
  said.author = "writer";
  const auto to = [&](std::size_t at) {
    const auto part = all_.segment(all_.owners[at].sent++);
    // Sometimes appends two tokens at once; a reader must see both or none.
    for (auto left = random_.one_in(20) ? 2 : 1; left > 0; --left) {
      const auto what = ++all_.tokens;
      on.lists.appends.push_back({recording::list_id(at, part), what});
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
void caller::append_twice(std::size_t session, recorded_call& on, event said) {
  said.id = fmt::format("twice-{}-{}", index_, notes_.size());
  auto& again = new_note(session);
  const auto key = all_.key_of(session);
  ask<event_ptr>(
    again,
    [&](completion<event_ptr> done) {
      sessions_.append_event(key, said).then(std::move(done));
    },
    [&again](const result<event_ptr>& answer) {
      again.code = recorded_code(answer);
    });
  append(session, on, std::move(said));
  // The first sending may take effect before this one was asked.
  on.lists.asked = again.lists.asked;
}

operation caller::choose(recorded_call& on, std::size_t at) {
  using enum register_spec::kind;
  const auto number = random_.one_in(2) ? 0 : random_.below(registers_each);
  const auto id = at * registers_each + number;
  operation wanted;
  wanted.where = all_.owners[at].where;
  wanted.name = split_key(all_.register_key(at, number)).name;
  register_operation done;
  done.operand = static_cast<std::int64_t>(random_.below(1'000));
  wanted.operand = json(*done.operand);
  const auto choice = random_.below(20);
  if (choice < 9) {
    done.what = add;
    wanted.kind = operation_kind::add;
  } else if (choice < 13) {
    done.what = set;
    wanted.kind = operation_kind::set;
  } else if (choice < 18) {
    done.what = compare_and_set;
    done.expected = all_.last_seen[id].load();
    if (*done.expected < 0)
      done.expected.reset();
    on.may_be_refused = true;
    wanted.kind = operation_kind::compare_and_set;
    wanted.expected = done.expected ? json(*done.expected) : json();
  } else {
    done.what = erase;
    done.operand.reset();
    wanted.kind = operation_kind::erase;
    wanted.operand = value();
  }
  on.registers.push_back({id, done});
  return wanted;
}

void caller::use_register(std::size_t session) {
  auto& on = new_note(session);
  const auto wanted = choose(on, random_.pick(all_.owners_of(session)));
  event said;
  said.author = "writer";
  said.actions.state_delta
    .record(join_key(wanted.where, wanted.name),
            wanted.kind,
            wanted.operand.data(),
            wanted.expected.data())
    .value();
  append(session, on, std::move(said));
}

// Writes a key of the user or of the app without a session.
void caller::write_shared(std::size_t session) {
  const auto at = all_.owners_of(session)[random_.below(2)];
  const auto channel = all_.session_count + all_.owners.size() + at;
  auto& on = new_note(channel);
  // Each write is a process of its own: overlapping writes have no order.
  on.lists.process = (index_ + 1) * 1'000'000 + notes_.size();
  on.id = fmt::format("w-{}-{}", index_, notes_.size());
  on.written_at = at;
  operation wanted;
  if (random_.one_in(2)) {
    wanted = choose(on, at);
  } else {
    const auto part = all_.segment(all_.owners[at].sent++);
    const auto what = ++all_.tokens;
    on.lists.appends.push_back({recording::list_id(at, part), what});
    wanted.kind = operation_kind::append;
    wanted.where = all_.owners[at].where;
    wanted.name = split_key(all_.list_key(at, part)).name;
    wanted.operand = json(what);
  }
  // The id of a refused write is not remembered.
  if (!on.may_be_refused && random_.one_in(6)) {
    // Sent twice while under way: one effect, and one answer.
    auto& again = new_note(channel);
    again.first_sent = &on;
    again.written_at = at;
    again.may_be_refused = on.may_be_refused;
    ask<shared_write>(
      again,
      [&](completion<shared_write> done) {
        write_until_known(at, wanted, on.id, std::move(done));
      },
      [&again](const result<shared_write>& answer) {
        again.code = recorded_code(answer);
        again.revision = answer ? answer->revision : 0;
      });
    const auto asked = again.lists.asked;
    send_write(at, on, wanted);
    // The first sending may take effect before this one was asked.
    on.lists.asked = asked;
    return;
  }
  send_write(at, on, wanted);
}

void caller::send_write(std::size_t at,
                        recorded_call& on,
                        const operation& wanted) {
  ask<shared_write>(
    on,
    [&](completion<shared_write> done) {
      write_until_known(at, wanted, on.id, std::move(done));
    },
    [&all = all_, &on](const result<shared_write>& answer) {
      all.look(on, answer);
    });
}

// Sends the write again while its outcome is unknown.
void caller::write_until_known(std::size_t at,
                               const operation& wanted,
                               const std::string& id,
                               completion<shared_write> done) {
  const auto state
    = at == 0 ? sessions_.state_of_app(all_.app)
              : sessions_.state_of_user(all_.app, fmt::format("u{}", at - 1));
  const auto key = join_key(wanted.where, wanted.name);
  const shared_write_options how(id);
  completion<shared_write> look
    = [this, at, wanted, id, done = std::move(done)](
        const result<shared_write>& answer) {
        if (!answer && answer.error().code() == errc::store_failed)
          write_until_known(at, wanted, id, done);
        else
          done(answer);
      };
  const auto& operand = wanted.operand.data();
  switch (wanted.kind) {
  case operation_kind::add:
    return state.add(key, operand, how).then(std::move(look));
  case operation_kind::append:
    return state.append(key, operand, how).then(std::move(look));
  case operation_kind::compare_and_set:
    return state.compare_and_set(key, wanted.expected.data(), operand, how)
      .then(std::move(look));
  case operation_kind::erase:
    return state.erase(key, how).then(std::move(look));
  default:
    return state.set(key, operand, how).then(std::move(look));
  }
}

void caller::move_amount(std::size_t session) {
  auto& on = new_note(session);
  auto group = session;
  std::size_t from = random_.below(account_keys.size());
  auto to
    = (from + 1 + random_.below(account_keys.size() - 1)) % account_keys.size();
  // Another session of the same user can move amounts of its user and its
  // app.
  if (random_.one_in(4)) {
    group = all_.user_of(session) * all_.wanted.sessions_per_user
            + random_.below(all_.wanted.sessions_per_user);
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

void caller::get(std::size_t session) {
  auto& on = new_note(session);
  const auto owners = all_.owners_of(session);
  std::array<std::uint32_t, 3> parts{};
  for (std::size_t index = 0; index < 3; ++index)
    parts[index] = all_.segment(all_.owners[owners[index]].sent);
  const bool looks_back = random_.one_in(8);
  const auto look = [&all = all_, &on, owners, parts, looks_back, session](
                      const result<troupe::session>& answer) {
    on.code = recorded_code(answer);
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
void caller::get_wide(std::size_t session) {
  const auto at = all_.owners_of(session)[random_.below(2)];
  auto& on = new_note(all_.session_count + at);
  const auto part = all_.segment(all_.owners[at].sent);
  const auto look = [&all = all_, &on, at, part](const result<json>& answer) {
    on.code = recorded_code(answer);
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
void caller::list() {
  const auto asked = all_.tick();
  const auto page = sessions_.list({all_.app, {}, 4}).get();
  const auto answered = all_.tick();
  if (!page) {
    new_note(0).code = recorded_code(page);
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

void caller::record(event& said,
                    const std::string& key,
                    operation_kind kind,
                    json operand) {
  said.actions.state_delta.record(key, kind, std::move(operand)).value();
}

} // namespace troupe::testing

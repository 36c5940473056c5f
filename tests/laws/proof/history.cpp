#include "history.hpp"

#include "caller.hpp"
#include <fmt/format.h>

#include <deque>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace troupe::testing {

namespace {

constexpr std::size_t unexpected_max = 5;

class recorder {
public:
  recorder(const std::vector<session_service*>& sessions,
           const std::string& app,
           const workload& wanted)
    : all_(sessions, app, wanted),
      wanted_(wanted) {}

  history record() {
    std::vector<std::deque<recorded_call>> notes(wanted_.threads + 1);
    std::deque<caller> callers;
    for (std::size_t index = 0; index < wanted_.threads; ++index)
      callers.emplace_back(all_, notes[index], index);
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
    told.accounts.resize(all_.session_count);
    for (auto& group : told.accounts)
      group.total
        = balance_start * static_cast<std::int64_t>(account_keys.size());
    for (std::size_t at = 0; at < all_.owners.size(); ++at)
      for (std::uint32_t part = 0; part < segments_max; ++part)
        told.list_names.push_back(part > all_.segment(all_.owners[at].sent)
                                    ? std::string()
                                    : all_.owners[at].label + " "
                                        + all_.list_key(at, part));
    for (auto& own : notes)
      for (auto& each_note : own)
        file(told, each_note);
    return told;
  }

private:
  // Decides whether a call with an unknown outcome took effect. The log tells
  // it at the end, when no call is under way.
  void settle(recorded_call& on, const std::map<std::string, event_ptr>& logs) {
    if (on.lists.came_to != fate::unknown)
      return;
    on.lists.answered = all_.tick();
    if (const auto found = logs.find(on.id); found != logs.end()) {
      on.lists.came_to = fate::done;
      return all_.look_at_stored(on, *found->second);
    }
    on.lists.came_to = fate::refused;
    on.registers.clear();
  }

  std::map<std::string, event_ptr>
  read_everything(std::deque<recorded_call>& notes) {
    std::map<std::string, event_ptr> logs;
    for (std::size_t session = 0; session < all_.session_count; ++session) {
      auto& on = notes.emplace_back();
      on.lists.process = wanted_.threads;
      on.lists.channel = session;
      on.lists.asked = all_.tick();
      const auto held
        = all_.sessions.front()->get(all_.key_of(session)).value();
      on.lists.answered = all_.tick();
      on.code = "ok";
      const auto find = find_in(held.state());
      for (const auto at : all_.owners_of(session)) {
        for (std::uint32_t part = 0; part <= all_.segment(all_.owners[at].sent);
             ++part)
          all_.read_list(on, at, part, find);
        all_.read_registers(on, at, find);
      }
      all_.read_accounts(on, session, find);
      for (std::size_t at = 0; at < held.events().size(); ++at)
        logs.emplace(held.events()[at]->id, held.events()[at]);
    }
    return logs;
  }

  // One revision per write, and the same one for its second sending.
  void check_write(history& told, const recorded_call& one) {
    const auto complain = [&](std::string_view what) {
      if (told.unexpected.size() >= unexpected_max)
        return;
      told.unexpected.push_back(
        fmt::format("write {} has {}, revision {}",
                    one.first_sent != nullptr ? one.first_sent->id : one.id,
                    what,
                    one.revision));
    };
    if (one.first_sent != nullptr
        && (one.code != one.first_sent->code
            || one.revision != one.first_sent->revision))
      complain("two answers");
    if (one.first_sent == nullptr && one.revision != 0
        && !revisions_.emplace(one.written_at, one.revision).second)
      complain("the revision of another write");
  }

  void file(history& told, recorded_call& one) {
    ++told.operations;
    ++told.answers[one.code];
    const auto expected
      = one.must_be_refused
          ? one.code == "type_error"
          : one.code == "ok" || (one.may_be_refused && one.code == "conflict");
    check_write(told, one);
    const bool may_fail = wanted_.store_fails && one.code == "store_failed";
    if (!expected && !may_fail && told.unexpected.size() < unexpected_max)
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
        .registers[all_.owners[at].label + " "
                   + all_.register_key(at, id % registers_each)]
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

  recording all_;
  const workload wanted_;
  /// Owners and revisions of the writes to shared state.
  std::set<std::pair<std::size_t, std::uint64_t>> revisions_;
};

} // namespace

history record_history(const std::vector<session_service*>& sessions,
                       const std::string& app,
                       const workload& wanted) {
  return recorder(sessions, app, wanted).record();
}

} // namespace troupe::testing

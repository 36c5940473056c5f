#include "readers.hpp"

#include <string>
#include <utility>

namespace troupe::testing {

using namespace std::chrono_literals;

readers::readers(world& in,
                 history& told,
                 const plan& chosen,
                 std::vector<std::unique_ptr<program>>& programs)
  : world_(in),
    told_(told),
    plan_(chosen),
    programs_(programs),
    chance_(chosen.seed * 7 + 13) {}

program* readers::program_of(const follow_record& record) const {
  return programs_[record.client % programs_.size()].get();
}

void readers::start_sometimes(std::size_t client,
                              std::size_t burst,
                              const session_key& key) {
  if (plan_.follows == 0 || !chance_.one_in(plan_.follows))
    return;
  auto& record = told_.readers.emplace_back();
  record.key = key;
  if (chance_.one_in(2))
    record.how.from = chance_.one_in(2) ? 0 : chance_.below(12);
  record.client = client;
  record.burst = burst;
  record.calls_before = told_.calls.size();
  record.answered_before = told_.answered;
  record.before = told_.written.size();
  record.faults_before = told_.faults();
  auto& on = *program_of(record);
  auto made = on.keep(on.open_runtime()->sessions().follow(key, record.how));
  world_.note("reader " + std::to_string(told_.readers.size()));
  started_.emplace_back(made, &record);
  read(made, record);
}

void readers::read(const std::shared_ptr<follower>& from,
                   follow_record& record) {
  from->next().then(
    [this, weak = std::weak_ptr(from), &record](const result<event_ptr>& next) {
      if (!next || !*next)
        return end(record, next);
      world_.note("read " + (*next)->id);
      record.taken.push_back(*next);
      record.taken_at.push_back(told_.written.size());
      const auto held = weak.lock();
      if (!held)
        return;
      if (chance_.one_in(40)) {
        record.is_closed = true;
        held->close();
      }
      if (!chance_.one_in(3))
        return read(held, record);
      world_.after(chance_.time(60ms), [this, weak, &record] {
        if (const auto kept = weak.lock())
          read(kept, record);
      });
    });
}

void readers::end(follow_record& record, const result<event_ptr>& last) {
  ++record.ends;
  record.code = last ? "ok" : std::string(to_string(last.error().code()));
  if (!last)
    record.reason = last.error().message();
  record.after = told_.written.size();
  record.faults_after = told_.faults();
  if (const auto* const used = program_of(record)) {
    record.was_closing = used->is_closing();
    record.was_dead = used->is_dead();
  }
  world_.note("end of reader: " + record.code);
}

void readers::finish() {
  if (started_.empty())
    return;
  for (const auto& each : programs_)
    each->recover();
  // In steps, each of which ends when all jobs are done: time may move although
  // a job is ready.
  for (int step = 0; step < 20; ++step) {
    bool is_over = false;
    world_.after(100ms, [&is_over] { is_over = true; });
    world_.run_until([&] { return is_over && world_.jobs() == 0; });
  }
  for (const auto& [weak, record] : started_)
    if (const auto held = weak.lock(); held && record->ends == 0) {
      record->is_waiting_at_end = true;
      record->revision_at_end = held->revision();
    }
}

} // namespace troupe::testing

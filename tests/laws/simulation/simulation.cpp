#include "simulation.hpp"

#include "history.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "traffic.hpp"
#include "verdict.hpp"
#include "world.hpp"

#include <map>
#include <memory>
#include <utility>

namespace troupe::testing {

namespace {

using findings = std::vector<std::string>;

void add(findings& all, findings more) {
  for (auto& each : more)
    all.push_back(std::move(each));
}

class play {
public:
  play(std::uint64_t seed,
       place_kind over,
       const std::function<void(std::string_view)>& on_note)
    : plan_(make_plan(seed)),
      world_(seed),
      place_(over) {
    world_.behave(plan_.habits);
    world_.on_note = on_note;
    world_.note(to_string(plan_));
  }

  simulation_outcome perform(bool with_verdict) {
    simulation_outcome outcome;
    try {
      run_all(outcome.findings);
      outcome.hash = world_.hash();
      if (with_verdict) {
        verdict last(plan_, told_);
        add(outcome.findings, last.judge());
        read_again(last, outcome.findings);
      }
    } catch (const stuck& why) {
      outcome.findings.emplace_back(why.what());
      report_open(outcome.findings);
      // Programs that wait for something cannot be shut down, so they are
      // leaked.
      for (auto& each : programs_)
        static_cast<void>(each.release());
      static_cast<void>(last_.release());
    }
    outcome.calls = told_.calls.size();
    outcome.runs = told_.runs.size();
    outcome.changes = told_.written.size();
    outcome.steps = world_.steps();
    outcome.restarts = told_.crashes + told_.restarts;
    outcome.failures = told_.failed_commits + told_.lost_answers;
    count(outcome);
    return outcome;
  }

private:
  std::unique_ptr<program> open(const plan& chosen) {
    return std::make_unique<program>(
      world_, told_, chosen, place_, plan_.seed * 31 + ++opened_);
  }

  void run_all(findings& wrong) {
    for (std::size_t number = 0; number < plan_.runtimes; ++number)
      programs_.push_back(open(plan_));
    traffic all(world_, told_, plan_, programs_);
    traffic_ = &all;
    all.start();
    while (!all.is_over()) {
      world_.run_until([&all] { return all.is_over() || all.has_wish(); });
      if (const auto wish = all.take_wish()) {
        ++(wish->dies ? told_.crashes : told_.restarts);
        world_.note(wish->dies ? "crash" : "restart");
        add(wrong, programs_[wish->number]->end(wish->dies));
        programs_[wish->number].reset();
        programs_[wish->number] = open(plan_);
        all.wake();
      }
    }
    all.finish();
    for (auto& each : programs_) {
      each->recover();
      add(wrong, each->end(false));
      each.reset();
    }
    // Runs the jobs of abandoned tools and of models that answer late.
    world_.run_until([this] { return world_.jobs() == 0; });
  }

  // Reads everything with a new program that was no part of the simulation.
  void read_again(const verdict& last, findings& wrong) {
    auto calm = plan_;
    calm.store = {};
    last_ = open(calm);
    std::map<session_key, session> found;
    std::size_t waited = 0;
    auto& sessions = last_->open_runtime()->sessions();
    for (const auto& key : last.keys()) {
      ++waited;
      sessions.get(key).then(
        [&wrong, &waited, &found, key](result<session> got) {
          --waited;
          if (got)
            found.emplace(key, std::move(*got));
          else
            wrong.push_back("after the end " + to_string(key) + " is "
                            + to_string(got.error()));
        });
    }
    world_.run_until([&waited] { return waited == 0; });
    add(wrong, last.compare(found));
    read_earlier(sessions, last, found, wrong);
    add(wrong, last_->end(false));
    last_.reset();
    for (const auto& each : place_.open()->check({}).value())
      wrong.push_back("the store is damaged: " + each);
  }

  // Reads each session at some of its revisions.
  void read_earlier(session_service& sessions,
                    const verdict& last,
                    const std::map<session_key, session>& found,
                    findings& wrong) {
    std::size_t waited = 0;
    for (const auto& [key, held] : found)
      for (std::uint64_t at = 0; at <= held.revision();
           at += 1 + held.revision() / 6) {
        ++waited;
        sessions.get(key, {.at = at})
          .then([&wrong, &waited, &last, key = key](result<session> got) {
            --waited;
            if (got)
              add(wrong, last.compare_earlier(*got));
            else
              wrong.push_back("after the end an earlier revision of "
                              + to_string(key) + " is "
                              + to_string(got.error()));
          });
      }
    world_.run_until([&waited] { return waited == 0; });
  }

  void report_open(findings& wrong) const {
    for (const auto& each : told_.calls)
      if (each.answers == 0)
        wrong.push_back("not answered: " + std::string(to_string(each.kind))
                        + " " + each.event.id + " " + to_string(each.key));
    for (const auto& each : told_.runs)
      if (each.ends == 0)
        wrong.push_back("has not ended: run " + each.invocation_id + " on "
                        + to_string(each.key));
  }

  void count(simulation_outcome& outcome) const {
    std::map<std::string, std::size_t> answers;
    for (const auto& each : told_.calls)
      ++answers[std::string(to_string(each.kind)) + " " + each.code];
    for (const auto& each : told_.runs)
      ++answers["run " + each.code];
    for (const auto& each : told_.readers)
      ++answers["reader " + (each.ends == 0 ? "waits" : each.code)];
    for (const auto& [answer, times] : answers)
      outcome.answers.push_back(answer + " " + std::to_string(times));
  }

  const plan plan_;
  world world_;
  history told_;
  shared_place place_;
  std::vector<std::unique_ptr<program>> programs_;
  std::unique_ptr<program> last_;
  traffic* traffic_ = nullptr;
  std::uint64_t opened_ = 0;
};

} // namespace

simulation_outcome
simulate(std::uint64_t seed,
         place_kind over,
         bool with_verdict,
         const std::function<void(std::string_view)>& on_note) {
  auto* played = new play(seed, over, on_note);
  auto outcome = played->perform(with_verdict);
  // A stuck simulation is leaked, because its programs were.
  const bool is_stuck = !outcome.findings.empty()
                        && outcome.findings.front().find("but a caller waits")
                             != std::string::npos;
  if (!is_stuck)
    delete played;
  return outcome;
}

simulation_outcome simulate_twice(std::uint64_t seed, place_kind second) {
  auto first = simulate(seed);
  // The second place may hold other content at the end although all calls were
  // answered alike, so it is checked too.
  const bool is_same_place = second == place_kind::memory;
  const auto again = simulate(seed, second, !is_same_place);
  if (first.findings.empty())
    first.findings = again.findings;
  // Over SQLite, a load before the loss is noticed still reads the lost file.
  // The histories of both places then differ.
  const bool has_same_history
    = is_same_place || make_plan(seed).store.place_loses == 0;
  if (first.findings.empty() && has_same_history && first.hash != again.hash)
    first.findings.emplace_back("the seed does not replay: two histories");
  return first;
}

} // namespace troupe::testing

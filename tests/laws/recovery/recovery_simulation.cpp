#include "recovery_simulation.hpp"

#include "troupe/runtime/runtime.hpp"

#include "../simulation/plan.hpp"
#include "../simulation/program.hpp"
#include "../simulation/world.hpp"
#include "recovery_verdict.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

using namespace std::chrono_literals;

// Number of attempts after which stores do not fail any more.
constexpr std::size_t attempts_max = 80;

// Steps that take simulated time and are recorded.
class simulated_outside final : public outside_world {
public:
  simulated_outside(world& in,
                    recovery_history& told,
                    dice& chance,
                    std::uint64_t program)
    : world_(in),
      told_(told),
      chance_(chance),
      program_(program) {}

  void note(const std::string& step,
            const std::string& key,
            const std::string& run) override {
    world_.note("step " + step + " " + key);
    told_.steps.push_back(
      {step, key, run, program_, told_.stored.written.size()});
  }

  void work() override { world_.pause(chance_.time(15ms)); }

  std::chrono::nanoseconds delay() override { return chance_.time(20ms); }

private:
  world& world_;
  recovery_history& told_;
  dice& chance_;
  const std::uint64_t program_;
};

// The settings of one seed.
struct recovery_plan {
  plan programs;
  std::size_t runs = 2;
  std::size_t kills = 2;
  std::size_t restarts = 0;
  std::chrono::nanoseconds kill_time{0};
  std::chrono::nanoseconds look_time{0};
  bool has_faults = false;
};

recovery_plan make_recovery_plan(std::uint64_t seed) {
  dice chance(seed * 2 + 5);
  recovery_plan made;
  auto& programs = made.programs;
  programs.seed = seed;
  programs.runtimes = 2 + chance.below(2);
  programs.habits.preempts = chance.one_in(3) ? 0 : 2 + chance.below(12);
  programs.habits.hurries = chance.one_in(3) ? 8 : 64;
  for (auto& each : programs.habits.slow)
    each = chance.one_in(6);
  auto& options = programs.options;
  options.append_wait_max = {};
  options.tool_threads = 1 + chance.below(4);
  options.events_kept = chance.one_in(2) ? 64 : 1 + chance.below(8);
  options.run_lease = 20ms + 1ms * chance.below(40);
  auto& store = programs.store;
  store.keeps_dead_holders = true;
  store.load_time = chance.one_in(4) ? 0ms : 5ms;
  // Commits that are longer than the lease, and signs of life that are not
  // written, make programs that are only slow.
  store.commit_time = chance.one_in(3) ? 90ms : 5ms;
  store.renewal_fails = chance.one_in(3) ? 1 + chance.below(2) : 0;
  made.has_faults = chance.one_in(4);
  if (made.has_faults) {
    store.commit_fails = 20 + chance.below(40);
    store.commit_is_unknown = 20 + chance.below(40);
    store.load_fails = 30 + chance.below(40);
  }
  made.runs = 2 + chance.below(4);
  made.kills = chance.below(6);
  made.restarts = chance.one_in(3) ? 1 + chance.below(2) : 0;
  made.kill_time = chance.one_in(2) ? 60ms : 250ms;
  made.look_time = chance.one_in(2) ? 20ms : 60ms;
  return made;
}

class recovery_play {
public:
  recovery_play(std::uint64_t seed,
                const std::function<void(std::string_view)>& on_note)
    : plan_(make_recovery_plan(seed)),
      world_(seed),
      place_(place_kind::memory, [this] { return world_.now(); }),
      chance_(seed * 3 + 19),
      step_chance_(seed * 5 + 23),
      kills_left_(plan_.kills),
      restarts_left_(plan_.restarts) {
    world_.behave(plan_.programs.habits);
    world_.on_note = on_note;
    told_.lease = plan_.programs.options.run_lease;
    told_.has_faults = plan_.has_faults;
    for (std::size_t number = 0; number < plan_.runs; ++number) {
      planned_run run;
      run.key = {"press", "u" + std::to_string(number), "s"};
      run.tree = chance_.below(counted_trees().size());
      told_.runs.push_back(std::move(run));
    }
  }

  simulation_outcome perform() {
    simulation_outcome outcome;
    try {
      run_all(outcome.findings);
      outcome.hash = world_.hash();
      recovery_verdict last(told_);
      add(outcome.findings, last.judge());
      add(outcome.findings, last.compare(read_again(outcome.findings)));
    } catch (const stuck& why) {
      outcome.findings.emplace_back(why.what());
      add(outcome.findings, recovery_verdict(told_).judge());
      // Programs that wait for something cannot be shut down, so they are
      // leaked.
      for (auto& each : seats_)
        static_cast<void>(each.on.release());
      static_cast<void>(last_.release());
      is_stuck_ = true;
    }
    count(outcome);
    return outcome;
  }

  bool is_stuck() const noexcept { return is_stuck_; }

private:
  // The place of a program. Another one follows when it has ended.
  struct seat {
    std::unique_ptr<program> on;
    std::uint64_t id = 0;
  };

  // A request to end the program of a seat.
  struct wish {
    std::size_t seat = 0;
    bool dies = false;
  };

  static void add(std::vector<std::string>& all,
                  std::vector<std::string> more) {
    for (auto& each : more)
      all.push_back(std::move(each));
  }

  void open(seat& at) {
    at.id = plan_.programs.seed * 31 + ++opened_;
    if (is_calm_)
      return open_calm(at);
    at.on = std::make_unique<program>(
      world_, told_.stored, plan_.programs, place_, at.id);
  }

  void open_calm(seat& at) {
    auto calm = plan_.programs;
    calm.store = {};
    calm.store.keeps_dead_holders = true;
    at.on
      = std::make_unique<program>(world_, told_.stored, calm, place_, at.id);
  }

  // Two programs that look dead to each other may take a run from each other
  // again and again. After many attempts all stores work and take no time.
  void calm_down() {
    is_calm_ = true;
    for (auto& each : seats_)
      if (each.on)
        each.on->recover();
  }

  // Null if the program has ended or is shutting down.
  program* program_of(std::size_t number, std::uint64_t id) const {
    const auto& at = seats_[number];
    return at.on && at.id == id && at.on->open_runtime() != nullptr
             ? at.on.get()
             : nullptr;
  }

  outside_ptr outside_of(std::uint64_t id) {
    return std::make_shared<simulated_outside>(world_, told_, step_chance_, id);
  }

  // -- order ----

  void run_all(std::vector<std::string>& wrong) {
    seats_.resize(plan_.programs.runtimes);
    for (auto& each : seats_)
      open(each);
    for (std::size_t run = 0; run < told_.runs.size(); ++run)
      start_later(run);
    for (std::size_t number = 0; number < seats_.size(); ++number)
      look_later(number);
    end_one_later();
    while (!is_over()) {
      world_.run_until([this] { return is_over() || wish_; });
      if (const auto wanted = std::exchange(wish_, {})) {
        auto& at = seats_[wanted->seat];
        ++(wanted->dies ? told_.stored.crashes : told_.stored.restarts);
        world_.note(wanted->dies ? "crash" : "restart");
        add(wrong, at.on->end(wanted->dies));
        at.on.reset();
        open(at);
      }
    }
    has_stopped_ = true;
    for (auto& each : seats_) {
      each.on->recover();
      add(wrong, each.on->end(false));
      each.on.reset();
    }
    // Runs the jobs of abandoned tools and of models that answer late.
    world_.run_until([this] { return world_.jobs() == 0; });
  }

  bool is_over() {
    return to_start_ == 0 && under_way_ == 0 && !has_open_run();
  }

  // Reads the marks of the changes that are new.
  bool has_open_run() {
    const auto& written = told_.stored.written;
    for (; seen_ < written.size(); ++seen_)
      for (const auto& mark : written[seen_].runs)
        read(mark);
    return !open_.empty();
  }

  void read(const run_mark& mark) {
    const auto found = open_.find(mark.invocation_id);
    const auto is_held_by = [&](const std::string& holder) {
      return found != open_.end() && found->second == holder;
    };
    if (!mark.opens) {
      if (found != open_.end()
          && (mark.holder.empty() || is_held_by(mark.holder)))
        open_.erase(found);
    } else if (!mark.held_by || is_held_by(*mark.held_by)) {
      open_[mark.invocation_id] = mark.holder;
    }
  }

  void end_one_later() {
    if (kills_left_ + restarts_left_ == 0)
      return;
    const auto wait = chance_.time(plan_.kill_time) + 1ms;
    world_.after(wait, [this] {
      if (has_stopped_)
        return;
      if (!wish_) {
        const bool dies
          = restarts_left_ == 0 || (kills_left_ > 0 && chance_.one_in(2));
        --(dies ? kills_left_ : restarts_left_);
        wish_ = wish{chance_.below(seats_.size()), dies};
      }
      end_one_later();
    });
  }

  // -- runs ----

  void start_later(std::size_t run) {
    ++to_start_;
    world_.after(chance_.time(60ms),
                 [this, run] { create(run, chance_.below(seats_.size())); });
  }

  // A run whose program ends before its session is created never starts.
  void create(std::size_t run, std::size_t number) {
    auto& at = seats_[number];
    if (!at.on || at.on->open_runtime() == nullptr) {
      --to_start_;
      start_later(run);
      return;
    }
    const create_request request(told_.runs[run].key);
    at.on->open_runtime()->sessions().create(request).then(
      [this, run, number, id = at.id](result<session> made) {
        world_.note(made ? "created" : "not created");
        if (!made) {
          --to_start_;
          return;
        }
        world_.after(0ms, [this, run, number, id] { start(run, number, id); });
      });
  }

  // Another job may look between any two calls of a program whether all is
  // over. So a start, and a recovery below, counts until its run does.
  void start(std::size_t run, std::size_t number, std::uint64_t id) {
    if (auto* const on = program_of(number, id))
      start(*on, run, number, id);
    --to_start_;
  }

  void
  start(program& on, std::size_t run, std::size_t number, std::uint64_t id) {
    auto& planned = told_.runs[run];
    const auto& tree = counted_trees()[planned.tree];
    const auto root = tree.make(outside_of(id));
    user_message message("go", tree.delta);
    const auto started = on.keep(
      on.open_runtime()->run(root, planned.key, std::move(message), options()));
    planned.id = started->invocation_id();
    world_.note("run " + planned.id + " of " + tree.name);
    follow(*started, number, {.run = run, .program = id});
  }

  void recover(std::size_t run, std::size_t number, std::uint64_t id) {
    if (auto* const on = program_of(number, id))
      recover(*on, run, number, id);
    --under_way_;
  }

  void
  recover(program& on, std::size_t run, std::size_t number, std::uint64_t id) {
    const auto& planned = told_.runs[run];
    const auto root = counted_trees()[planned.tree].make(outside_of(id));
    world_.note("recover " + planned.id);
    const auto started = on.keep(
      on.open_runtime()->recover(root, planned.key, planned.id, options()));
    follow(*started, number, {.run = run, .program = id, .recovers = true});
  }

  static run_options options() {
    run_options chosen;
    chosen.recoveries_max = 1'000'000;
    return chosen;
  }

  void
  follow(troupe::run& started, std::size_t number, attempt_record attempt) {
    auto& record = told_.attempts.emplace_back(std::move(attempt));
    if (told_.attempts.size() == attempts_max)
      calm_down();
    ++under_way_;
    started.wait().then([this, number, &record](result<void> ended) {
      record.code = ended ? "ok" : std::string(to_string(ended.error().code()));
      if (!ended)
        record.reason = ended.error().message();
      note_state(number, record);
      world_.note("end of attempt " + record.code + ": " + record.reason);
      --under_way_;
    });
  }

  // Notes whether the program that answers is about to end.
  template <class Record>
  void note_state(std::size_t number, Record& record) const {
    const auto& at = seats_[number];
    const bool is_there = at.on && at.id == record.program;
    record.was_closing = !is_there || at.on->is_closing();
    record.was_dead = is_there && at.on->is_dead();
  }

  // -- lists ----

  void look_later(std::size_t number) {
    world_.after(chance_.time(plan_.look_time) + 1ms, [this, number] {
      if (!has_stopped_)
        look(number);
    });
  }

  void look(std::size_t number) {
    auto& at = seats_[number];
    if (!at.on || at.on->open_runtime() == nullptr)
      return look_later(number);
    auto& record = told_.lists.emplace_back();
    record.program = at.id;
    record.with_own = chance_.one_in(2);
    record.before = told_.stored.written.size();
    ++under_way_;
    unfinished_options wanted;
    wanted.with_own = record.with_own;
    at.on->open_runtime()
      ->unfinished("press", wanted)
      .then([this, number, &record](result<std::vector<unfinished_run>> found) {
        record.after = told_.stored.written.size();
        record.code
          = found ? "ok" : std::string(to_string(found.error().code()));
        note_state(number, record);
        world_.note("list " + record.code);
        if (found) {
          record.found = std::move(*found);
          recover_some(number, record);
        }
        --under_way_;
        look_later(number);
      });
  }

  // Recovers the runs that are free, and sometimes tries others.
  void recover_some(std::size_t number, const list_record& list) {
    for (const auto& each : list.found) {
      if (!each.is_free && !chance_.one_in(8))
        continue;
      for (std::size_t run = 0; run < told_.runs.size(); ++run)
        if (told_.runs[run].id == each.invocation_id) {
          ++under_way_;
          world_.after(chance_.time(4ms),
                       [this, run, number, id = list.program] {
                         recover(run, number, id);
                       });
        }
    }
  }

  // -- the end ----

  // Reads the sessions with a new program that was no part of the simulation.
  std::map<session_key, session> read_again(std::vector<std::string>& wrong) {
    auto calm = plan_.programs;
    calm.store = {};
    last_ = std::make_unique<program>(
      world_, told_.stored, calm, place_, plan_.programs.seed * 31 + ++opened_);
    std::map<session_key, session> found;
    std::size_t waited = 0;
    for (const auto& each : told_.runs) {
      ++waited;
      last_->open_runtime()->sessions().get(each.key).then(
        [&waited, &found, key = each.key](result<session> got) {
          --waited;
          if (got)
            found.emplace(key, std::move(*got));
        });
    }
    world_.run_until([&waited] { return waited == 0; });
    add(wrong, last_->end(false));
    last_.reset();
    return found;
  }

  void count(simulation_outcome& outcome) const {
    outcome.calls = told_.lists.size() + told_.attempts.size();
    outcome.runs = told_.runs.size();
    outcome.changes = told_.stored.written.size();
    outcome.steps = world_.steps();
    outcome.restarts = told_.stored.crashes + told_.stored.restarts;
    outcome.failures = told_.stored.failed_commits + told_.stored.lost_answers;
    std::map<std::string, std::size_t> answers;
    for (const auto& each : told_.attempts)
      ++answers[(each.recovers ? "recovery " : "start ") + each.code];
    for (const auto& each : told_.lists)
      ++answers["runs " + each.code];
    for (const auto& [answer, times] : answers)
      outcome.answers.push_back(answer + " " + std::to_string(times));
  }

  const recovery_plan plan_;
  world world_;
  recovery_history told_;
  shared_place place_;
  dice chance_;
  dice step_chance_; // Used by the steps of agents.
  std::vector<seat> seats_;
  std::unique_ptr<program> last_;
  std::optional<wish> wish_;
  std::size_t kills_left_;
  std::size_t restarts_left_;
  std::size_t to_start_ = 0;  // Runs that are still to be started.
  std::size_t under_way_ = 0; // Attempts and lists without an answer.
  std::map<std::string, std::string> open_; // Open runs and their holders.
  std::size_t seen_ = 0; // Number of changes whose marks were read.
  std::uint64_t opened_ = 0;
  bool is_calm_ = false;
  bool has_stopped_ = false;
  bool is_stuck_ = false;
};

} // namespace

simulation_outcome
simulate_recoveries(std::uint64_t seed,
                    const std::function<void(std::string_view)>& on_note) {
  // Runs on threads of its own, so not within the simulation.
  undisturbed_outcomes();
  auto* played = new recovery_play(seed, on_note);
  auto outcome = played->perform();
  // A stuck simulation is leaked, because its programs were.
  if (!played->is_stuck())
    delete played;
  return outcome;
}

simulation_outcome simulate_recoveries_twice(std::uint64_t seed) {
  auto first = simulate_recoveries(seed);
  const auto again = simulate_recoveries(seed);
  if (first.findings.empty() && first.hash != again.hash)
    first.findings.emplace_back("the seed does not replay: two histories");
  return first;
}

} // namespace troupe::testing

// The model and the runtime get the same calls, one after another. Their
// answers and their contents must be equal.

#include "session_model.hpp"

#include "troupe/core/rewind.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/open_store.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../../outcome.hpp"
#include "../../random.hpp"
#include "../../stores/temporary_folder.hpp"
#include "random_changes.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <array>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(model, *boost::unit_test::timeout(300))

namespace {

constexpr std::array apps = {"press", "shop"};
constexpr std::array users = {"ann", "bob"};
constexpr std::array ids = {"a", "b", "c", "fork"};
constexpr std::array names = {"n", "list", "object", "k", "__own", ""};
constexpr std::array prefixes = {"", "", "user:", "app:", "temp:"};

// -- answers as text ----

json shown(bool answer) {
  return answer;
}

json shown(const json& answer) {
  return answer;
}

json shown(const event_ptr& said) {
  return without_records(*said);
}

template <class Session>
json shown_session(const Session& held, json state) {
  auto events = json::array();
  for (std::size_t index = 0; index < std::size(held.events); ++index)
    events.push_back(shown(held.events[index]));
  return {{"key", to_string(held.key)},
          {"state", std::move(state)},
          {"events", std::move(events)},
          {"updated", held.last_update_time.time_since_epoch().count()},
          {"revision", held.revision},
          {"earlier", held.is_earlier}};
}

json shown(const session_view& held) {
  return shown_session(held, held.state);
}

json shown(const session& held) {
  session_view same{held.key(),
                    held.state().all(),
                    {},
                    held.last_update_time(),
                    held.revision(),
                    held.is_earlier()};
  for (std::size_t index = 0; index < held.events().size(); ++index)
    same.events.push_back(held.events()[index]);
  return shown(same);
}

template <class Page>
json shown_page(const Page& page) {
  auto rows = json::array();
  for (const auto& row : page.sessions)
    rows.push_back(shown(row));
  return {{"rows", std::move(rows)}, {"more", !page.next_cursor.empty()}};
}

json shown(const page_view& page) {
  return shown_page(page);
}

json shown(const session_page& page) {
  return shown_page(page);
}

// Replaces bytes that are not UTF-8, so that the text can be shown.
std::string readable(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class T>
std::string text(const result<T>& answer) {
  return answer ? readable(shown(*answer)) : code_of(answer);
}

// -- model and runtime ----

// Limits are small, so that random values reach them.
constexpr size_limits limits{120, 700};
constexpr std::size_t remembered = 12;

class twins {
public:
  twins(std::uint64_t seed,
        runtime_options options,
        model_options rules = {.limits = limits})
    : random_(seed),
      time_(std::make_shared<simulated_environment>(seed)),
      model_(rules) {
    options.environment = time_;
    options.append_wait_max = {}; // The test's steps move the clock.
    options.limits = limits;
    options.remembered_ids = remembered;
    // Sessions become idle all the time. Over a store they are loaded again.
    options.live_sessions_max = 2;
    options.events_kept = 4;
    runtime_ = runtime::open(std::move(options)).value();
  }

  /// Returns the first difference as text, or nothing.
  std::string take_steps(std::size_t count) {
    for (step_ = 0; step_ < count && difference_.empty(); ++step_) {
      if (random_.one_in(3))
        time_->advance(std::chrono::microseconds(random_.below(3'000'000)));
      model_.now = time_->now();
      take_step();
      if (random_.one_in(25))
        compare_all();
    }
    compare_all();
    return difference_;
  }

  /// Number of answers of the runtime with this code: `ok`, `conflict`, ….
  std::size_t count_of(const std::string& code) const {
    const auto found = codes_.find(code);
    return found == codes_.end() ? 0 : found->second;
  }

  /// Shuts the runtime down, then compares the revisions of stored scopes with
  /// those of the model.
  void compare_revisions(store& kept) {
    runtime_->shut_down().value();
    for (const auto* app : apps) {
      BOOST_TEST(stored_revision(kept, {app}) == model_.app_revision(app));
      for (const auto* user : users)
        BOOST_TEST(stored_revision(kept, {app, user})
                   == model_.user_revision(app, user));
    }
    BOOST_TEST(kept.check({}).value().empty());
  }

private:
  session_service& sessions() { return runtime_->sessions(); }

  // Only the first difference counts; later ones follow from it.
  template <class Real, class Model>
  void compare(const std::string& call, const Real& real, const Model& model) {
    ++codes_[code_of(real)];
    if (difference_.empty() && text(real) != text(model))
      difference_
        = fmt::format("step {}: {}\n  runtime: {} {}\n  model:   {} {}",
                      step_,
                      call,
                      text(real),
                      reason_of(real),
                      text(model),
                      reason_of(model));
  }

  void take_step() {
    switch (random_.below(23)) {
    case 0:
    case 1:
    case 2:
      return create();
    case 3:
      return get();
    case 4:
      return list();
    case 5:
      return random_.one_in(2) ? remove() : get();
    case 6:
      return random_.one_in(6) ? remove_user() : get_states();
    case 7:
    case 8:
      return fork();
    case 9:
      return rewind();
    default:
      return append();
    }
  }

  // -- random requests ----

  std::string mangled(std::string name) {
    if (random_.one_in(40))
      name = " " + name + "\t";
    if (random_.one_in(150))
      name = random_.pick(std::array{"", " ", "\xff"});
    return name;
  }

  session_key any_key() {
    return {mangled(random_.pick(apps)),
            mangled(random_.pick(users)),
            mangled(random_.pick(ids))};
  }

  std::string state_key() {
    const auto known = random_.one_in(60) ? names.size() : 4;
    return std::string(random_.pick(prefixes)) + names[random_.below(known)];
  }

  // Returns the current value most often, so that the comparison succeeds.
  json expected_of(const session_key& key, const std::string& name) {
    if (random_.one_in(3))
      return random_.one_in(2) ? json() : random_.data(1);
    const auto held = model_.get(key);
    return held ? held->state.value(name, json()) : json();
  }

  event any_event(const session_key& key) {
    if (!sent_.empty() && random_.one_in(6)) {
      auto again = sent_[random_.below(sent_.size())];
      if (random_.one_in(4))
        again.author += "!";
      if (random_.one_in(4))
        record_any(again, key);
      return again;
    }
    event said;
    said.author = random_.pick(std::array{"user", "writer"});
    if (random_.one_in(2))
      said.content = user_text(random_.text(30));
    if (random_.one_in(80))
      said.content = user_text(std::string(800, 'x'));
    if (random_.one_in(2))
      said.id = fmt::format("e{}", random_.below(1'000'000));
    if (random_.one_in(100))
      said.id = random_.pick(std::array{" ", "\xff"});
    if (random_.one_in(4))
      said.invocation_id = "i1";
    if (random_.one_in(4))
      said.timestamp = time_->now()
                       + std::chrono::microseconds(random_.below(8'000'000))
                       - std::chrono::seconds(4);
    said.partial = random_.one_in(30);
    said.actions.escalate = random_.one_in(10);
    if (random_.one_in(10))
      said.branch = "root.left";
    for (auto left = random_.below(5); left > 0; --left)
      record_any(said, key);
    return said;
  }

  void record_any(event& said, const session_key& key) {
    const auto name = state_key();
    const auto kind = any_kind(random_, name);
    auto expected = kind == operation_kind::compare_and_set
                      ? expected_of(key, name)
                      : json();
    // Invalid keys and operands are refused here.
    static_cast<void>(said.actions.state_delta.record(
      name, kind, any_operand(random_, kind), std::move(expected)));
  }

  // -- calls ----

  // A key that only forks have is left to them most often.
  void create() {
    auto key = any_key();
    if (key.id == ids.back() && !random_.one_in(8))
      key.id = ids.front();
    create_request request{key.app, key.user, key.id};
    for (auto left = random_.below(4); left > 0; --left)
      request.state[state_key()]
        = random_.one_in(20) ? json(std::string(150, 'x')) : random_.data(2);
    if (random_.one_in(60))
      request.state = json::array();
    const auto real = sessions().create(request).get();
    if (real)
      request.id = real->key().id; // The requested id may have been blank.
    compare("create " + to_string(key) + " with " + readable(request.state),
            real,
            model_.create(request));
  }

  // A revision of the session, or the one after the newest.
  std::uint64_t any_revision(const session_key& key) {
    const auto held = model_.get(key, {.num_recent_events = 0});
    return random_.below((held ? held->revision : 0) + 2);
  }

  get_options any_options(const session_key& key) {
    get_options options;
    if (random_.one_in(2))
      options.at = any_revision(key);
    if (random_.one_in(3))
      options.num_recent_events = random_.below(8);
    if (random_.one_in(4))
      options.after
        = time_->now() - std::chrono::microseconds(random_.below(9'000'000));
    return options;
  }

  void get() {
    const auto key = any_key();
    const auto options = any_options(key);
    compare(fmt::format("get {} at {}",
                        to_string(key),
                        options.at ? std::to_string(*options.at) : "the end"),
            sessions().get(key, options).get(),
            model_.get(key, options));
  }

  // The model gets the event that names the origin from the runtime, which
  // chooses its id and time.
  void fork() {
    const auto key = any_key();
    auto id = mangled(random_.one_in(3) ? random_.pick(ids) : ids.back());
    fork_options options;
    if (random_.one_in(2))
      options.at = any_revision(key);
    const auto real = sessions().fork(key, options, id).get();
    if (real)
      id = real->key().id; // The requested id may have been blank.
    auto model = model_.fork(key, options, id);
    if (real && model) {
      const auto newest
        = sessions().get(real->key(), {.num_recent_events = 1}).get().value();
      model_.append(real->key(), *newest.events().back()).value();
      model = model_.get(real->key(), {.num_recent_events = 0});
    }
    compare("fork of " + to_string(key) + " as " + id, real, model);
  }

  void rewind() {
    const auto key = any_key();
    const auto to = any_revision(key);
    std::optional<std::uint64_t> expected;
    if (random_.one_in(2))
      expected = any_revision(key);
    const auto answer
      = sessions()
          .rewind(key, rewind_target::to(to), {.expected_revision = expected})
          .get();
    const auto real = answer ? result<event_ptr>(answer->event)
                             : result<event_ptr>(answer.error());
    compare(fmt::format("rewind of {} to {}", to_string(key), to),
            real,
            rewind_model(key, to, expected, real));
  }

  result<event_ptr> rewind_model(const session_key& key,
                                 std::uint64_t to,
                                 std::optional<std::uint64_t> expected,
                                 const result<event_ptr>& real) {
    const auto held = model_.get(key);
    if (!held)
      return held.error();
    const auto from = expected.value_or(held->revision);
    if (from > held->revision)
      return error(errc::conflict, "the revision is another");
    if (to > from)
      return error(errc::not_found, "there is no such revision");
    if (to == from)
      return error(errc::invalid_argument, "nothing is to be taken back");
    event said;
    said.id = fmt::format("rewind-{}-to-{}", from, to);
    for (const auto& each : held->events)
      if (each->id == said.id)
        return each;
    if (from != held->revision)
      return error(errc::conflict, "the revision is another");
    said.author = "user";
    take_back(said, from - to);
    if (real) {
      said.timestamp = (*real)->timestamp;
      said.invocation_id = (*real)->invocation_id;
    }
    return model_.rewind(key, std::move(said));
  }

  // Reads the pages one by one; model and runtime each use their own cursors.
  void list() {
    list_request request{mangled(random_.pick(apps))};
    if (random_.one_in(2))
      request.user = mangled(random_.pick(users));
    request.limit = random_.below(5);
    if (random_.one_in(30))
      request.cursor = "page 2";
    auto same = request;
    for (;;) {
      const auto real = sessions().list(request).get();
      const auto model = model_.list(same);
      compare("list " + request.app, real, model);
      if (!real || real->next_cursor.empty())
        return;
      request.cursor = real->next_cursor;
      same.cursor = model->next_cursor;
    }
  }

  void append() {
    const auto key = any_key();
    auto said = any_event(key);
    append_options options;
    if (random_.one_in(8)) {
      const auto held = model_.get(key);
      options.expected_revision
        = (held ? held->revision : 0) + (random_.one_in(3) ? 1 : 0);
    }
    const auto before = said;
    const auto real = sessions().append_event(key, said, options).get();
    if (real) {
      // The runtime fills in these fields; the model compares the others.
      if (said.id.empty())
        said.id = (*real)->id;
      if (said.invocation_id.empty())
        said.invocation_id = (*real)->invocation_id;
      BOOST_TEST(((*real)->partial || !(*real)->id.empty()));
      BOOST_TEST(((*real)->partial || !(*real)->invocation_id.empty()));
    }
    compare("append to " + to_string(key) + " of " + readable(to_json(before)),
            real,
            model_.append(key, said, options));
    if (real && !said.partial)
      sent_.push_back(std::move(said));
  }

  void remove() {
    const auto key = any_key();
    compare("remove " + to_string(key),
            sessions().remove(key).get(),
            model_.remove(key));
  }

  void remove_user() {
    const auto key = any_key();
    compare("remove user " + key.app + "/" + key.user,
            sessions().remove_user(key.app, key.user).get(),
            model_.remove_user(key.app, key.user));
  }

  void get_states() {
    const auto key = any_key();
    compare("user state of " + key.app + "/" + key.user,
            sessions().user_state(key.app, key.user).get(),
            model_.get_user_state(key.app, key.user));
    compare("app state of " + key.app,
            sessions().app_state(key.app).get(),
            model_.get_app_state(key.app));
  }

  void compare_all() {
    for (const auto* app : apps) {
      compare("app state",
              sessions().app_state(app).get(),
              model_.get_app_state(app));
      for (const auto* user : users) {
        compare("user state",
                sessions().user_state(app, user).get(),
                model_.get_user_state(app, user));
        for (const auto* id : ids)
          compare("get",
                  sessions().get({app, user, id}).get(),
                  model_.get({app, user, id}));
      }
    }
  }

  static std::uint64_t stored_revision(store& kept, const owner_name& owner) {
    const auto found = kept.load_scope(owner).value();
    return found ? found->revision : 0;
  }

  random_source random_;
  const std::shared_ptr<simulated_environment> time_;
  session_model model_;
  std::vector<event> sent_;
  std::optional<runtime> runtime_;
  std::size_t step_ = 0;
  std::string difference_;
  std::map<std::string, std::size_t> codes_;
};

} // namespace

BOOST_DATA_TEST_CASE(the_runtime_in_memory_answers_as_the_model,
                     data::xrange(1U, 9U),
                     seed) {
  twins both(seed, {});
  BOOST_TEST(both.take_steps(2'500) == "");
  for (const auto* code : {"ok",
                           "invalid_argument",
                           "type_error",
                           "too_large",
                           "not_found",
                           "already_exists",
                           "conflict"})
    BOOST_TEST(both.count_of(code) > 0U, code);
}

BOOST_DATA_TEST_CASE(the_runtime_over_a_store_answers_as_the_model,
                     data::xrange(1U, 9U),
                     seed) {
  const auto place = make_memory_data();
  runtime_options options;
  options.store = make_memory_store(place);
  twins both(seed, std::move(options));
  BOOST_TEST(both.take_steps(1'500) == "");
  both.compare_revisions(*make_memory_store(place));
}

BOOST_DATA_TEST_CASE(the_runtime_over_sqlite_answers_as_the_model,
                     data::xrange(1U, 4U),
                     seed) {
  const temporary_folder folder;
  runtime_options options;
  const auto address = "sqlite:" + (folder.path() / "twin.db").string();
  options.store = address;
  options.durability = durability::none;
  twins both(
    seed, std::move(options), {.limits = limits, .keeps_shared_state = true});
  BOOST_TEST(both.take_steps(1'000) == "");
  both.compare_revisions(*open_store(address).value());
}

// Shows that the comparison can fail.
BOOST_AUTO_TEST_CASE(a_model_with_other_rules_is_told_apart) {
  twins forgetful(1, {}, {.limits = limits, .remembered_ids = 3});
  BOOST_TEST(forgetful.take_steps(2'500).starts_with("step "));
  twins generous(
    1, {}, {.limits = {limits.value_bytes_max + 40, limits.event_bytes_max}});
  BOOST_TEST(generous.take_steps(2'500).find("too_large") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

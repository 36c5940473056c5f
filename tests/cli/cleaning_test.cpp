// `troupe apps`, `troupe users` and `troupe state`, and `--remove` of the
// commands that make apps of their own.

#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(cleaning)

namespace {

struct filled_store : stored_sessions {
  filled_store() {
    create("press", "ann", R"({"user:k": 1, "app:n": 2, "own": 3})", "s1");
    create("press", "ann");
    create("press", "bob");
    create("radio", "ann");
  }

  void create(const std::string& app,
              const std::string& user,
              const std::string& state = "{}",
              const std::string& session = {}) const {
    words options{"--app", app, "--user", user, "--state", state};
    if (!session.empty())
      options = joined(options, {"--session", session});
    BOOST_REQUIRE(run("create", options).code == 0);
  }

  ended call(const words& command, const words& options = {}) const {
    return run_program(joined(joined(command, {"--store", store()}), options));
  }

  json show(const words& command, const words& options = {}) const {
    const auto done = call(command, options);
    BOOST_TEST(done.code == 0, done.errors);
    return parse_json(done.output).value();
  }

  json apps() const { return show({"apps", "list"}).at("apps"); }

  json users(const std::string& app) const {
    return show({"users", "list"}, {"--app", app}).at("users");
  }

  /// Writes an experiment with two variants; its apps begin with `x-`.
  std::string experiment(int repeats) const {
    write("replies.json", R"({"*": [{"text": "hi", "latency_ms": 5}]})");
    write("agents.yaml", "{name: a, model: 'scripted:replies.json'}\n");
    return write("x.yaml",
                 "agent: agents.yaml\n"
                 "inputs: [go]\n"
                 "repeats: "
                   + std::to_string(repeats)
                   + "\n"
                     "at_once: 2\n"
                     "variants: {one: {}, two: {}}\n");
  }
};

// A named pipe without a reader: its writer waits when the pipe is full.
class unread_pipe {
public:
  explicit unread_pipe(std::string path) : path_(std::move(path)) {
    BOOST_REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    reader_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    constexpr int smallest = 4'096;
    BOOST_REQUIRE(::fcntl(reader_, F_SETPIPE_SZ, smallest) >= 0);
  }

  ~unread_pipe() { ::close(reader_); }

  unread_pipe(const unread_pipe&) = delete;
  unread_pipe& operator=(const unread_pipe&) = delete;

  const std::string& path() const { return path_; }

private:
  std::string path_;
  int reader_ = -1;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(apps_and_users_are_listed_page_by_page, filled_store) {
  BOOST_TEST(apps() == json::array({"press", "radio"}));
  BOOST_TEST(users("press") == json::array({"ann", "bob"}));
  BOOST_TEST(users("none") == json::array());
  const auto first
    = show({"users", "list"}, {"--app", "press", "--limit", "1"});
  BOOST_TEST(first.at("users") == json::array({"ann"}));
  const auto second = show(
    {"users", "list"},
    {"--app", "press", "--cursor", first.at("nextCursor").get<std::string>()});
  BOOST_TEST(second.at("users") == json::array({"bob"}));
  BOOST_TEST(second.at("nextCursor").is_null());
  BOOST_TEST(call({"apps", "list"}, {"--limit", "0"}).code == 1);
  BOOST_TEST(call({"users", "list"}).code == 2);
}

BOOST_FIXTURE_TEST_CASE(the_state_of_one_scope_is_shown, filled_store) {
  const auto state = [this](const words& options) {
    return show({"state", "get"}, options).at("state");
  };
  BOOST_TEST(state({"--app", "press"}) == json({{"app:n", 2}}));
  BOOST_TEST(state({"--app", "press", "--user", "ann"})
             == json({{"user:k", 1}}));
  BOOST_TEST(state(s1) == json({{"own", 3}}));
  BOOST_TEST(state({"--app", "none"}) == json::object());
  create("press", "user", R"({"own": 4})", "s");
  BOOST_TEST(state({"--app", "press", "--session", "s"}) == json({{"own", 4}}));
  const auto missing
    = call({"state", "get"}, {"--app", "press", "--session", "none"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(missing.errors.starts_with("error: not_found: "), missing.errors);
}

BOOST_FIXTURE_TEST_CASE(a_removal_needs_yes_where_it_cannot_ask, filled_store) {
  for (const auto& [command, options] :
       {std::pair(words{"apps", "remove"}, words{"--app", "press"}),
        std::pair(words{"users", "remove"},
                  words{"--app", "press", "--user", "ann"})}) {
    const auto done = call(command, options);
    BOOST_TEST(done.code == 2);
    BOOST_TEST(contains(done.errors, "--yes"), done.errors);
    BOOST_TEST(done.output == "");
  }
  BOOST_TEST(call({"users", "remove"}, {"--app", "press", "--yes"}).code == 2);
  BOOST_TEST(users("press") == json::array({"ann", "bob"}));
}

BOOST_FIXTURE_TEST_CASE(a_removal_prints_what_has_gone, filled_store) {
  BOOST_TEST(
    show({"users", "remove"}, {"--app", "press", "--user", "ann", "--yes"})
    == json(
      {{"removed", true}, {"app", "press"}, {"user", "ann"}, {"sessions", 2}}));
  BOOST_TEST(users("press") == json::array({"bob"}));
  BOOST_TEST(
    show({"apps", "remove"}, {"--app", "press", "--yes"})
    == json(
      {{"removed", true}, {"app", "press"}, {"users", 1}, {"sessions", 1}}));
  BOOST_TEST(apps() == json::array({"radio"}));
  BOOST_TEST(show({"state", "get"}, {"--app", "press"}).at("state")
             == json::object());
  // Nothing is asked where there is nothing to lose.
  BOOST_TEST(show({"apps", "remove"}, {"--app", "press"}).at("removed")
             == false);
}

BOOST_FIXTURE_TEST_CASE(a_removal_asks_on_a_terminal, filled_store) {
  const auto removed = [this](const std::string& answer) {
    program asked({"apps", "remove", "--store", store(), "--app", "press"},
                  program::screen::terminal);
    BOOST_TEST(
      asked.read_until("Remove app press with 2 users and 3 sessions? [y/N] "));
    asked.write(answer);
    return asked.wait().code;
  };
  BOOST_TEST(removed("\n") == 1);
  BOOST_TEST(removed("n\n") == 1);
  BOOST_TEST(apps() == json::array({"press", "radio"}));
  BOOST_TEST(removed("y\n") == 0);
  BOOST_TEST(apps() == json::array({"radio"}));
}

BOOST_FIXTURE_TEST_CASE(a_removal_takes_artifacts_of_a_named_store,
                        filled_store) {
  const auto folder = path() + "/files/kept/press/ann/own/a/0";
  std::filesystem::create_directories(folder);
  const words artifacts{"--artifacts", "file:" + path() + "/files", "--yes"};
  show({"users", "remove"},
       joined({"--app", "press", "--user", "ann"}, artifacts));
  BOOST_TEST(!std::filesystem::exists(folder));
}

BOOST_FIXTURE_TEST_CASE(an_experiment_removes_its_apps, filled_store) {
  const auto file = experiment(2);
  BOOST_TEST(call({"experiment"}, {file}).code == 0);
  BOOST_TEST(apps().size() == 6U);
  const auto done = call({"experiment"}, {file, "--remove"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(contains(done.errors, "removed 4 apps"), done.errors);
  BOOST_TEST(apps().size() == 6U);
  // A report that cannot be written keeps them.
  const auto kept
    = call({"experiment"}, {file, "--remove", "--json", "/dev/full"});
  BOOST_TEST(kept.code == 1);
  BOOST_TEST(contains(kept.errors, "nothing was removed; apps whose names "),
             kept.errors);
  BOOST_TEST(apps().size() == 10U);
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_experiment_removes_its_apps,
                        filled_store) {
  program running(
    {"experiment", experiment(100'000), "--remove", "--store", store()},
    program::screen::terminal);
  // The time left is shown once a run has ended.
  BOOST_REQUIRE(running.read_until(" s left"));
  running.send(SIGINT);
  const auto end = running.wait();
  BOOST_TEST(end.code == 130);
  BOOST_TEST(contains(end.output, "(ended early)"), end.output);
  BOOST_TEST(contains(end.output, "removed "), end.output);
  BOOST_TEST(apps() == json::array({"press", "radio"}));
}

BOOST_FIXTURE_TEST_CASE(a_second_signal_names_the_apps_that_are_left,
                        filled_store) {
  const unread_pipe report(path() + "/report");
  program running({"experiment",
                   experiment(2),
                   "--remove",
                   "--store",
                   store(),
                   "--json",
                   report.path()});
  // The text is printed before the file is written.
  BOOST_REQUIRE(running.read_until("\ntwo "));
  running.send(SIGINT);
  const auto end = running.end_by(SIGTERM);
  BOOST_TEST(end.code == 143);
  const auto found = apps();
  BOOST_TEST_REQUIRE(found.size() == 6U);
  // The third name is the first of the experiment: x-RUN-one-1-1.
  const auto app = found.at(2).get<std::string>();
  const auto prefix = app.substr(0, app.find('-', 2) + 1);
  BOOST_TEST(contains(end.errors,
                      "error: cancelled: ended before the apps were removed; "
                      "apps whose names begin with '"
                        + prefix + "' may be left: troupe apps list --store '"
                        + store() + "' "),
             end.errors);
  BOOST_TEST(std::count_if(found.begin(),
                           found.end(),
                           [&prefix](const json& name) {
                             return name.get<std::string>().starts_with(prefix);
                           })
             == 4);
}

namespace {

// Options of an experiment that begins at the session s1.
const std::vector<std::string> from_s1{
  "--from", "s1", "--app", "press", "--user", "ann", "--remove"};

// Ids of the sessions of the user ann.
std::vector<std::string> ids_in(const filled_store& place) {
  std::vector<std::string> found;
  const auto page
    = place.show({"sessions", "list"}, {"--app", "press", "--user", "ann"});
  for (const auto& row : page.at("sessions"))
    found.push_back(row.at("id").get<std::string>());
  std::ranges::sort(found);
  return found;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(an_experiment_removes_its_forks_alone, filled_store) {
  create("press", "ann", "{}", "x-of-another");
  const auto before = ids_in(*this);
  const auto file = experiment(2);
  const auto done = call({"experiment", file}, from_s1);
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(contains(done.errors, "removed 4 forks"), done.errors);
  BOOST_TEST(ids_in(*this) == before);
  BOOST_TEST(apps() == json::array({"press", "radio"}));
  const auto kept
    = call({"experiment", file}, joined(from_s1, {"--json", "/dev/full"}));
  BOOST_TEST(kept.code == 1);
  BOOST_TEST(contains(kept.errors, "nothing was removed; forks whose ids "),
             kept.errors);
  BOOST_TEST(ids_in(*this).size() == before.size() + 4);
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_experiment_removes_its_forks,
                        filled_store) {
  const auto before = ids_in(*this);
  program running(
    joined({"experiment", experiment(100'000), "--store", store()}, from_s1),
    program::screen::terminal);
  BOOST_REQUIRE(running.read_until(" s left"));
  running.send(SIGINT);
  const auto end = running.wait();
  BOOST_TEST(end.code == 130);
  BOOST_TEST(contains(end.output, "(ended early)"), end.output);
  BOOST_TEST(contains(end.output, "removed "), end.output);
  BOOST_TEST(ids_in(*this) == before);
}

BOOST_FIXTURE_TEST_CASE(a_second_signal_names_the_forks_that_are_left,
                        filled_store) {
  const unread_pipe report(path() + "/report");
  program running(joined({"experiment", experiment(2), "--store", store()},
                         joined(from_s1, {"--json", report.path()})));
  BOOST_REQUIRE(running.read_until("\ntwo "));
  running.send(SIGINT);
  const auto end = running.end_by(SIGTERM);
  BOOST_TEST(end.code == 143);
  const auto found = ids_in(*this);
  const auto fork = std::ranges::find_if(
    found, [](const auto& id) { return id.starts_with("x-"); });
  BOOST_TEST_REQUIRE((fork != found.end()));
  const auto place = "--store '" + store() + "' --app 'press' --user 'ann'";
  BOOST_TEST(contains(end.errors,
                      "error: cancelled: ended before the forks were removed; "
                      "forks whose ids begin with '"
                        + fork->substr(0, fork->find('-', 2) + 1)
                        + "' may be left: troupe sessions list " + place),
             end.errors);
}

BOOST_FIXTURE_TEST_CASE(a_load_test_removes_its_apps, filled_store) {
  const words small{"--appends", "50", "--sessions", "4", "--users", "2"};
  BOOST_TEST(call({"load"}, joined(small, {"--remove"})).code == 0);
  BOOST_TEST(apps() == json::array({"press", "radio"}));
  BOOST_TEST(call({"load"}, small).code == 0);
  BOOST_TEST(apps().size() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing

// `troupe runs`: open runs of programs that run, were killed, or were stopped.

#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include <csignal>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(runs_command)

namespace {

namespace data = boost::unit_test::data;

struct slow_agent : stored_sessions {
  slow_agent() {
    write("replies.json",
          R"({"echo": ["${input}"],
              "slow": [{"text": "late", "latency_ms": 3600000}]})");
    write("slow.yaml",
          "agent_class: SequentialAgent\nname: both\nsub_agents:\n"
          "- {name: echo, model: 'scripted:replies.json'}\n"
          "- {name: slow, model: 'scripted:replies.json'}\n");
    write("fast.yaml", "name: echo\nmodel: scripted:replies.json\n");
  }

  words run_line(const std::string& file) const {
    return {"run",
            path() + "/" + file,
            "--store",
            store(),
            "--app",
            "press",
            "--user",
            "ann",
            "--session",
            "s1",
            "--input",
            "hi"};
  }

  ended list(const words& options = {}) const {
    return run_program(joined({"runs", "--store", store()}, options));
  }

  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open((path() + "/troupe.db").c_str(), &database)
                  == SQLITE_OK);
    BOOST_TEST(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr)
               == SQLITE_OK);
    sqlite3_close(database);
  }

  std::vector<json> rows(const words& options = {}) const {
    const auto shown = list(joined({"--json"}, options));
    BOOST_TEST(shown.code == 0, shown.errors);
    return objects(shown.output).at(0).at("runs").get<std::vector<json>>();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_store_without_open_runs_says_so, slow_agent) {
  const auto empty = list();
  BOOST_TEST(empty.code == 0);
  BOOST_TEST(empty.output == "");
  BOOST_TEST(empty.errors == "no open runs\n");
  BOOST_TEST(run_program(run_line("fast.yaml")).code == 0);
  BOOST_TEST(list().errors == "no open runs\n");
  BOOST_TEST(rows().empty());
}

BOOST_FIXTURE_TEST_CASE(a_run_is_listed_while_its_program_runs, slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  const auto found = rows();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  const auto& row = found.front();
  BOOST_TEST(row.at("app") == "press");
  BOOST_TEST(row.at("user") == "ann");
  BOOST_TEST(row.at("session") == "s1");
  BOOST_TEST(row.at("agent") == "both");
  BOOST_TEST(row.at("run").get<std::string>().starts_with("e-"));
  BOOST_TEST(row.at("free") == false);
  BOOST_TEST(row.at("silentMs").is_number());
  BOOST_TEST(rows({"--app", "radio"}).empty());
  const auto shown = list({"--app", "press"});
  BOOST_TEST(contains(shown.output, "press/ann/s1  both  began 2"),
             shown.output);
  BOOST_TEST(contains(shown.output, "its process was heard of "), shown.output);
  BOOST_TEST(shown.errors == "");
  running.end_by(SIGINT);
}

BOOST_FIXTURE_TEST_CASE(a_run_of_a_killed_program_is_listed, slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  running.end_by(SIGKILL);
  const auto found = rows();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found.front().at("agent") == "both");
  BOOST_TEST(found.front().at("holder") != "");
  // The lease has not ended yet, but the process has.
  BOOST_TEST(found.front().at("silentMs").is_number());
  BOOST_TEST(found.front().at("free") == true);
  const auto shown = list().output;
  BOOST_TEST(contains(shown, "  free: its process was last heard of "), shown);
  BOOST_TEST(run_program({"store", "check", "--store", store()}).code == 0);
  BOOST_TEST(run("delete", s1).code == 0);
  BOOST_TEST(rows().empty());
}

// A signal cancels the run, as its holder does.
BOOST_DATA_TEST_CASE_F(slow_agent,
                       a_run_that_a_signal_cancels_is_closed,
                       data::make({SIGINT, SIGTERM})) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  running.end_by(sample);
  BOOST_TEST(list().errors == "no open runs\n");
}

BOOST_FIXTURE_TEST_CASE(a_run_without_a_process_is_free, slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  running.end_by(SIGKILL);
  execute("DELETE FROM run_holders");
  BOOST_TEST(rows().at(0).at("free") == true);
  BOOST_TEST(rows().at(0).at("silentMs").is_null());
  const auto shown = list();
  BOOST_TEST(
    shown.output.ends_with("  free: its process has ended or has left it\n"),
    shown.output);
  BOOST_TEST(shown.errors
             == "recover one that is free: troupe run FILE --app APP --user "
                "USER --session SESSION --recover RUN\n");
}

// -- waiting ----

BOOST_FIXTURE_TEST_CASE(a_run_waits_for_no_program_that_was_killed,
                        slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  running.end_by(SIGKILL);
  const auto next = run_program(run_line("fast.yaml"));
  BOOST_TEST(next.code == 0, next.errors);
  // It would say so behind a second.
  BOOST_TEST(!contains(next.errors, "waits"), next.errors);
}

BOOST_FIXTURE_TEST_CASE(a_run_that_waits_for_another_program_says_so_once,
                        slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  const auto id = rows().at(0).at("run").get<std::string>();
  program waiting(run_line("fast.yaml"), program::screen::terminal);
  const auto reason = " waits for run " + id + " of session press/ann/s1";
  BOOST_REQUIRE(waiting.read_until(reason));
  running.end_by(SIGINT);
  const auto done = waiting.wait();
  BOOST_TEST(done.code == 0, done.output);
  BOOST_TEST(contains(done.output, "`troupe run --recover`"), done.output);
  BOOST_TEST(done.output.find(reason) == done.output.rfind(reason),
             done.output);
}

// -- giving up ----

BOOST_DATA_TEST_CASE_F(slow_agent,
                       a_run_of_a_killed_program_is_given_up,
                       data::make({"its id", "last"})) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  const auto id = rows().at(0).at("run").get<std::string>();
  const auto which = sample == std::string("last") ? "last" : id;
  const auto early = list({"--close", which});
  BOOST_TEST(early.code == 1);
  BOOST_TEST(early.errors.starts_with("error: busy: "), early.errors);
  BOOST_TEST(contains(early.errors, "try again after "), early.errors);
  BOOST_TEST(rows().size() == 1U);
  running.end_by(SIGKILL);
  const auto closed = list({"--app", "press", "--close", which});
  BOOST_TEST(closed.code == 0, closed.errors);
  BOOST_TEST(closed.output
             == "closed run " + id + " of session press/ann/s1\n");
  BOOST_TEST(closed.errors == "");
  BOOST_TEST(rows().empty());
  // The session goes on without it.
  BOOST_TEST(run_program(run_line("fast.yaml")).code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_run_that_is_given_up_is_shown_as_json, slow_agent) {
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  running.end_by(SIGKILL);
  execute("DELETE FROM run_holders");
  const auto open = rows().at(0);
  const auto closed = list({"--json", "--close", "last"});
  BOOST_TEST(closed.code == 0, closed.errors);
  BOOST_TEST(objects(closed.output).at(0).at("closed") == open);
}

BOOST_FIXTURE_TEST_CASE(says_why_no_run_is_given_up, slow_agent) {
  const auto nothing = list({"--close", "last"});
  BOOST_TEST(nothing.code == 1);
  BOOST_TEST(nothing.errors
             == "error: not_found: there is no open run to close\n");
  program running(run_line("slow.yaml"));
  BOOST_REQUIRE(running.read_until("echo: hi\n"));
  const auto unknown = list({"--close", "e-1"});
  BOOST_TEST(unknown.code == 1);
  BOOST_TEST(unknown.errors
             == "error: not_found: there is no open run 'e-1'; `troupe runs` "
                "lists the open ones\n");
  const auto elsewhere = list({"--app", "radio", "--close", "last"});
  BOOST_TEST(elsewhere.code == 1);
  BOOST_TEST(elsewhere.errors.starts_with("error: not_found: "),
             elsewhere.errors);
  const auto active = list({"--close", "last"});
  BOOST_TEST(active.code == 1);
  BOOST_TEST(active.errors.starts_with("error: busy: "), active.errors);
  BOOST_TEST(list({"--close"}).code == 2);
  BOOST_TEST(list({"--close", ""}).code == 2);
  running.end_by(SIGINT);
}

BOOST_FIXTURE_TEST_CASE(says_why_it_lists_nothing, slow_agent) {
  BOOST_TEST(list({"--limit", "0"}).code == 2);
  BOOST_TEST(list({"--app"}).code == 2);
  BOOST_TEST(run_program({"runs", "list"}).code == 2);
  const auto refused = run_program({"runs", "--store", "sqlite:no/such/s.db"});
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors.starts_with("error: store_failed: "),
             refused.errors);
  const auto in_memory = run_program({"runs", "--store", "memory:"});
  BOOST_TEST(in_memory.code == 0);
  BOOST_TEST(in_memory.errors == "no open runs\n");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing

#include "troupe/stores/postgres/open.hpp"
#include "troupe/stores/postgres/schema.hpp"

#include "../outcome.hpp"
#include "conformance.hpp"
#include "counting_client.hpp"
#include "postgres_server.hpp"
#include "temporary_folder.hpp"
#include <fmt/format.h>
#include <libpq-fe.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::testing::counted;

namespace {

// One server for all cases that leave it running.
postgres_server& shared_server() {
  static postgres_server server;
  return server;
}

std::string fresh_schema() {
  static int count = 0;
  return fmt::format("place_{}", ++count);
}

store_opener make_place() {
  return [url = shared_server().url(fresh_schema())] {
    return open_postgres_store(url);
  };
}

const conformance_suite
  suite("postgres_store", {.make_place = make_place}, 4, 1'000);

// A child process that counts; it writes one byte per acknowledgement.
struct counting_process {
  pid_t id = 0;
  int acknowledgements = -1;
};

counting_process start_counting(const std::string& url, int number, int times) {
  std::array<int, 2> ends{};
  BOOST_REQUIRE(pipe(ends.data()) == 0);
  const auto id = fork();
  if (id != 0) {
    close(ends[1]);
    return {id, ends[0]};
  }
  close(ends[0]);
  auto target = open_postgres_store(url);
  if (!target)
    _exit(2);
  counting_client client(**target);
  for (int i = 0; i < times; ++i) {
    if (!client.count(fmt::format("{}-{}", number, i)))
      _exit(3);
    if (write(ends[1], "+", 1) != 1)
      _exit(4);
  }
  _exit((*target)->close() ? 0 : 5);
}

int read_acknowledgements(const counting_process& from, int max) {
  int count = 0;
  std::array<char, 1> byte{};
  while (count < max && read(from.acknowledgements, byte.data(), 1) == 1)
    ++count;
  return count;
}

int exit_code(const counting_process& ended) {
  int status = 0;
  waitpid(ended.id, &status, 0);
  close(ended.acknowledgements);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Opens the place once, which creates the tables and the session.
std::string place_with_session(const postgres_server& server) {
  auto url = server.url(fresh_schema());
  auto target = open_postgres_store(url).value();
  const auto change = create_session(session);
  BOOST_REQUIRE(target->commit({&change, 1}).value().moved.empty());
  target->close().value();
  return url;
}

void execute(const std::string& url, const char* statement) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
    PQconnectdb(url.c_str()), PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> answer(
    PQexec(connection.get(), statement), PQclear);
  BOOST_REQUIRE_MESSAGE(PQresultStatus(answer.get()) == PGRES_COMMAND_OK,
                        PQresultErrorMessage(answer.get()));
}

} // namespace

BOOST_AUTO_TEST_SUITE(postgres_processes)

BOOST_AUTO_TEST_CASE(four_processes_lose_no_update) {
  constexpr int times = 100;
  const auto url = place_with_session(shared_server());
  std::vector<counting_process> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(start_counting(url, i, times));
  for (const auto& process : processes) {
    BOOST_TEST(read_acknowledgements(process, times) == times);
    BOOST_TEST(exit_code(process) == 0);
  }
  const auto target = open_postgres_store(url).value();
  for (const auto count : counting_client(*target).counts())
    BOOST_TEST(count == 4 * times);
  BOOST_TEST(target->check({}).value().empty());
}

BOOST_AUTO_TEST_CASE(a_killed_process_holds_up_nobody) {
  constexpr int times = 100;
  const auto url = place_with_session(shared_server());
  const auto victim = start_counting(url, 0, 1'000'000);
  std::vector<counting_process> others;
  for (int i = 1; i < 4; ++i)
    others.push_back(start_counting(url, i, times));
  auto acknowledged = read_acknowledgements(victim, times / 2);
  kill(victim.id, SIGKILL);
  acknowledged += read_acknowledgements(victim, 1'000'000);
  BOOST_TEST(exit_code(victim) == -SIGKILL);
  for (const auto& process : others) {
    acknowledged += read_acknowledgements(process, times);
    BOOST_TEST(exit_code(process) == 0);
  }
  const auto target = open_postgres_store(url).value();
  for (const auto count : counting_client(*target).counts()) {
    BOOST_TEST(count >= acknowledged);
    // One commit may have been stored without an acknowledgement before the
    // kill.
    BOOST_TEST(count <= acknowledged + 1);
  }
  BOOST_TEST(target->check({}).value().empty());
}

namespace {

// The lock of a process that wants the app.
std::int64_t wanted_lock(const std::string& schema) {
  return schema_lock("wanted/", schema + '\0' + app.app + '\0' + app.user);
}

} // namespace

// Another connection has the turn and keeps it. A store that contends waits for
// some time and then writes without a turn.
BOOST_AUTO_TEST_CASE(a_store_that_contends_waits_in_the_line_of_the_server) {
  const auto schema = fresh_schema();
  const auto url = shared_server().url(schema);
  const std::array stores{open_postgres_store(url).value(),
                          open_postgres_store(url).value()};
  std::uint64_t revision = 0;
  const auto write = [&revision](store& by) {
    store_change change;
    change.kind = change_kind::write;
    change.owner = app;
    change.event = event_with("", json::object({{"app:count", 1}}));
    change.app_revision = ++revision;
    BOOST_TEST(by.commit({&change, 1}).value().moved.empty());
  };
  // The first one has written the app itself, and has not yet seen the last
  // change of the second one.
  for (int round = 0; round < 2; ++round)
    for (const auto& each : stores) {
      each->changed_elsewhere().value();
      write(*each);
    }
  const std::unique_ptr<PGconn, decltype(&PQfinish)> holder(
    PQconnectdb(url.c_str()), PQfinish);
  const auto lock = schema_lock("turn/", schema);
  const auto take = fmt::format("SELECT pg_advisory_lock({})", lock);
  const auto count_waiting
    = fmt::format("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                  " AND NOT granted AND objid = {}",
                  static_cast<std::uint32_t>(lock));
  const std::unique_ptr<PGresult, decltype(&PQclear)> taken(
    PQexec(holder.get(), take.c_str()), PQclear);
  BOOST_REQUIRE_MESSAGE(PQresultStatus(taken.get()) == PGRES_TUPLES_OK,
                        PQresultErrorMessage(taken.get()));
  std::atomic<bool> has_looked = false;
  std::thread looks([&] {
    static_cast<void>(stores[0]->changed_elsewhere().value());
    static_cast<void>(stores[0]->changed_elsewhere().value());
    has_looked = true;
  });
  bool has_waited = false;
  while (!has_looked && !has_waited)
    has_waited = shared_server().ask(count_waiting) != "0";
  // Meanwhile others see what it wants.
  BOOST_TEST(shared_server().ask(
               fmt::format("SELECT count(*) FROM pg_locks WHERE granted"
                           " AND mode = 'ShareLock' AND objid = {}",
                           static_cast<std::uint32_t>(wanted_lock(schema))))
             == "1");
  looks.join();
  BOOST_TEST(has_waited);
  write(*stores[0]);
}

// Another connection is in the line for the app of the store, which has not
// seen any change of it.
BOOST_AUTO_TEST_CASE(a_store_enters_the_line_if_its_app_is_wanted) {
  const auto schema = fresh_schema();
  const auto url = shared_server().url(schema);
  const auto target = open_postgres_store(url).value();
  const std::unique_ptr<PGconn, decltype(&PQfinish)> other(
    PQconnectdb(url.c_str()), PQfinish);
  const auto turn = schema_lock("turn/", schema);
  const auto take
    = fmt::format("SELECT pg_advisory_lock_shared({}), pg_advisory_lock({})",
                  wanted_lock(schema),
                  turn);
  const std::unique_ptr<PGresult, decltype(&PQclear)> taken(
    PQexec(other.get(), take.c_str()), PQclear);
  BOOST_REQUIRE_MESSAGE(PQresultStatus(taken.get()) == PGRES_TUPLES_OK,
                        PQresultErrorMessage(taken.get()));
  std::atomic<bool> has_written = false;
  std::thread writes([&] {
    store_change change;
    change.kind = change_kind::write;
    change.owner = app;
    change.event = event_with("", json::object({{"app:count", 1}}));
    change.app_revision = 1;
    BOOST_TEST(target->commit({&change, 1}).value().moved.empty());
    has_written = true;
  });
  const auto count_waiting
    = fmt::format("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                  " AND NOT granted AND objid = {}",
                  static_cast<std::uint32_t>(turn));
  bool has_waited = false;
  while (!has_written && !has_waited)
    has_waited = shared_server().ask(count_waiting) != "0";
  writes.join();
  BOOST_TEST(has_waited);
}

BOOST_AUTO_TEST_CASE(two_processes_may_open_an_empty_database_at_once) {
  for (int round = 0; round < 5; ++round) {
    const auto url = shared_server().url(fresh_schema());
    std::vector<pid_t> processes;
    for (int i = 0; i < 3; ++i) {
      processes.push_back(fork());
      if (processes.back() == 0)
        _exit(open_postgres_store(url) ? 0 : 1);
    }
    for (const auto process : processes)
      BOOST_TEST(exit_code({process, -1}) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(postgres_failures)

BOOST_AUTO_TEST_CASE(what_is_acknowledged_survives_a_crash_of_the_server) {
  postgres_server server(postgres_server::syncing::on);
  const auto url = place_with_session(server);
  const auto target = open_postgres_store(url).value();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> acknowledged;
  std::vector<std::string> codes;
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    counting_client client(*target);
    for (int i = 0; !is_done; ++i) {
      auto id = fmt::format("event-{}", i);
      const auto counted = client.count(id);
      if (!counted)
        (void)client.load();
      const std::lock_guard guard(mutex);
      if (counted)
        acknowledged.push_back(std::move(id));
      else
        codes.push_back(code_of(counted));
      changed.notify_all();
    }
  });
  const auto wait_for = [&](std::size_t more) {
    std::unique_lock guard(mutex);
    const auto goal = acknowledged.size() + more;
    BOOST_TEST(changed.wait_for(guard, std::chrono::seconds(60), [&] {
      return acknowledged.size() >= goal;
    }));
  };
  const auto wait_for_failure = [&] {
    std::unique_lock guard(mutex);
    const auto goal = codes.size() + 1;
    BOOST_TEST(changed.wait_for(
      guard, std::chrono::seconds(60), [&] { return codes.size() >= goal; }));
  };
  wait_for(50);
  server.stop(postgres_server::stopping::immediate);
  wait_for_failure();
  server.start();
  wait_for(50);
  server.kill();
  wait_for_failure();
  server.start();
  wait_for(50);
  server.stop(postgres_server::stopping::fast);
  server.start();
  wait_for(50);
  is_done = true;
  writer.join();
  for (const auto& code : codes)
    BOOST_TEST(code == "store_failed");
  std::vector<std::string> stored;
  const auto events = target->load_events(key, 1, 1'000'000).value();
  for (const auto& said : events)
    stored.push_back(said->id);
  for (const auto& id : acknowledged)
    BOOST_TEST(std::ranges::count(stored, id) >= 1, id << " is lost");
  for (const auto count : counting_client(*target).counts())
    BOOST_TEST(count == static_cast<std::int64_t>(stored.size()));
  BOOST_TEST(target->check({}).value().empty());
  BOOST_TEST(!target->take_lost_history().has_value());
}

BOOST_AUTO_TEST_CASE(a_lost_idle_connection_is_not_noticed) {
  postgres_server server;
  const auto url = place_with_session(server);
  const auto target = open_postgres_store(url).value();
  counting_client client(*target);
  BOOST_TEST(code_of(client.count("first")) == "ok");
  server.stop(postgres_server::stopping::fast);
  server.start();
  BOOST_TEST(code_of(target->load_scope(app)) == "ok");
  server.stop(postgres_server::stopping::fast);
  server.start();
  BOOST_TEST(code_of(client.count("second")) == "ok");
  BOOST_TEST(client.counts()[0] == 2);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_away_is_a_failed_store) {
  postgres_server server;
  const auto url = place_with_session(server);
  const auto target = open_postgres_store(url).value();
  counting_client client(*target);
  server.stop(postgres_server::stopping::fast);
  const auto counted = client.count("lost");
  BOOST_TEST(code_of(counted) == "store_failed");
  BOOST_TEST(reason_of(counted).find("press/ann/s1") != std::string::npos,
             reason_of(counted));
  BOOST_TEST(code_of(target->load_scope(app)) == "store_failed");
  BOOST_TEST(code_of(target->list({.app = "press", .user = {}, .behind = {}}))
             == "store_failed");
  BOOST_TEST(code_of(target->changed_elsewhere()) == "store_failed");
  BOOST_TEST(code_of(open_postgres_store(url)) == "store_failed");
  server.start();
  BOOST_TEST(code_of(client.count("found")) == "ok");
}

BOOST_AUTO_TEST_CASE(no_reason_shows_the_password) {
  for (const auto* const url :
       {"postgres://ann:owl%20secret@127.0.0.1:1/press",
        "postgres://ann:owl%20secret@127.0.0.1:port/press",
        "postgres://ann:owl%20secret@/press?host=/nowhere",
        "postgres://ann:owl%20secret@[::1/press",
        "postgres://ann@127.0.0.1:1/press?password=owl%20secret"}) {
    const auto opened = open_postgres_store(url);
    BOOST_TEST(code_of(opened) != "ok");
    BOOST_TEST(reason_of(opened).find("secret") == std::string::npos,
               reason_of(opened));
  }
}

// The first host accepts connections and never answers; the second is the
// server.
BOOST_AUTO_TEST_CASE(each_host_of_a_service_file_has_a_limit_of_its_own) {
  const temporary_folder folder;
  const auto mute = folder.path() / "mute";
  std::filesystem::create_directory(mute);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto path = (mute / ".s.PGSQL.5432").string();
  BOOST_REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(std::begin(address.sun_path), path.size());
  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_REQUIRE(::bind(listening,
                       reinterpret_cast<const sockaddr*>(&address),
                       sizeof address)
                == 0);
  BOOST_REQUIRE(::listen(listening, 8) == 0);
  auto url = shared_server().url(fresh_schema());
  const auto first = url.find("host=") + 5;
  const auto last = url.find('&', first);
  std::ofstream(folder.path() / "services")
    << "[both]\nhost=" << mute.string() << ','
    << url.substr(first, last - first) << '\n';
  url.replace(first - 5, last - first + 5, "service=both&connect_timeout=2");
  ::setenv("PGSERVICEFILE", (folder.path() / "services").c_str(), 1);
  const auto opened = open_postgres_store(url);
  BOOST_TEST(code_of(opened) == "ok", reason_of(opened));
  ::unsetenv("PGSERVICEFILE");
  ::close(listening);
}

BOOST_AUTO_TEST_CASE(tables_of_a_newer_version_are_refused) {
  const auto url = place_with_session(shared_server());
  execute(url, "UPDATE version SET number = 99");
  const auto opened = open_postgres_store(url);
  BOOST_TEST(code_of(opened) == "corrupt");
  BOOST_TEST(reason_of(opened).find("version 99") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ids_and_keys_are_no_sql) {
  const std::string nasty = "'; DROP TABLE log; --\"\\$1%s";
  const auto target = make_place()().value();
  const owner_name owner{nasty, nasty, nasty};
  const std::array changes{
    create_session(owner),
    store_change{.kind = change_kind::append,
                 .owner = owner,
                 .event = event_with(nasty, {{nasty, nasty}}),
                 .session_revision = 1,
                 .user_revision = {},
                 .app_revision = {}}};
  BOOST_TEST(target->commit(changes).value().moved.empty());
  const auto loaded = target->load_session({nasty, nasty, nasty}, {}).value();
  BOOST_REQUIRE(loaded.has_value());
  BOOST_TEST(loaded->events.front()->id == nasty);
  BOOST_TEST(text_of(loaded->scope.keys.find(nasty)) == to_text(json(nasty)));
  BOOST_TEST(
    target->list({.app = nasty, .user = nasty, .behind = {}}).value().size()
    == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(postgres_damage)

BOOST_AUTO_TEST_CASE(a_check_names_what_is_damaged) {
  for (const auto* const damage :
       {"UPDATE state SET value = '77' WHERE key = 'count'",
        "DELETE FROM state",
        "DELETE FROM change_log WHERE session_revision = 2",
        "UPDATE change_log SET body = '{' WHERE session_revision = 2",
        "UPDATE change_log SET delta = NULL WHERE session_revision = 3",
        "UPDATE scopes SET revision = 1000",
        "DELETE FROM scopes WHERE session = '' AND usr = 'ann'"}) {
    const auto url = place_with_session(shared_server());
    const auto target = open_postgres_store(url).value();
    counting_client client(*target);
    for (int i = 0; i < 3; ++i)
      client.count(fmt::format("event-{}", i)).value();
    target->close().value();
    BOOST_TEST(open_postgres_store(url).value()->check({}).value().empty());
    execute(url, damage);
    BOOST_TEST(!open_postgres_store(url).value()->check({}).value().empty(),
               damage << " is not found");
  }
}

BOOST_AUTO_TEST_SUITE_END()

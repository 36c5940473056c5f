#include "postgres_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Searches Debian's folders, newest version first, then the PATH.
fs::path find_programs() {
  std::optional<std::pair<int, fs::path>> newest;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const auto version = std::atoi(entry.path().filename().c_str());
    const auto programs = entry.path() / "bin";
    if (fs::exists(programs / "initdb") && fs::exists(programs / "postgres")
        && (!newest || newest->first < version))
      newest.emplace(version, programs);
  }
  if (newest)
    return newest->second;
  const auto* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / "initdb")
        && fs::exists(fs::path(folder) / "postgres"))
      return folder;
  throw std::runtime_error("no PostgreSQL server is installed");
}

// The user that the server runs as when the test runs as root.
const passwd* find_user() {
  if (geteuid() != 0)
    return nullptr;
  for (const auto* const name : {"postgres", "nobody"})
    if (const auto* const found = getpwnam(name))
      return found;
  throw std::runtime_error("no user to run a PostgreSQL server as");
}

pid_t spawn(const std::vector<std::string>& command, const fs::path& output) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto* const user = find_user();
  const auto child = fork();
  if (child < 0)
    throw std::runtime_error("fork failed");
  if (child > 0)
    return child;
  const auto log
    = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (user
      && (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0
          || setuid(user->pw_uid) != 0))
    _exit(126);
  // The server is killed with the test.
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  // The server's user may have no access to the current folder.
  if (chdir("/") != 0)
    _exit(126);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string content_of(const fs::path& file) {
  std::ifstream input(file);
  return {std::istreambuf_iterator<char>(input), {}};
}

} // namespace

postgres_server::postgres_server(syncing disk,
                                 std::vector<std::string> settings)
  : programs_(find_programs()),
    disk_(disk),
    settings_(std::move(settings)) {
  make_folder();
  run_to_end({programs_ / "initdb",
              "--pgdata=" + (folder_ / "data").string(),
              "--username=postgres",
              "--auth=trust",
              "--encoding=UTF8",
              "--locale=C",
              "--no-sync"});
  start();
}

postgres_server::postgres_server(standby_of source)
  : programs_(source.primary.programs_),
    disk_(source.primary.disk_),
    settings_(source.primary.settings_) {
  make_folder();
  run_to_end({programs_ / "pg_basebackup",
              "--pgdata=" + (folder_ / "data").string(),
              "--host=" + source.primary.folder_.string(),
              "--username=postgres",
              "--checkpoint=fast",
              "--write-recovery-conf",
              "--no-sync"});
  start();
}

void postgres_server::make_folder() {
  auto name = (fs::temp_directory_path() / "troupe_pg_XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw std::runtime_error("no temporary folder for a PostgreSQL server");
  folder_ = name;
  if (const auto* const user = find_user())
    if (chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0)
      throw std::runtime_error("cannot give the server its folder");
}

void postgres_server::run_to_end(
  const std::vector<std::string>& command) const {
  const auto log = folder_ / "command.log";
  const auto child = spawn(command, log);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    throw std::runtime_error(command.front() + " failed: " + content_of(log));
}

postgres_server::~postgres_server() {
  if (running_ > 0) {
    ::kill(running_, SIGQUIT);
    wait_for_end();
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string postgres_server::url(std::string_view schema) const {
  auto url
    = fmt::format("postgres://postgres@/postgres?host={}", folder_.string());
  if (!schema.empty())
    url += fmt::format("&options=-csearch_path%3D{}", schema);
  return url;
}

std::string postgres_server::url_of_either(const postgres_server& one,
                                           const postgres_server& other,
                                           std::string_view schema) {
  return fmt::format(
    "postgres://postgres@/postgres?host={},{}&options=-csearch_path%3D{}",
    one.folder_.string(),
    other.folder_.string(),
    schema);
}

std::string postgres_server::ask(const std::string& statement) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
    PQconnectdb(url().c_str()), PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> answer(
    PQexec(connection.get(), statement.c_str()), PQclear);
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
}

void postgres_server::start() {
  std::vector<std::string> command{programs_ / "postgres",
                                   "-D",
                                   folder_ / "data",
                                   "-k",
                                   folder_,
                                   "-c",
                                   "listen_addresses=",
                                   "-c",
                                   "port=5432",
                                   "-c",
                                   disk_ == syncing::on ? "fsync=on"
                                                        : "fsync=off"};
  for (const auto& setting : settings_) {
    command.emplace_back("-c");
    command.push_back(setting);
  }
  running_ = spawn(command, folder_ / "server.log");
  wait_until_ready();
}

void postgres_server::wait_until_ready() {
  // Tries to connect until it works, as `pg_ctl --wait` does.
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto target = url();
  while (PQping(target.c_str()) != PQPING_OK) {
    if (waitpid(running_, nullptr, WNOHANG) == running_) {
      running_ = 0;
      // Shared memory of a killed server may take a moment to disappear.
      if (std::chrono::steady_clock::now() < deadline
          && content_of(folder_ / "server.log").find("still in use")
               != std::string::npos) {
        start();
        return;
      }
      throw std::runtime_error("the PostgreSQL server does not start: "
                               + content_of(folder_ / "server.log"));
    }
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the PostgreSQL server is not ready in time");
    // A server does not announce that it is ready; libpq's own tools poll, too.
    std::this_thread::sleep_for(5ms);
  }
}

void postgres_server::stop(stopping how) {
  ::kill(running_, how == stopping::fast ? SIGINT : SIGQUIT);
  wait_for_end();
}

void postgres_server::kill() {
  ::kill(running_, SIGKILL);
  wait_for_end();
}

void postgres_server::wait_for_end() {
  // The stopped log writer would outlive the server.
  if (held_ > 0)
    ::kill(std::exchange(held_, 0), SIGKILL);
  waitpid(running_, nullptr, 0);
  running_ = 0;
}

void postgres_server::hold_log() {
  held_ = std::stoi(
    ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"));
  ::kill(held_, SIGSTOP);
}

void postgres_server::catch_up_with(postgres_server& primary) {
  const auto written = primary.ask("SELECT pg_current_wal_lsn()");
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (ask("SELECT pg_last_wal_replay_lsn() >= '" + written + "'") != "t") {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the standby does not catch up");
    std::this_thread::sleep_for(5ms); // No server announces that it has.
  }
}

void postgres_server::cut_off() {
  ask("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'");
  ask("SELECT pg_reload_conf()");
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (ask("SELECT count(*) FROM pg_stat_wal_receiver") != "0") {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the standby goes on receiving");
    std::this_thread::sleep_for(5ms);
  }
}

void postgres_server::promote() {
  ask("SELECT pg_promote(true, 60)");
}

void postgres_server::back_up() {
  fs::remove_all(folder_ / "backup");
  run_to_end({programs_ / "pg_basebackup",
              "--pgdata=" + (folder_ / "backup").string(),
              "--host=" + folder_.string(),
              "--username=postgres",
              "--checkpoint=fast",
              "--no-sync"});
}

void postgres_server::restore() {
  fs::remove_all(folder_ / "data");
  fs::rename(folder_ / "backup", folder_ / "data");
}

} // namespace troupe::testing

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
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::testing {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Where Debian puts the programs, newest version first; then the PATH.
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

// Whom the server runs as, if this is root.
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
  // A test that is killed takes its server along.
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  // The folder that the test runs in may be closed to the user.
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

postgres_server::postgres_server(syncing disk)
  : programs_(find_programs()),
    disk_(disk) {
  auto name = (fs::temp_directory_path() / "troupe_pg_XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw std::runtime_error("no temporary folder for a PostgreSQL server");
  folder_ = name;
  if (const auto* const user = find_user())
    if (chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0)
      throw std::runtime_error("cannot give the server its folder");
  const auto log = folder_ / "initdb.log";
  const auto child = spawn({programs_ / "initdb",
                            "--pgdata=" + (folder_ / "data").string(),
                            "--username=postgres",
                            "--auth=trust",
                            "--encoding=UTF8",
                            "--locale=C",
                            "--no-sync"},
                           log);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) {
    const auto why = content_of(log);
    fs::remove_all(folder_);
    throw std::runtime_error("initdb failed: " + why);
  }
  start();
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
  running_ = spawn(command, folder_ / "server.log");
  wait_until_ready();
}

void postgres_server::wait_until_ready() {
  // Attempts to connect, as `pg_ctl --wait` does.
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto target = url();
  while (PQping(target.c_str()) != PQPING_OK) {
    if (waitpid(running_, nullptr, WNOHANG) == running_) {
      running_ = 0;
      // What a killed server has left behind may take a moment to go.
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
    // Nothing tells when a server is ready: libpq's own tools ask again, too.
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
  waitpid(running_, nullptr, 0);
  running_ = 0;
}

} // namespace troupe::testing

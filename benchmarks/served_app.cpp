#include "served_app.hpp"

#include "client_socket.hpp"
#include "http_load.hpp"
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

namespace bench {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view troupe_agent = R"(name: greeter
model: scripted:script.json
instruction: Answer briefly.
)";

constexpr std::string_view troupe_script = R"({"greeter": ["Hello!"]})";

constexpr std::string_view adk_agent = R"(from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        said = types.Content(role="model", parts=[types.Part(text="Hello!")])
        yield LlmResponse(content=said)


root_agent = LlmAgent(
    name="greeter",
    model=Scripted(model="scripted"),
    instruction="Answer briefly.",
)
)";

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::uint16_t port_in(std::string_view line) {
  std::uint16_t port = 0;
  const auto digits = line.substr(line.rfind(':') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (port == 0)
    throw std::runtime_error("troupe serve has not started");
  return port;
}

// A port that no program listens on.
std::uint16_t free_port() {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (::bind(taken, place, sizeof address) != 0
      || ::getsockname(taken, place, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "bind");
  ::close(taken);
  return ntohs(address.sin_port);
}

bool listens(std::uint16_t port) {
  try {
    const client_socket tried(port);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void await_server(std::uint16_t port) {
  using namespace std::chrono_literals;
  for (int left = 1'200; !listens(port); --left) {
    if (left == 0)
      throw std::runtime_error("the server of ADK has not started");
    std::this_thread::sleep_for(50ms);
  }
  send_requests(port, 1, {http_request("GET", "/health")});
}

} // namespace

app_folder::app_folder() {
  auto name = (fs::temp_directory_path() / "serve_bench_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  path_ = name;
  write(path_ / "troupe/app/root_agent.yaml", troupe_agent);
  write(path_ / "troupe/app/script.json", troupe_script);
  write(path_ / "adk/app/agent.py", adk_agent);
  write(path_ / "adk/app/__init__.py", "from . import agent\n");
}

app_folder::~app_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string app_folder::new_file() {
  return (path_ / fmt::format("{}.db", ++files_)).string();
}

served_app serve_troupe(const app_folder& folder, const std::string& store) {
  served_app made;
  made.process = std::make_unique<child_process>(std::vector<std::string>{
    TROUPE_PROGRAM, "serve", folder.troupe(), "--port", "0", "--store", store});
  made.port = port_in(made.process->read_line());
  return made;
}

std::string adk_version(const std::string& python) {
  try {
    return child_process({python,
                          "-c",
                          "try:\n"
                          "  from google.adk.version import __version__\n"
                          "  print(__version__)\n"
                          "except ImportError:\n"
                          "  pass\n"})
      .read_line();
  } catch (const std::system_error&) {
    return {};
  }
}

served_app serve_adk(const std::string& python,
                     const app_folder& folder,
                     const std::string& store) {
  served_app made;
  made.port = free_port();
  made.process = std::make_unique<child_process>(
    std::vector<std::string>{python,
                             "-m",
                             "google.adk.cli",
                             "api_server",
                             "--port",
                             std::to_string(made.port),
                             "--session_service_uri",
                             store,
                             folder.adk()},
    child_process::output::none);
  await_server(made.port);
  return made;
}

} // namespace bench

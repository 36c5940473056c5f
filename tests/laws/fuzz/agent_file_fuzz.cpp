// An agent file is accepted as a whole or refused with its position. Reading
// never opens a model or another file that it names.

#include "troupe/agents/agent.hpp"
#include "troupe/agents/agent_file.hpp"
#include "troupe/models/scripted_model.hpp"

#include "fuzz_target.hpp"
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

using namespace troupe;
using troupe::testing::expect;

namespace {

// Uses memory if possible: the fuzzer writes millions of files.
std::filesystem::path own_folder() {
  const auto base = std::filesystem::exists("/dev/shm")
                      ? std::filesystem::path("/dev/shm")
                      : std::filesystem::temp_directory_path();
  auto name = (base / "troupe-fuzz-XXXXXX").string();
  expect(::mkdtemp(name.data()) != nullptr, "a folder can be made");
  return name;
}

struct place {
  place() : folder(own_folder()) {}

  place(const place&) = delete;
  place& operator=(const place&) = delete;

  ~place() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::filesystem::path folder;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  static const place here;
  static const auto file = here.folder / "agent.yaml";
  {
    std::ofstream written(file, std::ios::binary);
    written << testing::text_of(bytes, size);
  }
  agent_file_options options;
  options.tools = make_registry({exit_loop()});
  options.open = [](const model_source&, const open_model_options&) {
    return result<model_ptr>(std::make_shared<scripted_model>(script()));
  };
  const auto read = load_agent_file(file, options);
  if (read) {
    expect(!read->name().empty(), "an agent has a name");
    return 0;
  }
  expect(read.error().code() == errc::invalid_argument
           || read.error().code() == errc::not_found,
         "the code of an error");
  if (read.error().code() == errc::invalid_argument)
    expect(read.error().message().find("agent.yaml") != std::string::npos,
           "the file is named");
  return 0;
}

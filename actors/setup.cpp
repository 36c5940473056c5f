#include "troupe/actors/setup.hpp"

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/store_queue.hpp"

namespace troupe::actors {

namespace {

// These threads wait for a disk, not for each other.
constexpr std::size_t file_threads = 4;

} // namespace

setup::setup(caf::actor_system& on,
             std::shared_ptr<troupe::environment> time_and_ids,
             setup_options chosen)
  : execution(on),
    environment(std::move(time_and_ids)),
    options(chosen),
    apps(std::make_unique<app_directory>()),
    directory(std::make_unique<session_directory>()),
    retirement(std::make_unique<actors::retirement>(*this)),
    appends(chosen.runtime_appends_max, chosen.runtime_bytes_max),
    waits(*environment, chosen.append_wait_max),
    calls(SIZE_MAX, SIZE_MAX),
    runs(chosen.runs_max, SIZE_MAX),
    tools(chosen.tool_threads, loop),
    files(file_threads, loop) {}

setup::~setup() = default;

} // namespace troupe::actors

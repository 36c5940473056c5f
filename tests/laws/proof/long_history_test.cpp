// A million calls of many threads, checked in pieces; rare orders need long
// histories. `TROUPE_PROOF_OPERATIONS` sets the number of calls,
// `TROUPE_PROOF_SEED` the seed.

#include "troupe/runtime/runtime.hpp"

#include "../../stores/temporary_folder.hpp"
#include "history.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(long_histories, *boost::unit_test::timeout(1'800))

namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const auto* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
    .count();
}

// Uses one app after another on the same runtimes. The users of a checked app
// are removed, which frees its memory. Several runtimes share the place.
std::string before_colon(const std::string& address) {
  return address.substr(0, address.find(':'));
}

void play(const runtime_options& options,
          std::uint64_t wanted,
          std::size_t runtimes = 1) {
  const auto piece = std::min<std::size_t>(wanted, 100'000);
  const auto seed = number_from("TROUPE_PROOF_SEED", 1);
  std::vector<runtime> on;
  std::vector<session_service*> services;
  for (std::size_t count = 0; count < runtimes; ++count)
    on.push_back(runtime::open(options).value());
  for (auto& each : on)
    services.push_back(&each.sessions());
  std::size_t operations = 0;
  std::size_t appends = 0;
  std::size_t reads = 0;
  double played = 0;
  double judged = 0;
  for (std::uint64_t round = 0; operations < wanted; ++round) {
    const workload part{.seed = seed * 1'000 + round, .operations = piece};
    const auto app = fmt::format("press{}", round);
    auto start = std::chrono::steady_clock::now();
    const auto told = record_history(services, app, part);
    played += seconds_since(start);
    start = std::chrono::steady_clock::now();
    const auto made = judge(told, time_order::channel);
    judged += seconds_since(start);
    BOOST_TEST_CONTEXT("workload seed " << part.seed << ", round " << round)
    BOOST_TEST(to_string(made) == "");
    operations += told.operations;
    appends += made.order.appends;
    reads += made.order.reads;
    for (std::size_t user = 0; user < part.users; ++user)
      BOOST_TEST(
        services.front()->remove_user(app, fmt::format("u{}", user)).value());
  }
  BOOST_TEST(operations >= wanted);
  std::cout << fmt::format("{}, {} runtimes: seed {}, {} calls in {:.1f} s "
                           "({:.0f} a second), {} tokens appended, "
                           "{} lists read, judged in {:.1f} s\n",
                           before_colon(*options.store.address()),
                           runtimes,
                           seed,
                           operations,
                           played,
                           static_cast<double>(operations) / played,
                           appends,
                           reads,
                           judged);
}

std::uint64_t calls() {
  return number_from("TROUPE_PROOF_OPERATIONS", 1'000'000);
}

runtime_options in(const temporary_folder& folder) {
  runtime_options options;
  options.store = "sqlite:" + (folder.path() / "history.db").string();
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.durability = durability::os;
  return options;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_million_calls_in_memory_hold) {
  play({}, calls());
}

BOOST_AUTO_TEST_CASE(a_million_calls_over_sqlite_hold) {
  const temporary_folder folder;
  play(in(folder), calls());
}

BOOST_AUTO_TEST_CASE(calls_of_two_runtimes_on_one_file_hold) {
  const temporary_folder folder;
  play(in(folder), calls() / 20, 2);
}

BOOST_AUTO_TEST_SUITE_END()

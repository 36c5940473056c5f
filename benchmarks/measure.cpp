#include "measure.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace bench {

namespace {

double process_cpu() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec)
           + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double percentile(const std::vector<std::uint32_t>& sorted, double share) {
  if (sorted.empty())
    return 0;
  const auto index
    = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[index]) / 1000;
}

} // namespace

stopwatch::stopwatch() : wall_(clock::now()), cpu_(process_cpu()) {}

double stopwatch::seconds() const {
  return std::chrono::duration<double>(clock::now() - wall_).count();
}

double stopwatch::cpu_seconds() const {
  return process_cpu() - cpu_;
}

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto middle
    = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

summary summarize(std::vector<round_result> rounds) {
  std::vector<double> rates;
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> p999;
  std::vector<double> cpu;
  for (auto& round : rounds) {
    const auto count = static_cast<double>(round.operations);
    rates.push_back(count / round.seconds);
    cpu.push_back(round.cpu_seconds * 1e6 / std::max(1.0, count));
    std::sort(round.latencies.begin(), round.latencies.end());
    p50.push_back(percentile(round.latencies, 0.5));
    p99.push_back(percentile(round.latencies, 0.99));
    p999.push_back(percentile(round.latencies, 0.999));
  }
  return {median(rates),
          *std::min_element(rates.begin(), rates.end()),
          *std::max_element(rates.begin(), rates.end()),
          median(p50),
          median(p99),
          median(p999),
          median(cpu)};
}

std::vector<summary>
alternate(std::size_t rounds,
          const std::vector<std::function<round_result()>>& sides) {
  std::vector<std::vector<round_result>> results(sides.size());
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t side = 0; side < sides.size(); ++side)
      results[side].push_back(sides[side]());
  std::vector<summary> summaries;
  for (auto& each : results)
    summaries.push_back(summarize(std::move(each)));
  return summaries;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

double fdatasync_rate(const std::filesystem::path& beside) {
  const auto file = beside.string() + ".sync";
  const int descriptor
    = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return 0;
  const std::vector<char> page(4096, 'x');
  std::size_t count = 0;
  const stopwatch watch;
  while (watch.seconds() < 0.5) {
    if (::write(descriptor, page.data(), page.size()) < 0
        || ::fdatasync(descriptor) < 0)
      break;
    ++count;
  }
  const auto rate = static_cast<double>(count) / watch.seconds();
  ::close(descriptor);
  std::filesystem::remove(file);
  return rate;
}

} // namespace bench

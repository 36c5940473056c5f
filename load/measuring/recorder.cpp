#include "troupe/load/measuring/recorder.hpp"

#include "troupe/load/load_test.hpp"

#include <algorithm>
#include <utility>

namespace troupe::load {

recorder::recorder(std::size_t mix_entries) : batches_(batch_max + 1) {
  for (auto& each : stripes_) {
    each = std::make_unique<stripe>();
    each->by_entry.resize(mix_entries);
  }
}

void recorder::stored(std::uint32_t caller,
                      const planned_append& done,
                      std::chrono::nanoseconds response,
                      std::chrono::nanoseconds service) {
  auto& own = stripe_of(caller);
  const std::lock_guard guard(own.mutex);
  own.recent.record(response);
  own.service.record(service);
  own.by_entry[done.entry].record(service);
}

void recorder::failed(std::uint32_t caller, errc code) {
  auto& own = stripe_of(caller);
  const std::lock_guard guard(own.mutex);
  ++own.failures[code];
  ++own.recent_failures;
}

void recorder::read(std::uint32_t reader, std::chrono::nanoseconds service) {
  auto& own = stripe_of(reader);
  const std::lock_guard guard(own.mutex);
  own.reading.record(service);
}

void recorder::failed_read(std::uint32_t reader, errc code) {
  auto& own = stripe_of(reader);
  const std::lock_guard guard(own.mutex);
  ++own.failed_reads[code];
}

interval recorder::take_interval() {
  interval taken;
  histogram latency;
  for (auto& each : stripes_) {
    const std::lock_guard guard(each->mutex);
    latency.merge(each->recent);
    each->response.merge(each->recent);
    each->recent.clear();
    taken.failed += std::exchange(each->recent_failures, 0);
  }
  taken.stored = latency.count();
  if (latency.empty())
    return taken;
  taken.p50 = std::min(latency.value_at(50), latency.max());
  taken.p99 = std::min(latency.value_at(99), latency.max());
  taken.max = latency.max();
  return taken;
}

void recorder::finish(outcome& into) {
  into.by_entry.resize(stripes_.front()->by_entry.size());
  for (auto& each : stripes_) {
    const std::lock_guard guard(each->mutex);
    into.response.merge(each->response);
    into.response.merge(each->recent);
    into.service.merge(each->service);
    into.reading.merge(each->reading);
    for (std::size_t entry = 0; entry < into.by_entry.size(); ++entry)
      into.by_entry[entry].merge(each->by_entry[entry]);
    for (const auto& [code, count] : each->failures)
      into.failed[std::string(to_string(code))] += count;
    for (const auto& [code, count] : each->failed_reads)
      into.failed_reads[std::string(to_string(code))] += count;
  }
  for (std::size_t events = 1; events < batches_.size(); ++events)
    if (const auto count = batches_[events].load(std::memory_order_relaxed))
      into.batches[events] = count;
  into.stored = into.service.count();
  into.reads = into.reading.count();
}

} // namespace troupe::load

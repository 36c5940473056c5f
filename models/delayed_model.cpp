#include "troupe/models/delayed_model.hpp"

#include "troupe/core/support/scattered.hpp"

#include <boost/math/distributions/normal.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using milliseconds = std::chrono::duration<double, std::milli>;

struct known_form {
  latency::form shape;
  std::string_view name;
  std::array<std::string_view, 2>
    fields; // Empty: the value itself, or no field.
};

constexpr std::array forms = {
  known_form{latency::form::constant, "constant", {"", ""}},
  known_form{latency::form::uniform, "uniform", {"from_ms", "to_ms"}},
  known_form{latency::form::exponential, "exponential", {"mean_ms", ""}},
  known_form{latency::form::lognormal, "lognormal", {"median_ms", "p99_ms"}},
};

error refused(std::string why) {
  return {errc::invalid_argument, "a latency " + std::move(why)};
}

std::chrono::nanoseconds rounded(milliseconds time) {
  return std::min<std::chrono::nanoseconds>(
    std::chrono::round<std::chrono::nanoseconds>(
      std::min<milliseconds>(time, latency_max)),
    latency_max);
}

result<std::chrono::nanoseconds> read_time(const json& data,
                                           std::string_view name) {
  if (!data.is_number() || !(data.get<double>() >= 0)
      || milliseconds(data.get<double>()) > latency_max)
    return refused(fmt::format("has a '{}' that is not a time in milliseconds "
                               "from 0 to one day",
                               name));
  return rounded(milliseconds(data.get<double>()));
}

} // namespace

std::chrono::nanoseconds latency::at(double fraction) const {
  const auto from = milliseconds(low);
  const auto to = milliseconds(high);
  switch (shape) {
  case form::constant:
    return low;
  case form::uniform:
    return rounded(from + (to - from) * fraction);
  case form::exponential:
    return rounded(from * -std::log1p(-fraction));
  case form::lognormal: {
    if (low.count() == 0 || fraction <= 0)
      return std::chrono::nanoseconds(0);
    const boost::math::normal standard;
    const auto spread
      = std::log(to / from) / boost::math::quantile(standard, 0.99);
    return rounded(
      from * std::exp(spread * boost::math::quantile(standard, fraction)));
  }
  }
  return low;
}

result<latency> latency_from_json(const json& data) {
  if (!data.is_object() || data.size() != 1)
    return refused("must be a mapping with one field: constant, uniform, "
                   "exponential or lognormal");
  const auto& name = data.items().begin().key();
  const auto& held = data.begin().value();
  const auto* const known = std::ranges::find(forms, name, &known_form::name);
  if (known == forms.end())
    return refused(fmt::format("must be constant, uniform, exponential or "
                               "lognormal, not '{}'",
                               name));
  latency read;
  read.shape = known->shape;
  if (known->shape == latency::form::constant) {
    auto time = read_time(held, name);
    if (!time)
      return time.error();
    read.low = *time;
    return read;
  }
  std::size_t found = 0;
  for (const auto& [field, target] :
       {std::pair(known->fields[0], &read.low),
        std::pair(known->fields[1], &read.high)}) {
    if (field.empty())
      continue;
    if (!held.is_object() || !held.contains(field))
      return refused(fmt::format("'{}' needs '{}'", name, field));
    auto time = read_time(held.at(std::string(field)), field);
    if (!time)
      return time.error();
    *target = *time;
    ++found;
  }
  if (held.size() != found)
    return refused(fmt::format("of the form '{}' has an unknown field", name));
  if (known->shape == latency::form::lognormal
      && (read.low.count() == 0 || read.high < read.low))
    return refused(
      "of the form 'lognormal' needs a median_ms above 0 and a p99_ms of at "
      "least that");
  if (known->shape == latency::form::uniform && read.high < read.low)
    return refused("of the form 'uniform' has a to_ms below its from_ms");
  return read;
}

delayed_model::delayed_model(model_ptr asked,
                             latencies delays,
                             std::uint64_t seed)
  : asked_(std::move(asked)),
    delays_(std::move(delays)),
    seed_(seed) {}

std::chrono::nanoseconds delayed_model::draw(const std::string& agent) {
  auto found = delays_.find(agent);
  if (found == delays_.end())
    found = delays_.find("*");
  if (found == delays_.end())
    return {};
  std::uint64_t number = 0;
  {
    const std::lock_guard guard(mutex_);
    number = calls_[agent]++;
  }
  const auto bits = scattered(scattered(seed_ ^ fnv_hash(agent)) + number);
  return found->second.at(fraction_of(bits));
}

void delayed_model::generate(model_request request, model_reply reply) {
  const auto delay = draw(request.agent);
  if (delay.count() == 0 || !request.environment)
    return asked_->generate(std::move(request), std::move(reply));
  const auto environment = request.environment;
  environment->call_after(
    delay,
    [asked = asked_,
     waiting = std::make_shared<std::pair<model_request, model_reply>>(
       std::move(request), std::move(reply))] {
      auto& [wanted, answer] = *waiting;
      try {
        asked->generate(std::move(wanted), answer);
      } catch (const std::exception& thrown) {
        answer(error(errc::model_failed, thrown.what()));
      } catch (...) {
        answer(error(errc::model_failed, "the model threw"));
      }
    });
}

} // namespace troupe

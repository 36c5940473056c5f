#include "troupe/core/support/recent_writes.hpp"

#include "troupe/core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view key_prefix = "__write/";

std::string key_of(std::uint64_t number) {
  return fmt::format("{}{}", key_prefix, number % recent_writes::count_max);
}

bool is_small(const value& held) {
  const auto bytes = check_json(held.data(), "value");
  return bytes && *bytes <= recent_writes::value_bytes_max;
}

json shown(std::uint64_t number, const recent_write& done) {
  json data{{"number", number},
            {"id", done.id},
            {"operations", done.operations},
            {"revision", done.answer.revision}};
  if (done.answer.value)
    data["value"] = done.answer.value->data();
  return data;
}

std::optional<std::pair<std::uint64_t, recent_write>> read(const json& data) {
  try {
    recent_write done{data.at("id").get<std::string>(),
                      data.at("operations").get<std::string>(),
                      {data.at("revision").get<std::uint64_t>(), {}}};
    if (const auto found = data.find("value"); found != data.end())
      done.answer.value = value(*found);
    return std::pair(data.at("number").get<std::uint64_t>(), std::move(done));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

} // namespace

recent_writes recent_writes::take_from(state_map& keys) {
  recent_writes taken;
  for (std::uint64_t index = 0; index < count_max; ++index) {
    const auto name = key_of(index);
    const auto* const found = keys.find(name);
    if (found == nullptr)
      break; // The keys are filled in order.
    auto written = read(found->data());
    keys.erase(name);
    if (!written || written->first % count_max != index)
      continue;
    taken.next_ = std::max(taken.next_, written->first + 1);
    taken.kept_.push_back({written->first, std::move(written->second)});
  }
  return taken;
}

const recent_write* recent_writes::find(std::string_view id) const noexcept {
  const auto found = std::ranges::find_if(
    kept_, [id](const numbered& each) { return each.done.id == id; });
  return found == kept_.end() ? nullptr : &found->done;
}

resolution recent_writes::add(recent_write done, scope where) {
  if (done.answer.value && !is_small(*done.answer.value))
    done.answer.value.reset();
  const auto number = next_++;
  resolution stored{where, key_of(number), shown(number, done)};
  const auto oldest
    = std::ranges::find_if(kept_, [number](const numbered& each) {
        return each.number % count_max == number % count_max;
      });
  if (oldest == kept_.end())
    kept_.push_back({number, std::move(done)});
  else
    *oldest = {number, std::move(done)};
  return stored;
}

std::vector<resolution> recent_writes::forget_all(scope where) {
  std::vector<resolution> erased;
  for (const auto& each : kept_)
    erased.push_back({where, key_of(each.number), value()});
  *this = recent_writes();
  return erased;
}

void hide_recent_writes(state_map& keys) {
  for (std::uint64_t index = 0; index < recent_writes::count_max; ++index)
    if (!keys.erase(key_of(index)))
      return; // The keys are filled in order.
}

bool is_recent_write(std::string_view name) noexcept {
  return name.starts_with(key_prefix);
}

// FNV-1a. Stores keep the text, so the function never changes.
std::string fingerprint(const delta& operations) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&hash](const json& data) {
    for (const auto byte : to_text(data)) {
      hash ^= static_cast<unsigned char>(byte);
      hash *= 0x100000001b3U;
    }
  };
  add(operations.to_json());
  add(operations.typed_to_json());
  return fmt::format("{:016x}", hash);
}

} // namespace troupe

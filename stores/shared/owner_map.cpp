#include "troupe/stores/shared/owner_map.hpp"

#include "troupe/core/key.hpp"
#include "troupe/core/support/recent_writes.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr auto header_name = "__troupe";

timestamp time_from(const json& microseconds) {
  return timestamp(std::chrono::microseconds(microseconds.get<std::int64_t>()));
}

std::int64_t count_of(timestamp time) {
  return time.time_since_epoch().count();
}

} // namespace

owner_map::owner_map() : header_(json::object()), keys_(json::object()) {}

owner_map::owner_map(json map) : owner_map() {
  keys_.swap(map.get_ref<json::object_t&>());
  if (const auto found = keys_.find(header_name); found != keys_.end()) {
    header_.swap(found->get_ref<json::object_t&>());
    keys_.erase(found);
  }
}

json owner_map::map() const {
  auto whole = keys_;
  whole[header_name] = header_;
  return whole;
}

stored_scope owner_map::scope() const {
  stored_scope read;
  read.revision = revision();
  for (const auto& [name, data] : keys_.items())
    // Other names with `__` are reserved.
    if (!data.is_null()
        && (!name.starts_with("__") || is_recent_write(name)
            || name.starts_with(key_prefix_artifact)))
      read.keys.set(name, data);
  return read;
}

timestamp owner_map::updated() const {
  return time_from(header_.value("updated", json(0)));
}

std::set<std::string> owner_map::names(const char* field) const {
  return header_.value(field, std::set<std::string>());
}

void owner_map::add_name(const char* field, const std::string& name) {
  auto all = names(field);
  all.insert(name);
  header_[field] = all;
}

void owner_map::drop_name(const char* field, const std::string& name) {
  auto all = names(field);
  all.erase(name);
  header_[field] = all;
}

void owner_map::apply(const event& said,
                      troupe::scope where,
                      std::uint64_t revision) {
  for (const auto& done : said.actions.state_delta.share(where)) {
    if (done.operand.is_null())
      keys_.erase(done.name);
    else
      keys_[done.name] = done.operand.data();
  }
  header_["revision"] = revision;
}

void owner_map::update(timestamp time, bool is_new) {
  header_["updated"] = count_of(is_new ? time : std::max(time, updated()));
}

void owner_map::append(const event& said, std::uint64_t number) {
  auto& events = header_["events"];
  if (events.is_null())
    events = json::array();
  events.push_back({{"number", number},
                    {"time", count_of(said.timestamp)},
                    {"event", to_json(said)}});
}

void owner_map::copy_events(const owner_map& from, std::uint64_t last) {
  auto& events = header_["events"];
  events = json::array();
  for (const auto* entry : from.events())
    if (entry->at("number").get<std::uint64_t>() <= last)
      events.push_back(*entry);
}

std::vector<const json*> owner_map::events() const {
  std::vector<const json*> entries;
  if (const auto found = header_.find("events"); found != header_.end())
    for (const auto& entry : found->get_ref<const json::array_t&>())
      entries.push_back(&entry);
  return entries;
}

event_ptr event_from(const json& entry) {
  auto said = event_from_json(entry.at("event"));
  if (!said)
    throw error(errc::corrupt, said.error().message());
  said->timestamp = time_from(entry.at("time"));
  return std::make_shared<const event>(std::move(*said));
}

} // namespace troupe

#include "troupe/contexts/lanes/checkpoint.hpp"

#include <algorithm>

namespace troupe {

namespace {

using lane = checkpoint::lane;

json to_json(const lane& from) {
  json written{{"lane", from.name}};
  if (from.at) {
    written["at"] = to_json(*from.at);
    if (!from.item.is_null())
      written["item"] = from.item;
  } else if (from.failed) {
    auto failed = json::object();
    failed["code"] = to_string(from.failed->code());
    failed["reason"] = from.failed->message();
    written["failed"] = std::move(failed);
  } else {
    written["ended"] = {{"escalated", from.escalated}};
    if (!from.result.is_null())
      written["result"] = from.result;
  }
  return written;
}

const json& member(const json& data, const char* name) {
  static const json none;
  const auto found = data.find(name);
  return found == data.end() ? none : *found;
}

bool read_lane(const json& data, lane& into) {
  if (!data.is_object() || !member(data, "lane").is_string())
    return false;
  into.name = data.at("lane").get<std::string>();
  into.item = member(data, "item");
  into.result = member(data, "result");
  if (data.contains("at")) {
    into.at = checkpoint_from_json(data.at("at"));
    return into.at != nullptr;
  }
  if (const auto& failed = member(data, "failed"); failed.is_object()) {
    if (!member(failed, "code").is_string()
        || !member(failed, "reason").is_string())
      return false;
    into.failed = error(errc_of(failed.at("code").get<std::string>()),
                        failed.at("reason").get<std::string>());
    return true;
  }
  const auto& ended = member(data, "ended");
  if (!ended.is_object() || !member(ended, "escalated").is_boolean())
    return false;
  into.escalated = ended.at("escalated").get<bool>();
  return true;
}

bool read_lanes(const json& data, std::vector<lane>& into) {
  return data.is_array()
         && std::ranges::all_of(data, [&into](const json& each) {
              return read_lane(each, into.emplace_back());
            });
}

bool read_ids(const json& data, std::vector<std::string>& into) {
  if (!data.is_array())
    return false;
  for (const auto& id : data) {
    if (!id.is_string())
      return false;
    into.push_back(id.get<std::string>());
  }
  return true;
}

void collect_waits(const checkpoint& from, std::vector<std::string>& into) {
  into.insert(into.end(), from.waits_for.begin(), from.waits_for.end());
  if (from.at)
    collect_waits(*from.at, into);
  for (const auto& each : from.lanes)
    if (each.at)
      collect_waits(*each.at, into);
}

} // namespace

json to_json(const checkpoint& from) {
  auto written = json::object();
  written["agent"] = from.agent;
  written["escalated"] = from.escalated;
  if (!from.key.empty())
    written["key"] = from.key;
  if (from.at) {
    written["finished"] = from.finished;
    written["at"] = to_json(*from.at);
  } else if (!from.lanes.empty()) {
    auto& lanes = written["lanes"] = json::array();
    for (const auto& each : from.lanes)
      lanes.push_back(to_json(each));
    if (!from.path.empty()) {
      written["run"] = from.run;
      written["path"] = from.path;
    }
  } else {
    written["waitsFor"] = from.waits_for;
    written["turn"] = from.turn;
    if (from.finished > 0)
      written["finished"] = from.finished;
  }
  return written;
}

checkpoint_ptr checkpoint_from_json(const json& data) {
  if (!data.is_object() || !member(data, "agent").is_string()
      || !member(data, "escalated").is_boolean())
    return nullptr;
  auto read = std::make_shared<checkpoint>();
  read->agent = data.at("agent").get<std::string>();
  read->escalated = data.at("escalated").get<bool>();
  if (const auto& key = member(data, "key"); key.is_string())
    read->key = key.get<std::string>();
  bool is_sound = false;
  if (data.contains("waitsFor")) {
    is_sound = read_ids(data.at("waitsFor"), read->waits_for)
               && read_ids(member(data, "turn"), read->turn);
    if (const auto& finished = member(data, "finished");
        finished.is_number_unsigned())
      read->finished = finished.get<std::uint64_t>();
  } else if (data.contains("lanes")) {
    is_sound = read_lanes(data.at("lanes"), read->lanes);
    if (data.contains("path")) {
      is_sound = is_sound && data.at("path").is_string()
                 && member(data, "run").is_string();
      if (is_sound) {
        read->run = data.at("run").get<std::string>();
        read->path = data.at("path").get<std::string>();
      }
    }
  } else if (member(data, "finished").is_number_unsigned()) {
    read->finished = data.at("finished").get<std::uint64_t>();
    read->at = checkpoint_from_json(member(data, "at"));
    is_sound = read->at != nullptr;
  }
  return is_sound ? read : nullptr;
}

std::vector<std::string> waits_of(const checkpoint& from) {
  std::vector<std::string> waits;
  collect_waits(from, waits);
  return waits;
}

} // namespace troupe

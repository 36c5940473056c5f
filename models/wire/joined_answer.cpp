#include "troupe/models/wire/joined_answer.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace troupe {

namespace {

json take_list(const json& object, const char* name) {
  auto list = object.is_object() ? object.value(name, json()) : json();
  return list.is_array() ? list : json::array();
}

// Adds the counts of `more`. A count that is not a whole number stays.
void add_counts(json& counts, const json& more) {
  constexpr std::int64_t count_max = std::int64_t{1} << 60U;
  for (const auto& [name, count] : more.items()) {
    auto& sum = counts[name];
    if (sum.is_null())
      sum = count;
    else if (sum.is_number_integer() && count.is_number_integer()
             && sum.get<std::int64_t>() <= count_max
             && count.get<std::int64_t>() <= count_max)
      sum = sum.get<std::int64_t>() + count.get<std::int64_t>();
  }
}

json joined_lists(const json& first, const json& last, const char* name) {
  auto list = take_list(first, name);
  for (auto& each : take_list(last, name))
    list.push_back(std::move(each));
  return list;
}

// The sources of `last` come after those of `first`, so their indices grow.
json joined_sources(const json& first, json last, std::size_t parts) {
  const auto chunks = take_list(first, "groundingChunks").size();
  if (const auto supports = last.find("groundingSupports");
      supports != last.end())
    for (auto& support : *supports) {
      auto& part_index = support["segment"]["partIndex"];
      part_index = part_index.get<std::size_t>() + parts;
      for (auto& index : support["groundingChunkIndices"])
        index = index.get<std::size_t>() + chunks;
    }
  auto made = json::object();
  for (const auto* name :
       {"webSearchQueries", "groundingChunks", "groundingSupports"})
    if (auto list = joined_lists(first, last, name); !list.empty())
      made[name] = std::move(list);
  return made;
}

} // namespace

model_response joined(const model_response& first, model_response last) {
  const auto parts = first.content.parts.size();
  auto whole = first.content;
  whole.parts.insert(whole.parts.end(),
                     std::make_move_iterator(last.content.parts.begin()),
                     std::make_move_iterator(last.content.parts.end()));
  auto fields = last.extra.is_null() ? json::object() : last.extra.data();
  const auto earlier
    = first.extra.is_null() ? json::object() : first.extra.data();
  if (const auto counts = earlier.find("usageMetadata");
      counts != earlier.end() && counts->is_object())
    add_counts(fields["usageMetadata"], *counts);
  if (const auto told = earlier.find("citationMetadata"); told != earlier.end())
    fields["citationMetadata"]["citations"] = joined_lists(
      *told, fields.value("citationMetadata", json()), "citations");
  if (const auto told = earlier.find("groundingMetadata");
      told != earlier.end() || fields.contains("groundingMetadata"))
    fields["groundingMetadata"]
      = joined_sources(told != earlier.end() ? *told : json::object(),
                       fields.value("groundingMetadata", json::object()),
                       parts);
  last.content = std::move(whole);
  last.extra = fields.empty() ? value() : value(std::move(fields));
  return last;
}

} // namespace troupe

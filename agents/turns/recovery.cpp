#include "troupe/agents/turns/recovery.hpp"

#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

error refused(errc code, std::string_view id, std::string_view why) {
  return {code, fmt::format("cannot recover run '{}': {}", id, why)};
}

constexpr const char* holder_fact = "holder";
constexpr const char* left_fact = "left";

// Returns the newest claim of the run, or null. One that a rewind took back
// counts: the store has its holder.
event_ptr newest_claim(const event_slice& all, std::string_view run) {
  for (auto index = all.size(); index > 0; --index)
    if (const auto& said = all[index - 1];
        said->invocation_id == run && claims_run(*said))
      return said;
  return nullptr;
}

// Returns true if the process that has made the claim is, or was, the holder
// with this name. It may have left the run after another claim, which was not
// stored.
bool is_holder(const event& claim, const std::string& name) {
  const auto holder = holder_of_claim(claim);
  const auto number = number_of_claim(claim);
  return name == holder || name == left_holder(holder, number)
         || name == left_holder(holder, number + 1)
         || name == refused_holder(holder, number);
}

// Returns true for the event of an agent that does not tell the agent's place.
bool is_without_place(const event& said) {
  return said.author != "user" && path_in(said).empty()
         && step_in(said) == agent_step::body && !said.content.parts.empty();
}

} // namespace

result<recorded_run> find_recoverable(const event_slice& all,
                                      const recovery_wish& wish,
                                      bool* is_over) {
  const auto end = [is_over](error why) {
    if (is_over != nullptr)
      *is_over = true;
    return why;
  };
  const auto& id = wish.invocation_id;
  const auto events = all.live();
  recorded_run found;
  std::size_t ends = 0; // Of processes that had not left the run.
  std::vector<std::string> lost;
  std::optional<pause_claim> claimed;
  for (std::size_t index = 0; index < events.size(); ++index) {
    const auto& said = *events[index];
    if (claimed && said.author == "user" && said.invocation_id != id)
      if (const auto other = claim_of(said);
          other && other->pause_id == claimed->pause_id)
        return end(
          refused(errc::conflict,
                  id,
                  fmt::format("run '{}' has taken over the pause that it went "
                              "on from",
                              said.invocation_id)));
    if (said.invocation_id != id)
      continue;
    if (!found.said) {
      if (said.author != "user")
        continue;
      found.message = events.number(index);
      found.said = events[index];
      claimed = claim_of(said);
    }
    // Users append events of their own, with any fields.
    if (said.author == "user" && events[index] != found.said)
      continue;
    if (claims_run(said)) {
      ++found.recoveries;
      ends += tells_leave(said) ? 0 : 1;
      continue;
    }
    if (!waits_in(said).empty())
      return end(
        refused(errc::conflict,
                id,
                fmt::format("it has paused and waits for the answers to the "
                            "calls {}; answer them",
                            fmt::join(waits_in(said), ", "))));
    if (released_in(said) == found.said->id)
      return end(
        refused(errc::conflict,
                id,
                "it has failed, and the run that it went on with waits for an "
                "answer again; send the answer again"));
    if (is_without_place(said))
      return refused(errc::conflict,
                     id,
                     "its events do not tell which agents have ended, since "
                     "an earlier version of troupe has made them");
    const auto written = temp_names_in(said);
    if (!written.lane.empty())
      continue;
    for (const auto& name : written.names)
      if (std::ranges::find(lost, name) == lost.end())
        lost.push_back(name);
  }
  if (!found.said)
    return end(refused(
      errc::not_found,
      id,
      "the session has no message of such a run; it may have been taken "
      "back by a rewind, or trimmed"));
  const auto claim = newest_claim(all, id);
  if (wish.free_holder && claim && !is_holder(*claim, *wish.free_holder))
    return refused(
      errc::conflict, id, "another process has recovered it meanwhile");
  if (!wish.was_left && ends >= wish.recoveries_max)
    return refused(
      errc::limit_exceeded,
      id,
      fmt::format("it was recovered {} times from processes that have ended, "
                  "and the next one has ended, too; look for the reason in "
                  "their logs, then raise recoveries_max or close the run",
                  ends));
  if (!lost.empty() && !wish.allow_lost_temp)
    return lost_temp(id, lost);
  return found;
}

std::string left_holder(std::string_view id, std::uint64_t recoveries) {
  return fmt::format("{}.{}.left", id, recoveries);
}

std::string refused_holder(std::string_view id, std::uint64_t recoveries) {
  return fmt::format("{}.{}.refused", id, recoveries);
}

bool is_left(std::string_view holder) noexcept {
  return holder.ends_with(".left") || is_refused(holder);
}

bool is_refused(std::string_view holder) noexcept {
  return holder.ends_with(".refused");
}

event make_claim_event(std::string root_name,
                       const std::string& invocation_id,
                       const std::string& holder) {
  event said;
  said.author = std::move(root_name);
  said.invocation_id = invocation_id;
  set_fact(said, recovers_fact, 1);
  if (!holder.empty())
    set_fact(said, holder_fact, holder);
  return said;
}

void number_claim(event& claim, std::uint64_t number, bool was_left) {
  set_fact(claim, recovers_fact, number);
  set_fact(claim, left_fact, was_left);
}

bool tells_leave(const event& claim) {
  const auto* told = fact_in(claim, left_fact);
  return told != nullptr && *told == true;
}

bool claims_run(const event& said) {
  return said.author != "user" && fact_in(said, recovers_fact) != nullptr;
}

std::uint64_t number_of_claim(const event& claim) {
  const auto* told = fact_in(claim, recovers_fact);
  return told != nullptr && told->is_number_integer()
           ? told->get<std::uint64_t>()
           : 0;
}

std::string holder_of_claim(const event& claim) {
  const auto* told = fact_in(claim, holder_fact);
  return told != nullptr && told->is_string() ? told->get<std::string>()
                                              : std::string();
}

error lost_temp(std::string_view invocation_id,
                const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  keys.reserve(names.size());
  for (const auto& name : names)
    keys.push_back("temp:" + name);
  return refused(errc::conflict,
                 invocation_id,
                 fmt::format("it had written keys that no store keeps: {}; "
                             "set allow_lost_temp if its agents can go on "
                             "without them, or start a new run",
                             fmt::join(keys, ", ")));
}

} // namespace troupe

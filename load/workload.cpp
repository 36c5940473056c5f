#include "troupe/load/workload.hpp"

#include "troupe/core/support/scattered.hpp"
#include "troupe/load/measuring/refused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace troupe::load {

namespace {

constexpr std::array kind_names = {
  std::pair{append_kind::set, std::string_view("set")},
  std::pair{append_kind::add, std::string_view("add")},
  std::pair{append_kind::append, std::string_view("append")},
  std::pair{append_kind::compare_and_set, std::string_view("cas")},
};

std::size_t pick(const std::vector<double>& cumulative, double fraction) {
  const auto found
    = std::ranges::upper_bound(cumulative, fraction * cumulative.back());
  return std::min(static_cast<std::size_t>(found - cumulative.begin()),
                  cumulative.size() - 1);
}

template <class Weight>
std::vector<double> cumulate(std::size_t count, Weight weight) {
  std::vector<double> sums(count);
  double sum = 0;
  for (std::size_t index = 0; index < count; ++index)
    sums[index] = sum += weight(index);
  return sums;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const auto end = text.find(at);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return pieces;
    text.remove_prefix(end + 1);
  }
}

result<mix_entry> read_entry(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return refused(fmt::format("'{}' in the mix {}; expected "
                               "SCOPES:KIND[=WEIGHT], such as "
                               "session+user:add=2",
                               text,
                               why));
  };
  mix_entry read;
  read.session = false;
  auto rest = text;
  if (const auto equals = rest.find('='); equals != std::string_view::npos) {
    const auto number = rest.substr(equals + 1);
    const auto* const end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, read.weight);
    if (parsed.ec != std::errc() || parsed.ptr != end
        || !std::isfinite(read.weight) || read.weight <= 0)
      return bad("has a weight that is not a number above 0");
    rest = rest.substr(0, equals);
  }
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos)
    return bad("has no ':'");
  const auto known
    = std::ranges::find(kind_names,
                        rest.substr(colon + 1),
                        [](const auto& row) { return row.second; });
  if (known == kind_names.end())
    return bad("has an unknown kind (set, add, append, cas)");
  read.kind = known->first;
  for (const auto where : split(rest.substr(0, colon), '+')) {
    auto* const flag = where == "session" ? &read.session
                       : where == "user"  ? &read.user
                       : where == "app"   ? &read.app
                                          : nullptr;
    if (flag == nullptr)
      return bad("has an unknown scope (session, user, app)");
    *flag = true;
  }
  return read;
}

void record(delta& changes,
            const planned_append& planned,
            const std::optional<std::uint64_t>& before,
            scope where) {
  const auto key = workload::key_of(planned, where);
  const value number(json(planned.number));
  result<void> recorded;
  switch (planned.what->kind) {
  case append_kind::set:
    recorded = changes.record(key, operation_kind::set, number);
    break;
  case append_kind::add:
    recorded = changes.record(key, operation_kind::add, value(json(1)));
    break;
  case append_kind::append:
    recorded = planned.number % workload::list_length == 0
                 ? changes.record(key,
                                  operation_kind::set,
                                  value(json::array({planned.number})))
                 : changes.record(key, operation_kind::append, number);
    break;
  case append_kind::compare_and_set:
    recorded = changes.record(key,
                              operation_kind::compare_and_set,
                              number,
                              before ? value(json(*before)) : value());
    break;
  }
  recorded.value(); // Keys and values are ours.
}

// More appends would take all memory before the test begins.
constexpr std::uint64_t appends_max = 200'000'000;

struct setting_limit {
  std::string_view name;
  std::size_t settings::*value;
  std::size_t most;
};

constexpr std::array setting_limits = {
  setting_limit{"apps", &settings::apps, 1'000'000},
  setting_limit{"users", &settings::users, 1'000'000},
  setting_limit{"sessions", &settings::sessions, 10'000'000},
  setting_limit{"callers", &settings::callers, 1'000'000},
  setting_limit{"readers", &settings::readers, 100'000},
  setting_limit{"bytes of text", &settings::payload, 1'000'000},
};

result<void> check_amounts(const settings& chosen) {
  for (const auto& each : setting_limits)
    if (chosen.*each.value > each.most)
      return refused(fmt::format(
        "{} {} are more than {}", chosen.*each.value, each.name, each.most));
  if (chosen.appends.value_or(1) > appends_max)
    return refused(
      fmt::format("{} appends are more than {}", *chosen.appends, appends_max));
  if (chosen.arrival == arrival::closed)
    return {};
  if (chosen.rate > 1e7)
    return refused("a rate above 10,000,000 cannot be offered");
  const auto planned
    = chosen.rate * static_cast<double>(chosen.duration.count()) / 1e3;
  if (!chosen.appends && planned < 1)
    return refused("no append is due within the duration at that rate");
  if (!chosen.appends && planned > static_cast<double>(appends_max))
    return refused(fmt::format("more than {} appends", appends_max));
  if (std::ranges::any_of(chosen.mix, [](const mix_entry& each) {
        return each.kind == append_kind::compare_and_set;
      }))
    return refused("cas needs closed arrival: a caller must know the result of "
                   "its previous append");
  return {};
}

} // namespace

result<void> check_settings(const settings& chosen) {
  if (chosen.apps == 0 || chosen.users == 0 || chosen.sessions == 0
      || chosen.callers == 0)
    return refused("there must be at least one app, user, session and caller");
  if (chosen.users < chosen.apps)
    return refused(fmt::format(
      "there are fewer users ({}) than apps ({})", chosen.users, chosen.apps));
  if (chosen.sessions < chosen.users)
    return refused(fmt::format("there are fewer sessions ({}) than users ({})",
                               chosen.sessions,
                               chosen.users));
  if (chosen.mix.empty())
    return refused("the mix is empty");
  for (const auto& each : chosen.mix) {
    if (!each.session && !each.user && !each.app)
      return refused("an entry of the mix changes no scope");
    if (!std::isfinite(each.weight) || each.weight <= 0)
      return refused("a weight of the mix is not above 0");
  }
  if (!chosen.appends && chosen.duration.count() <= 0)
    return refused("the duration is not above 0");
  if (chosen.appends == std::uint64_t{0})
    return refused("the number of appends is 0");
  if (chosen.arrival == arrival::open
      && !(std::isfinite(chosen.rate) && chosen.rate > 0))
    return refused("open arrival needs a rate above 0");
  if (chosen.arrival == arrival::closed && chosen.rate != 0)
    return refused("a rate needs open arrival");
  if (!std::isfinite(chosen.zipf) || chosen.zipf < 0)
    return refused("the Zipf parameter is below 0");
  if (chosen.hot && chosen.zipf != 0)
    return refused("with one hot session, Zipf has nothing to distribute");
  return check_amounts(chosen);
}

result<std::vector<mix_entry>> read_mix(std::string_view text) {
  std::vector<mix_entry> mix;
  for (const auto each : split(text, ',')) {
    auto read = read_entry(each);
    if (!read)
      return read.error();
    mix.push_back(*read);
  }
  return mix;
}

std::string to_string(const std::vector<mix_entry>& mix) {
  std::string text;
  for (const auto& each : mix) {
    std::string scopes;
    for (const auto& [has, name] : {std::pair{each.session, "session"},
                                    std::pair{each.user, "user"},
                                    std::pair{each.app, "app"}})
      if (has)
        scopes += fmt::format("{}{}", scopes.empty() ? "" : "+", name);
    text += fmt::format("{}{}:{}={}",
                        text.empty() ? "" : ",",
                        scopes,
                        kind_names[static_cast<std::size_t>(each.kind)].second,
                        each.weight);
  }
  return text;
}

std::vector<scope> scopes_of(const mix_entry& entry) {
  std::vector<scope> scopes;
  for (const auto& [has, where] : {std::pair{entry.session, scope::session},
                                   std::pair{entry.user, scope::user},
                                   std::pair{entry.app, scope::app}})
    if (has)
      scopes.push_back(where);
  return scopes;
}

workload::workload(settings chosen, std::string run)
  : chosen_(std::move(chosen)),
    run_(std::move(run)),
    mix_(cumulate(
      chosen_.mix.size(),
      [this](std::size_t index) { return chosen_.mix[index].weight; })),
    payload_(chosen_.payload, 'x') {
  if (chosen_.zipf > 0)
    sessions_ = cumulate(chosen_.sessions, [this](std::size_t index) {
      return std::pow(static_cast<double>(index + 1), -chosen_.zipf);
    });
}

std::string workload::app_name(std::size_t app) const {
  return fmt::format("load-{}-{}", run_, app);
}

std::string workload::user_name(std::size_t user) {
  return fmt::format("user-{}", user);
}

session_key workload::session(std::size_t index) const {
  const auto user = user_of(index);
  return {
    app_name(app_of(user)), user_name(user), fmt::format("session-{}", index)};
}

planned_append workload::plan(std::uint32_t caller,
                              std::uint64_t number) const {
  const auto bits
    = scattered(scattered(scattered(chosen_.seed) + caller) ^ number);
  planned_append planned;
  planned.caller = caller;
  planned.number = number;
  if (chosen_.hot)
    planned.session = 0;
  else if (sessions_.empty())
    planned.session = static_cast<std::uint32_t>(bits % chosen_.sessions);
  else
    planned.session
      = static_cast<std::uint32_t>(pick(sessions_, fraction_of(bits)));
  planned.entry
    = static_cast<std::uint32_t>(pick(mix_, fraction_of(scattered(bits))));
  planned.what = &chosen_.mix[planned.entry];
  return planned;
}

event workload::make(const planned_append& planned,
                     const numbers_before& before) const {
  event made(content("model", {part(payload_)}));
  made.id = id_of(planned.caller, planned.number);
  made.author = author;
  auto& changes = made.actions.state_delta;
  for (const auto where : scopes_of(*planned.what))
    record(changes, planned, before[static_cast<std::size_t>(where)], where);
  return made;
}

std::string workload::id_of(std::uint32_t caller, std::uint64_t number) {
  return fmt::format("load-{}-{}", caller, number);
}

std::optional<workload::identity> workload::identity_of(std::string_view id) {
  const auto pieces = split(id, '-');
  if (pieces.size() != 3 || pieces[0] != "load")
    return std::nullopt;
  identity read{};
  const auto parse = [](std::string_view text, auto& into) {
    const auto* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, into);
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
  if (!parse(pieces[1], read.caller) || !parse(pieces[2], read.number)
      || id_of(read.caller, read.number) != id)
    return std::nullopt;
  return read;
}

std::string workload::key_of(const planned_append& planned, scope where) {
  const std::string_view prefix = where == scope::user  ? key_prefix_user
                                  : where == scope::app ? key_prefix_app
                                                        : std::string_view();
  switch (planned.what->kind) {
  case append_kind::set:
    return fmt::format("{}set-{}", prefix, planned.caller);
  case append_kind::add:
    return fmt::format("{}{}", prefix, counter_key);
  case append_kind::append:
    return fmt::format("{}list-{}", prefix, planned.caller);
  case append_kind::compare_and_set:
    return fmt::format("{}cas-{}", prefix, planned.caller);
  }
  return {};
}

} // namespace troupe::load

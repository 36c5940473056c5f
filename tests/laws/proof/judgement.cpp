#include "history.hpp"
#include <fmt/format.h>

namespace troupe::testing {

namespace {

template <class Spec>
void search(const std::map<std::string,
                           std::vector<timed_call<typename Spec::operation>>>&
              calls_by_key,
            judgement& on) {
  for (const auto& [key, calls] : calls_by_key) {
    auto verdict = check_linearizability<Spec>(key, calls);
    ++on.keys;
    on.steps += verdict.steps;
    if (!verdict.finding.empty())
      on.findings.push_back((verdict.outcome == search_outcome::undecided
                               ? "undecided: "
                               : "not linearizable: ")
                            + std::move(verdict.finding));
  }
}

} // namespace

judgement judge(const history& told, time_order time) {
  judgement made;
  for (const auto& each : told.unexpected)
    made.findings.push_back("unexpected answer: " + each);
  made.order = check_append_order(told.lists,
                                  {.time = time, .key_names = told.list_names});
  if (!made.order.holds())
    made.findings.push_back(to_string(made.order));
  for (const auto& group : told.accounts) {
    auto verdict = check_sums(group.total, group.transfers, group.reads);
    made.sums += verdict.reads;
    if (verdict.wrong > 0)
      made.findings.push_back("half of an event: "
                              + std::move(verdict.finding));
  }
  search<list_spec>(told.list_calls, made);
  search<register_spec>(told.registers, made);
  return made;
}

std::string to_string(const judgement& made) {
  std::string all;
  for (const auto& each : made.findings)
    all += each + '\n';
  return all;
}

} // namespace troupe::testing

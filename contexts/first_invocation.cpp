#include "troupe/contexts/first_invocation.hpp"

#include "troupe/contexts/lanes/event_place.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr const char* first_fact = "firstInvocation";

void remove_field(event& said) {
  if (fact_in(said, first_fact) == nullptr)
    return;
  auto fields = said.extra.data();
  auto& metadata = fields["customMetadata"];
  auto& own = metadata["troupe"];
  own.erase(first_fact);
  if (own.empty())
    metadata.erase("troupe");
  if (metadata.empty())
    fields.erase("customMetadata");
  said.extra = fields.empty() ? value() : value(std::move(fields));
}

} // namespace

const std::string& first_invocation(const event& said) noexcept {
  const auto* told = fact_in(said, first_fact);
  if (told == nullptr || !told->is_string())
    return said.invocation_id;
  const auto& id = told->get_ref<const std::string&>();
  return id.empty() ? said.invocation_id : id;
}

void set_first_invocation(event& said, const std::string& id) {
  if (id.empty() || id == said.invocation_id)
    remove_field(said);
  else
    set_fact(said, first_fact, id);
}

} // namespace troupe

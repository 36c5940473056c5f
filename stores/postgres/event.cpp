#include "troupe/stores/postgres/event.hpp"

#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

namespace troupe {

namespace {

result<std::string> read_id(std::string_view text) {
  if (!text.starts_with('"'))
    return std::string(text);
  const auto data = decode_value(text);
  if (!data)
    return data.error();
  if (!(*data)->is_string())
    return error(errc::corrupt, "an event's id does not read back");
  return (*data)->get<std::string>();
}

} // namespace

result<void> append_postgres_id(std::string& target, std::string_view id) {
  if (id.starts_with('"') || id.find('\0') != std::string_view::npos)
    return append_text(target, value(json(id)));
  target.append(id);
  return {};
}

result<event_ptr>
read_postgres_event(const postgres_rows& rows, int row, int first) {
  const auto id = read_id(rows.text(row, first + 1));
  if (!id)
    return id.error();
  auto said = decode({*id,
                      rows.number(row, first),
                      rows.text(row, first + 3),
                      rows.text(row, first + 2)});
  if (!said)
    return said.error();
  return std::make_shared<const event>(*std::move(said));
}

error unreadable(std::string_view attempted, const error& why) {
  return {errc::corrupt, fmt::format("{}: {}", attempted, why.message())};
}

result<void>
replay_delta(stored_scope& target, std::string_view delta, scope where) {
  if (delta.empty())
    return {};
  const auto changed = decode_delta(delta);
  if (!changed)
    return changed.error();
  for (const auto& done : changed->share(where)) {
    if (done.kind == operation_kind::erase || done.operand.is_null())
      target.keys.erase(done.name);
    else
      target.keys.set(done.name, done.operand);
  }
  return {};
}

} // namespace troupe

#include "troupe/stores/postgres/row_copy.hpp"

#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/postgres/schema.hpp"

#include <optional>

namespace troupe {

namespace {

using postgres_binary::append_int16;
using postgres_binary::append_int32;
using postgres_binary::append_int64;

// Bytes that the server reads while the next part is built.
constexpr std::size_t copied_at_once = std::size_t{32} * 1024;

// Column order of `append`.
constexpr std::string_view copy_rows
  = "COPY change_log (id, writer, time, session, session_revision, usr,"
    " user_revision, app, app_revision, kind, event_hash, event, delta, body)"
    " FROM STDIN (FORMAT binary)";
constexpr std::int16_t copied_columns = 14;
constexpr std::string_view copy_head("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);

void append_null(std::string& target) {
  append_int32(target, -1);
}

void append_number(std::string& target, std::int64_t number) {
  append_int32(target, 8);
  append_int64(target, number);
}

void append_scope(std::string& target,
                  std::int64_t id,
                  const std::optional<std::uint64_t>& revision) {
  if (id == 0) {
    append_null(target);
    append_null(target);
    return;
  }
  append_number(target, id);
  append_number(target, static_cast<std::int64_t>(revision.value_or(0)));
}

void append_text_or_null(std::string& target, std::string_view text) {
  if (text.empty()) {
    append_null(target);
    return;
  }
  append_int32(target, static_cast<std::int32_t>(text.size()));
  target.append(text);
}

} // namespace

std::chrono::milliseconds postgres_row_copy::limit(std::size_t rows) {
  constexpr std::size_t rows_max = 512;
  constexpr std::chrono::milliseconds for_row{50};
  return postgres_deadline
         + (rows > rows_max ? for_row * static_cast<std::int64_t>(rows)
                            : std::chrono::milliseconds(0));
}

result<void> postgres_row_copy::write(postgres_connection& connection,
                                      std::span<const planned_row> rows,
                                      bool commits,
                                      std::chrono::milliseconds limit,
                                      std::string_view attempted) {
  auto statement = std::string(copy_rows);
  if (commits)
    statement += "; COMMIT";
  if (auto started = connection.start_copy(attempted, statement, limit);
      !started)
    return started;
  buffer_ = copy_head;
  for (const auto& row : rows) {
    if (auto appended = append(row); !appended) {
      // The transaction ends with the connection.
      (void)connection.end_copy(attempted, "given up");
      return appended;
    }
    if (buffer_.size() < copied_at_once)
      continue;
    if (auto copied = connection.copy(attempted, buffer_); !copied)
      return copied;
    buffer_.clear();
  }
  append_int16(buffer_, -1);
  if (auto copied = connection.copy(attempted, buffer_); !copied)
    return copied;
  return connection.end_copy(attempted);
}

result<void> postgres_row_copy::append(const planned_row& row) {
  const auto& change = *row.change;
  const bool is_event = change.kind == change_kind::append;
  if (auto encoded = encode(change, event_); !encoded)
    return encoded;
  append_int16(buffer_, copied_columns);
  append_number(buffer_, row.id);
  append_number(buffer_, writer_);
  append_number(buffer_, event_.microseconds);
  append_scope(buffer_, row.session, change.session_revision);
  append_scope(buffer_, row.user, change.user_revision);
  append_scope(buffer_, row.app, change.app_revision);
  append_int32(buffer_, 2);
  append_int16(buffer_, static_cast<std::int16_t>(change.kind));
  if (is_event) {
    append_int32(buffer_, 4);
    append_int32(buffer_, static_cast<std::int32_t>(id_hash(event_.id)));
  } else {
    append_null(buffer_);
  }
  id_.clear();
  if (auto appended = append_postgres_id(id_, event_.id); !appended)
    return appended;
  append_text_or_null(buffer_, id_);
  append_text_or_null(buffer_, event_.delta);
  append_text_or_null(buffer_, event_.body);
  return {};
}

} // namespace troupe

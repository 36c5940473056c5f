#include "http_answer.hpp"

#include <charconv>
#include <cstddef>

namespace bench {

namespace {

constexpr std::string_view blank_line = "\r\n\r\n";

// Bytes of the head with its blank line; 0 while it is not complete.
std::size_t head_size(std::string_view answer) {
  const auto end = answer.find(blank_line);
  return end == answer.npos ? 0 : end + blank_line.size();
}

std::size_t number_at(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

} // namespace

bool has_body(std::string_view answer) {
  const auto head = head_size(answer);
  return head != 0 && answer.size() > head;
}

bool is_whole(std::string_view answer) {
  constexpr std::string_view length = "\r\ncontent-length: ";
  constexpr std::string_view last_chunk = "\r\n0\r\n\r\n";
  const auto head = head_size(answer);
  if (head == 0)
    return false;
  const auto found = answer.substr(0, head).find(length);
  if (found == answer.npos)
    return answer.ends_with(last_chunk);
  return answer.size()
         == head + number_at(answer.substr(found + length.size()));
}

int status_of(std::string_view answer) {
  constexpr std::string_view start = "HTTP/1.1 ";
  return answer.starts_with(start)
           ? static_cast<int>(number_at(answer.substr(start.size())))
           : 0;
}

} // namespace bench

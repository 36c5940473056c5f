// The input is state up to the first line break, then an instruction. The
// instruction is filled in by both rules for braces, or the missing key is
// named.

#include "troupe/contexts/instruction_template.hpp"

#include "fuzz_target.hpp"

using namespace troupe;
using troupe::testing::expect;

namespace {

void fill(std::string_view instruction,
          const state& known,
          template_braces braces) {
  const auto filled
    = inject_session_state(instruction, known, "writer", braces);
  if (!filled) {
    expect(filled.error().code() == errc::template_error,
           "the code of an error");
    expect(instruction.find('{') != std::string_view::npos,
           "only placeholders fail");
  } else if (instruction.find('{') == std::string_view::npos) {
    expect(*filled == instruction, "other text stays");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto text = testing::text_of(bytes, size);
  const auto line_end = text.find('\n');
  if (line_end == std::string_view::npos)
    return 0;
  const auto instruction = text.substr(line_end + 1);
  state known;
  if (const auto data = parse_json(text.substr(0, line_end));
      data && data->is_object())
    for (const auto& [key, held] : data->items())
      if (check_key(key) && check_new_key(key))
        known.set(key, held);
  fill(instruction, known, template_braces::single);
  fill(instruction, known, template_braces::any);
  return 0;
}

// The words by which memories are searched. All stores use these, so that all
// find the same memories.

#pragma once

#include "troupe/stores/memory_entry.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the words of a text, each once, in their order: sequences of letters
/// and digits of any script, in lower case, without accents, with one form of
/// each character (NFKC), and cut after 64 bytes. Of a script without blanks
/// between its words, such as Chinese, the words are the single characters and
/// the pairs of neighbours. Returns at most 8,192 words; words after these are
/// left out. Bytes that are not UTF-8 separate words.
std::vector<std::string> memory_words(std::string_view text);

/// Returns the words of a query: the same, but at most 64, and of a script
/// without blanks only the pairs, or the character if it stands alone.
std::vector<std::string> query_words(std::string_view text);

/// Returns the text of a memory in which its words are: its text parts, one on
/// each line.
std::string memory_text(const content& said);

/// Returns the weight of a word in the order of the found memories, above 0:
/// 1,000 ln(1 + `memories` / `with_word`), rounded. `memories` is the number of
/// the user's memories, `with_word` the number of those with the word. The sum
/// of a memory's weights decides its place.
std::int64_t word_weight(std::uint64_t memories, std::uint64_t with_word);

} // namespace troupe

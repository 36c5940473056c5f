// What can be computed from a text: its outline, words, sentences, links and
// repetitions.
//
// Texts are Markdown or plain, in UTF-8. Pure functions; code blocks are left
// out of all of them.

#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace review {

/// A piece of text and the line that it starts on, from 1.
struct located {
  std::string text;
  std::size_t line = 0;
};

struct heading {
  located title;
  /// 1 for the top.
  std::size_t level = 1;
};

struct sentence {
  located words;
  std::size_t word_count = 0;
};

struct repeated_word {
  std::string word;
  std::size_t count = 0;
};

/// Headings of Markdown; of a plain text, the short lines that stand alone.
std::vector<heading> outline(std::string_view text);

/// The sentences of its paragraphs; headings and tables are none.
std::vector<sentence> sentences(std::string_view text);

/// The words, in lower case as far as they are ASCII.
std::vector<std::string> words(std::string_view text);

/// Targets of Markdown links that are relative and lead to no file, seen from
/// `folder`.
std::vector<located> broken_links(std::string_view text,
                                  const std::filesystem::path& folder);

/// Words that stand twice in a row: "the the".
std::vector<located> doubled_words(std::string_view text);

/// The words that come most often, leaving out short and very common ones; at
/// most `count`.
std::vector<repeated_word> frequent_words(std::string_view text,
                                          std::size_t count);

} // namespace review

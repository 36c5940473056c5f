// Analysis of a text: its outline, words, sentences, links and repetitions.
//
// Texts are Markdown or plain, in UTF-8. All functions are pure and ignore code
// blocks.

#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace review {

/// A piece of text and the number of its first line, from 1.
struct located {
  std::string text;
  std::size_t line = 0;
};

struct heading {
  located title;
  /// 1 for the top level.
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

/// Headings in Markdown; in a plain text, short lines that stand alone.
std::vector<heading> outline(std::string_view text);

/// Sentences in paragraphs, without headings and tables.
std::vector<sentence> sentences(std::string_view text);

/// All words; ASCII letters in lower case.
std::vector<std::string> words(std::string_view text);

/// Targets of relative Markdown links to missing files, relative to `folder`.
std::vector<located> broken_links(std::string_view text,
                                  const std::filesystem::path& folder);

/// Words that occur twice in a row: "the the".
std::vector<located> doubled_words(std::string_view text);

/// The most frequent words, at most `count`, without short and very common
/// ones.
std::vector<repeated_word> frequent_words(std::string_view text,
                                          std::size_t count);

} // namespace review

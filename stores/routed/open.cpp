#include "troupe/stores/routed/open.hpp"

#include "troupe/stores/open_store.hpp"
#include "troupe/stores/routed/rules.hpp"
#include "troupe/stores/routed/store.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// A larger file is not one of rules.
constexpr std::size_t bytes_max = std::size_t{16} << 20U;

error failed_to_read(const std::string& file, int number) {
  return {number == ENOENT ? errc::not_found : errc::store_failed,
          fmt::format("read the rules in {}: {}",
                      file,
                      std::generic_category().message(number))};
}

result<std::string> read_text(const std::string& file) {
  using stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  const stream opened(std::fopen(file.c_str(), "re"), std::fclose);
  if (!opened)
    return failed_to_read(file, errno);
  std::string text;
  std::vector<char> block(std::size_t{64} << 10U);
  while (true) {
    errno = 0;
    const auto count = std::fread(block.data(), 1, block.size(), opened.get());
    text.append(block.data(), count);
    if (text.size() > bytes_max)
      return error(errc::invalid_argument,
                   fmt::format("read the rules in {}: the file is larger than "
                               "16 MiB",
                               file));
    if (std::ferror(opened.get()) != 0)
      return failed_to_read(file, errno);
    if (count < block.size())
      return text;
  }
}

// Names the database in the warnings of its store.
store_options options_for(const std::string& name,
                          const store_options& options) {
  auto made = options;
  if (options.on_warning)
    made.on_warning
      = [name, told = options.on_warning](const std::string& warning) {
          told(fmt::format("{}: {}", name, warning));
        };
  return made;
}

} // namespace

result<std::unique_ptr<store>> open_routed_store(const std::string& file,
                                                 const store_options& options) {
  const auto text = read_text(file);
  if (!text)
    return text.error();
  auto rules = app_rules::read(*text, file);
  if (!rules)
    return rules.error();
  std::vector<routed_part> parts;
  for (const auto& address : rules->addresses()) {
    auto name = without_password(address);
    auto opened = open_store(address, options_for(name, options));
    if (!opened)
      return error(opened.error().code(),
                   fmt::format("{}: {}", name, opened.error().message()));
    parts.push_back({std::move(name), std::move(*opened)});
  }
  auto made = std::make_unique<routed_store>(
    std::move(parts), [rules = *std::move(rules)](std::string_view app) {
      return rules.database_of(app);
    });
  return std::unique_ptr<store>(std::move(made));
}

} // namespace troupe

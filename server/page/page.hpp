// The page of the server: the files of server/page/, and the charts of reports
// in load/pages/, which are embedded when the program is built.

#pragma once

#include "troupe/server/http/router.hpp"

#include <array>
#include <string_view>

namespace troupe::serving {

/// A file of the page. It holds no data of users, so it needs no token.
struct page_file {
  std::string_view path;
  std::string_view type;
  std::string_view text;
};

/// Returns the files of the page.
std::array<page_file, 4> page_files();

/// Adds the routes of these files.
void add_page(router& routes);

} // namespace troupe::serving

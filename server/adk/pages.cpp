// The page of ADK, from a folder that the user has, and the requests that this
// page makes for itself. Without an answer to some of them it would show a
// question or an error.

#include "troupe/core/support/text_file.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe::serving {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{64} << 20U;

struct file_type {
  std::string_view ending;
  std::string_view name;
};

constexpr std::array file_types = {
  file_type{".css", "text/css; charset=utf-8"},
  file_type{".html", "text/html; charset=utf-8"},
  file_type{".ico", "image/x-icon"},
  file_type{".js", "text/javascript; charset=utf-8"},
  file_type{".json", "application/json"},
  file_type{".png", "image/png"},
  file_type{".svg", "image/svg+xml"},
  file_type{".txt", "text/plain; charset=utf-8"},
  file_type{".woff2", "font/woff2"},
};

std::string type_of(const fs::path& file) {
  const auto ending = file.extension().string();
  const auto found = std::ranges::find(file_types, ending, &file_type::ending);
  return found == file_types.end() ? "application/octet-stream"
                                   : std::string(found->name);
}

bool is_name(const std::string& segment) {
  return !segment.empty() && segment != "." && segment != ".."
         && segment.find('/') == std::string::npos
         && segment.find('\\') == std::string::npos;
}

// The file that the segments behind the first one name. Links out of the folder
// lead to no file.
result<fs::path> file_of(const fs::path& folder,
                         const std::vector<std::string>& segments) {
  const error absent(errc::not_found, "Not Found");
  std::error_code failure;
  const auto root = fs::canonical(folder, failure);
  if (failure)
    return absent;
  auto wanted = root;
  for (std::size_t index = 1; index < segments.size(); ++index) {
    const bool is_folder
      = index + 1 == segments.size() && segments[index].empty();
    if (!is_folder && !is_name(segments[index]))
      return absent;
    wanted /= is_folder ? "index.html" : segments[index];
  }
  const auto real = fs::canonical(wanted, failure);
  if (failure || !fs::is_regular_file(real, failure)
      || std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first
           != root.end())
    return absent;
  return real;
}

response read_file(const fs::path& folder, const request& asked) {
  const auto file = file_of(folder, asked.target.segments);
  if (!file)
    return failure(file.error());
  auto text = read_text_file(*file, file_bytes_max);
  if (!text)
    return failure({errc::not_found, "Not Found"});
  response answer;
  answer.content_type = type_of(*file);
  answer.body = std::move(*text);
  return std::move(answer)
    .with("x-content-type-options", "nosniff")
    .with("content-security-policy", "frame-ancestors 'none'");
}

void send_file(const served_ptr& on, exchange asked) {
  on->threads->work([on, asked = std::move(asked)] {
    asked.to.send(read_file(on->options.ui_folder, asked.asked));
  });
}

void redirect(const served_ptr&, exchange asked) {
  asked.to.send(text_response(307, "").with("location", "/dev-ui/"));
}

// Answers each request with this JSON.
route_handler always(std::string text) {
  return [text = std::move(text)](exchange asked) {
    asked.to.send(json_text_response(text).with("cache-control", "no-store"));
  };
}

} // namespace

void add_pages(router& routes, const served_ptr& on) {
  routes.add("GET", "/", handled_by(on, redirect));
  routes.add("GET", "/dev-ui", handled_by(on, redirect));
  routes.add("GET",
             "/dev-ui/assets/config/runtime-config.json",
             always(R"({"backendUrl":"","telemetry":null})"));
  routes.add("GET",
             "/dev-ui/config",
             always(R"({"logo_text":null,"logo_image_url":null})"));
  routes.add("GET", "/dev-ui/{file...}", handled_by(on, send_file));
  // Keeps the page from asking whether it may send data to others.
  for (const auto* method : {"GET", "POST"})
    routes.add(method, "/config/telemetry", always(R"({"telemetry":false})"));
  add_traces(routes, on);
  for (const auto* noun : {"eval_sets", "eval_results", "tests"})
    routes.add("GET", std::string("/dev/apps/{app}/") + noun, always("[]"));
}

} // namespace troupe::serving

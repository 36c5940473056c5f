// A request that is read in pieces is the same as one that is read whole, and
// the parts of its target can be encoded and decoded again. The path of a
// request from the bytes to its handler is that of the server.

#include "troupe/server/http/any_connection.hpp"
#include "troupe/server/http/router.hpp"

#include "fuzz_target.hpp"
#include <boost/asio/buffer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

using namespace troupe::serving;
using troupe::testing::expect;

namespace {

// The request in `text`, or the status of its refusal; 0 if it is not whole.
struct outcome {
  int status = 0;
  std::optional<request> read;
};

outcome read_in_pieces(std::string_view text,
                       const std::vector<std::size_t>& cuts) {
  request_parser parser;
  parser.header_limit(2'048);
  parser.body_limit(2'048);
  error_code failure;
  std::size_t used = 0;
  for (const auto cut : cuts) {
    // The parser takes a part of the bytes and wants the rest again.
    while (used < cut && !parser.is_done()) {
      const auto taken
        = parser.put(net::buffer(text.data() + used, cut - used), failure);
      if (failure == beast::http::error::need_more)
        failure = {};
      if (failure) {
        const auto refused = refusal_of(failure);
        return {refused ? refused->status : -1, {}};
      }
      used += taken;
      if (taken == 0)
        break;
    }
  }
  if (!parser.is_done())
    return {};
  request made;
  if (const auto refused
      = troupe::serving::read_request(parser, "127.0.0.1", made))
    return {refused->status, {}};
  made.body = std::move(parser.get().body());
  return {200, std::move(made)};
}

// Answers nothing.
class deaf_client final : public client {
public:
  void send(response answer) override {
    status = answer.status;
    expect(head_of(answer, body_framing::length, true, 0).ends_with("\r\n\r\n"),
           "an answer has a head");
  }

  void begin(response) override {}

  void write(std::string, std::function<void()>) override {}

  void end(bool) override {}

  void watch(departure_watch) override {}

  int status = 0;
};

void route(request asked) {
  router routes;
  routes.add("GET", "/apps/{app}/users/{user}", [](exchange found) {
    expect(!found.path["app"].empty() && !found.path["user"].empty(),
           "a variable of a path has text");
    found.to.send(text_response(200, "ok"));
  });
  const auto to = std::make_shared<deaf_client>();
  auto found = routes.find(asked, caller());
  const auto* refused = std::get_if<response>(&found);
  if (refused == nullptr) {
    auto& admitted = std::get<admission>(found);
    (*admitted.handle)({std::move(asked),
                        std::move(admitted.path),
                        std::move(admitted.who),
                        reply(to)});
  }
  expect(refused != nullptr || to->status != 0, "a request is answered");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto text = troupe::testing::text_of(bytes, size);
  auto whole = read_in_pieces(text, {text.size()});
  const auto parts = read_in_pieces(text, troupe::testing::cuts_of(text));
  // A mistake may be seen earlier in pieces, so the refusals can differ.
  expect(whole.read.has_value() == parts.read.has_value(),
         "pieces are accepted as the whole is");
  if (whole.read) {
    expect(whole.read->body == parts.read->body
             && whole.read->headers == parts.read->headers,
           "pieces change no request");
    for (const auto& each : whole.read->target.segments)
      expect(percent_decoded(percent_encoded(each), false).value() == each,
             "a segment is encoded and decoded");
    route(std::move(*whole.read));
  }
  return 0;
}

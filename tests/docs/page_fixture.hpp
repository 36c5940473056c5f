// The surroundings of a sample of a page: a runtime, and the lines that the
// sample prints.

#pragma once

#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <iostream>
#include <memory>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Keeps the text that is printed on `std::cout` while this lives, and prints
/// it at the end: Boost.Test writes its reports there, too.
class printed_text {
public:
  printed_text() : before_(std::cout.rdbuf(text_.rdbuf())) {}

  printed_text(const printed_text&) = delete;
  printed_text& operator=(const printed_text&) = delete;

  ~printed_text() {
    std::cout.rdbuf(before_);
    std::cout << text_.str();
  }

  std::string text() const { return text_.str(); }

private:
  std::ostringstream text_;
  std::streambuf* before_;
};

/// The names that samples use without making them.
struct page_fixture {
  troupe::runtime runtime = troupe::runtime::open().value();
  session_service& sessions = runtime.sessions();
  session_key key = sessions.create({"my_app", "ann", "s1"}).value().key();
  printed_text printed;

  /// The merged state of the session.
  state_object state() const { return sessions.get(key).value().state().all(); }
};

/// A model that gives these replies to every agent, in order.
inline model_ptr saying(std::vector<scripted_reply> replies) {
  return std::make_shared<scripted_model>(script{{"*", std::move(replies)}});
}

/// A model whose answer is the instruction that it got.
inline model_ptr echo() {
  return saying({{.text = "${instruction}"}});
}

/// A reply that calls a tool.
inline scripted_reply calling(std::string tool, json args) {
  scripted_reply reply;
  reply.function_calls = {{"", std::move(tool), std::move(args)}};
  return reply;
}

} // namespace troupe::testing

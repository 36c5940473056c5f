// The common part of reading answers of all vendors, in pieces or whole.
// Internal.
//
// `Answer` is the vendor's part. It collects documents, and has `has_ended()`
// and `whole() &&`.

#pragma once

#include "troupe/models/formats/document.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/wire_format.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Reads a stream with one document in each event.
template <class Answer>
class answer_stream : public stream_reader {
public:
  template <class... Arguments>
  explicit answer_stream(const Arguments&... arguments)
    : answer_(arguments...) {}

  result<void> take(const sse_event& next,
                    std::vector<model_response>& pieces) override {
    // An empty event only keeps the connection alive.
    if (next.data.empty())
      return {};
    return document_.read(next.data, [&](const wire_node& said) {
      return take_document(said, next.name, pieces);
    });
  }

  bool has_ended() const noexcept override { return answer_.has_ended(); }

  result<model_response> finish() override {
    if (!answer_.has_ended())
      return broken_off();
    return std::move(answer_).whole();
  }

protected:
  Answer& answer() noexcept { return answer_; }

private:
  /// Passes the document of an event with this name to the answer.
  virtual result<void> take_document(const wire_node& said,
                                     std::string_view event_name,
                                     std::vector<model_response>& pieces)
    = 0;

  wire_document document_;
  Answer answer_;
};

/// Reads an answer that is one document, which `take` passes to the answer.
/// Fails as `take` and `Answer::whole` do, and on a text that is no document.
template <class Answer, class Take>
result<model_response>
read_document(std::string_view body, Answer answer, Take take) {
  wire_document document;
  if (auto taken = document.read(
        body, [&](const wire_node& said) { return take(answer, said); });
      !taken)
    return taken.error();
  return std::move(answer).whole();
}

} // namespace troupe

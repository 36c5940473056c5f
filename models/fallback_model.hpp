// A list of models: the next one is asked if one is down or over its limit.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/models/model.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A model of a list that has failed, and the next one, which is asked now.
struct model_fallback {
  std::string agent;  ///< Name of the calling agent.
  std::string failed; ///< Name of the model that has failed.
  std::string next;   ///< Name of the model that is asked now.
  error reason;       ///< The failure.
};

/// Settings of a `fallback_model`.
struct fallback_options {
  /// Time for which a model that has failed is asked after all others, by the
  /// clock of the request's environment. 0: the list always starts at its
  /// beginning.
  std::chrono::milliseconds rest{30'000};
  /// Called when the next model is asked, on any thread. Must be short and must
  /// not throw.
  std::function<void(const model_fallback&)> on_fallback = {};
};

/// Returns true if the failed call of a model says that the model is down or
/// over its limit, so another one may answer: its code is `errc::busy` or
/// `errc::deadline_exceeded`, or the model has set the note.
bool is_outage(const error& why, const outage_note& note) noexcept;

/// Asks models one after another until one answers. Thread-safe if they are.
///
/// The next model is asked if one is down or over its limit (`is_outage`).
/// Models over HTTP set it after their last attempt
/// for broken connections, connection time-outs, the statuses 408, 429 and all
/// from 500 on, and failures inside a stream that correspond to one of them.
/// All other failures end the call, since another model would not mend them: a
/// request that is refused, a key that is wrong, a cancelled call. An answer
/// that a filter has blocked is an answer.
///
/// A model that has delivered a piece of an answer is not replaced: its failure
/// ends the call. The reason of a call that several models have failed names
/// all of them.
///
/// An answer without `modelVersion` gets the name of its model there.
class fallback_model : public model {
public:
  /// Takes the models, in the order in which they are asked. Throws
  /// `errc::invalid_argument` if there is none, or one is null.
  explicit fallback_model(std::vector<model_ptr> models,
                          fallback_options options = {});

  /// The names of the models, joined by `" or "`.
  std::string name() const override;

  void generate(model_request request, model_reply reply) override;

  /// Fails as the first of the models that refuses the tools: each of them may
  /// be asked.
  result<void> check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                  bool beside_functions) const override;

private:
  struct member {
    explicit member(model_ptr which_) : which(std::move(which_)) {}

    const model_ptr which;
    // Microseconds since 1970 until which the model rests.
    std::atomic<std::int64_t> rests_until{0};
  };

  struct state {
    std::vector<std::unique_ptr<member>> members;
    fallback_options options;
  };

  class call;

  std::shared_ptr<const state> state_;
};

} // namespace troupe

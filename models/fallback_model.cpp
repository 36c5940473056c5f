#include "troupe/models/fallback_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe {

namespace {

// Names the model in an answer that does not.
void sign(model_response& answer, const std::string& name) {
  auto fields
    = answer.extra.is_null() ? json::object() : json(answer.extra.data());
  if (!fields.is_object() || fields.contains("modelVersion"))
    return;
  fields["modelVersion"] = name;
  answer.extra = std::move(fields);
}

} // namespace

bool is_outage(const error& why, const outage_note& note) noexcept {
  return note.is_set() || why.code() == errc::busy
         || why.code() == errc::deadline_exceeded;
}

// One call, with all models that it asks. Its steps run one after another: a
// model is asked after the one before it has failed.
class fallback_model::call : public std::enable_shared_from_this<call> {
public:
  call(std::shared_ptr<const state> of,
       model_request request,
       model_reply reply)
    : of_(std::move(of)),
      request_(std::move(request)),
      reply_(std::move(reply)) {
    const auto now = this->now();
    std::vector<member*> resting;
    for (const auto& each : of_->members)
      (each->rests_until.load() > now ? resting : order_).push_back(each.get());
    // If all models rest, all are asked nevertheless.
    order_.insert(order_.end(), resting.begin(), resting.end());
  }

  void ask() {
    auto& asked = *order_[next_];
    auto request = request_;
    auto note = std::make_shared<outage_note>();
    request.outage = note;
    asked.which->generate(std::move(request),
                          [self = shared_from_this(), note = std::move(note)](
                            result<model_response> answer) {
                            self->take(std::move(answer), *note);
                          });
  }

private:
  std::int64_t now() const {
    return request_.environment
             ? request_.environment->now().time_since_epoch().count()
             : 0;
  }

  void take(result<model_response> answer, const outage_note& note) {
    if (answer && answer->partial) {
      has_delivered_ = true;
      return reply_(std::move(answer));
    }
    auto& asked = *order_[next_];
    if (answer) {
      asked.rests_until.store(0);
      sign(*answer, asked.which->name());
      return end(std::move(answer));
    }
    const auto& why = answer.error();
    const bool is_down
      = is_outage(why, note) && !request_.stop.stop_requested();
    if (is_down) {
      if (request_.environment)
        asked.rests_until.store(
          now()
          + std::chrono::duration_cast<timestamp::duration>(of_->options.rest)
              .count());
      // A caller above may have models of its own to ask.
      if (request_.outage)
        request_.outage->set();
    }
    failures_.push_back(why);
    if (!is_down || has_delivered_ || next_ + 1 == order_.size())
      return end(outcome());
    go_on(why);
  }

  void go_on(const error& why) {
    const auto& failed = order_[next_]->which;
    ++next_;
    const auto& next = order_[next_]->which;
    if (of_->options.on_fallback)
      of_->options.on_fallback(
        {request_.agent, failed->name(), next->name(), why});
    // The model before this one has replied, so an exception has no other way
    // to the caller.
    std::string thrown;
    try {
      return ask();
    } catch (const std::exception& failure) {
      thrown = failure.what();
    } catch (...) {
      thrown = "it threw an exception that is not a std::exception";
    }
    if (has_ended_)
      return;
    failures_.emplace_back(errc::model_failed, std::move(thrown));
    end(outcome());
  }

  void end(result<model_response> answer) {
    has_ended_ = true;
    reply_(std::move(answer));
  }

  // The failure of the only model, or one error for all of them. A cancelled
  // call stays one.
  error outcome() const {
    const auto& last = failures_.back();
    if (failures_.size() == 1 || last.code() == errc::cancelled)
      return last;
    std::string reasons;
    for (std::size_t index = 0; index < failures_.size(); ++index)
      reasons += fmt::format("{}{}: {}",
                             index == 0 ? "" : "; ",
                             order_[index]->which->name(),
                             failures_[index].message());
    return {last.code() == errc::busy ? errc::model_failed : last.code(),
            fmt::format("{} of {} models failed: {}",
                        failures_.size(),
                        order_.size(),
                        reasons)};
  }

  const std::shared_ptr<const state> of_;
  const model_request request_;
  const model_reply reply_;
  std::vector<member*> order_;
  std::size_t next_ = 0; // Index in `order_` of the model that is asked.
  bool has_delivered_ = false;
  std::atomic<bool> has_ended_{false};
  std::vector<error> failures_; // In the order of `order_`.
};

fallback_model::fallback_model(std::vector<model_ptr> models,
                               fallback_options options) {
  if (models.empty())
    throw error(errc::invalid_argument, "a list of models is empty");
  if (std::ranges::count(models, nullptr) > 0)
    throw error(errc::invalid_argument, "a list of models has a null");
  state made;
  made.options = std::move(options);
  for (auto& each : models)
    made.members.push_back(std::make_unique<member>(std::move(each)));
  state_ = std::make_shared<const state>(std::move(made));
}

std::string fallback_model::name() const {
  std::string names;
  for (const auto& each : state_->members)
    names += (names.empty() ? "" : " or ") + each->which->name();
  return names;
}

void fallback_model::generate(model_request request, model_reply reply) {
  std::make_shared<call>(state_, std::move(request), std::move(reply))->ask();
}

result<void>
fallback_model::check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                   bool beside_functions) const {
  for (const auto& each : state_->members)
    if (auto fit = each->which->check_vendor_tools(wanted, beside_functions);
        !fit)
      return fit;
  return {};
}

} // namespace troupe

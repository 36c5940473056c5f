#include "troupe/agents/files/named_toolsets.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <latch>
#include <optional>

namespace troupe {

// Stands for a set until it is opened.
class named_toolsets::opened_later final : public toolset {
public:
  const std::string& name() const noexcept override { return real_->name(); }

  pending<tool_list> tools(std::stop_token stop) override {
    return real_->tools(std::move(stop));
  }

  tool_list known_tools() const override { return real_->known_tools(); }

  /// Called before the set is used.
  void become(toolset_ptr real) { real_ = std::move(real); }

private:
  toolset_ptr real_;
};

toolset_ptr named_toolsets::add(const file_place& at,
                                const mcp_source& source) {
  const auto known = std::ranges::find(all_, source, &named::source);
  if (known != all_.end())
    return known->set;
  all_.push_back({at, source, std::make_shared<opened_later>()});
  return all_.back().set;
}

result<void> named_toolsets::open(const opener& make) {
  for (const auto& each : all_)
    try {
      auto made = make(each.source);
      if (!made)
        return fail_at(each.at, "open_toolset has returned null");
      each.set->become(std::move(made));
    } catch (const std::exception& failure) {
      return fail_at(each.at, failure.what());
    }
  std::latch answered(static_cast<std::ptrdiff_t>(all_.size()));
  std::vector<std::optional<error>> failures(all_.size());
  for (std::size_t index = 0; index < all_.size(); ++index)
    all_[index].set->tools({}).then(
      [&answered, &failure = failures[index]](const result<tool_list>& known) {
        if (!known)
          failure = known.error();
        answered.count_down();
      });
  answered.wait();
  for (std::size_t index = 0; index < all_.size(); ++index)
    if (failures[index])
      return fail_at(all_[index].at, failures[index]->message());
  return {};
}

} // namespace troupe

#include "troupe/agents/files/stand_ins.hpp"

#include "troupe/agents/turns/name.hpp"
#include "troupe/core/support/passwords.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace troupe {

namespace {

error cannot_run() {
  return {errc::invalid_argument,
          "this agent was read to be shown and cannot run; read its file "
          "without agent_file_options::only_shown"};
}

class unopened_model final : public model {
public:
  explicit unopened_model(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }

  void generate(model_request, model_reply reply) override {
    reply(cannot_run());
  }

  result<void> check_vendor_tools(const std::vector<vendor_tool>&,
                                  bool) const override {
    return {};
  }

private:
  const std::string name_;
};

// A call whose answer is known.
class known_list final : public detail::call<tool_list> {
public:
  explicit known_list(tool_list known) : known_(std::move(known)) {}

  std::optional<result<tool_list>> answer_now() override { return known_; }

  void start(completion<tool_list> done) override { done(known_); }

  result<tool_list> wait() override { return known_; }

private:
  const tool_list known_;
};

class unopened_toolset final : public toolset {
public:
  unopened_toolset(std::string name, std::vector<tool> known)
    : name_(std::move(name)),
      known_(std::make_shared<const std::vector<tool>>(std::move(known))) {}

  const std::string& name() const noexcept override { return name_; }

  pending<tool_list> tools(std::stop_token) override {
    return pending<tool_list>(std::make_unique<known_list>(known_));
  }

  tool_list known_tools() const override { return known_; }

private:
  const std::string name_;
  const tool_list known_;
};

json refuse_call(const json&, tool_context&) {
  throw cannot_run();
}

} // namespace

result<model_ptr> shown_model(std::string name) {
  return model_ptr(std::make_shared<unopened_model>(std::move(name)));
}

tool shown_tool(const tool& made) {
  if (!made.options().run)
    return made;
  auto options = made.options();
  options.run = refuse_call;
  return tool(std::move(options));
}

std::optional<tool> shown_program_tool(const std::string& name) {
  if (!is_tool_name(name))
    return std::nullopt;
  return tool(tool_options{.name = name, .run = refuse_call});
}

// The server knows its tools under names that a model may not have; those
// cannot be shown before the server has told them.
toolset_ptr shown_toolset(const mcp_source& source) {
  std::vector<tool> known;
  for (const auto& name : source.tool_filter) {
    auto shown = source.tool_name_prefix.empty()
                   ? name
                   : source.tool_name_prefix + '_' + name;
    if (is_tool_name(shown))
      known.emplace_back(
        tool_options{.name = std::move(shown), .run = refuse_call});
  }
  auto name = source.command.empty()
                ? without_passwords(source.url.substr(0, source.url.find('?')))
                : source.command;
  return std::make_shared<unopened_toolset>(std::move(name), std::move(known));
}

} // namespace troupe

// Reads the field `tools` of an agent file: tools of the program by name,
// agents as tools, long-running tools, programs, and APIs.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/files/access.hpp"
#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/tool.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The name in an item of a list: `NAME` or `{name: NAME}`. A field named
/// `besides` is also allowed there, unless it is empty. `what` names the kind
/// of item for error messages. Fails with `errc::invalid_argument`.
result<std::string> item_name(const std::filesystem::path& file,
                              const yaml_node& item,
                              std::string_view what,
                              std::string_view besides = {});

/// Failures are `errc::invalid_argument` and name file and line.
class tool_reader {
public:
  using agent_reader = std::function<result<agent>(
    const std::filesystem::path& file, const yaml_node& node)>;

  /// `known` and `access` outlive the reader. `read_agent` reads agents that
  /// are tools.
  tool_reader(const tool_registry& known,
              const file_access& access,
              agent_reader read_agent)
    : known_(known),
      access_(access),
      read_agent_(std::move(read_agent)) {}

  result<std::vector<tool>> read(const field_reader& fields) const;

private:
  result<std::vector<tool>> read_item(const std::filesystem::path& file,
                                      const yaml_node& item) const;
  result<tool> read_tool(const std::filesystem::path& file,
                         const yaml_node& item) const;
  result<tool> read_known_tool(const std::filesystem::path& file,
                               const yaml_node& item) const;
  result<tool> find_tool(const file_place& at, std::string_view name) const;
  error unknown_tool(const file_place& at, std::string_view name) const;
  result<tool> read_made_tool(const field_reader& outer,
                              const yaml_node& args) const;
  result<tool> read_long_running_tool(const field_reader& fields) const;
  result<tool> read_agent_tool(const field_reader& fields) const;

  const tool_registry& known_;
  const file_access& access_;
  const agent_reader read_agent_;
};

} // namespace troupe

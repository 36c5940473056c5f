#include "troupe/cli/commands/memory.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"
#include "troupe/stores/memory_service.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace troupe::cli {

namespace {

// Opens the memory, calls `act(memory_service&)`, and prints its answer.
template <class Act>
int on_memory(const std::string& address, interrupts& signals, const Act& act) {
  signals.begin();
  const auto opened = open_memory_service(address);
  if (!opened)
    return report(opened.error());
  output target(STDOUT_FILENO, signals.descriptor());
  const result<json> told = act(**opened);
  return end(told ? print_line(target, *told) : told.error(), target, signals);
}

// A memory with the session that it is from; null for a text.
json found_line(const memory_entry& each) {
  auto line = to_json(each);
  line["session"] = each.session.empty() ? json() : json(each.session);
  return line;
}

} // namespace

memory_command::memory_command(CLI::App& program)
  : program_command(program,
                    "memory",
                    "Add sessions to the memory of their users, search it, and "
                    "remove from it") {
  const std::string memory = " --memory sqlite:memory.db";
  show_example(parser(),
               "troupe memory search --app press --user ann --query 'dog'"
                 + memory);
  parser().require_subcommand(1);
  // Set before the subcommands, which inherit it.
  parser().footer(
    "Exit codes: 0 done; 1 it failed; 2 the command line is wrong;\n130 and "
    "143 after Ctrl-C and SIGTERM.");
  auto& add = add_subcommand(
    "add",
    "Add a session to the memory of its user, in place of what is remembered "
    "of it, and print the number of its memories",
    "troupe sessions create --app press --user ann --session s1\n"
    "troupe memory add --app press --user ann --session s1"
      + memory);
  add.add_option("--session", session_, "Session")->required()->type_name("S");
  store_.add_to(add);
  add_ = &add;
  auto& search = add_subcommand(
    "search",
    "Print the memories of a user that share a word with a text, the best "
    "first",
    "troupe memory search --app press --user ann --query 'dog'" + memory);
  search.add_option("--query", query_, "Text to search for")
    ->required()
    ->type_name("TEXT");
  search.add_option("--limit", limit_, "At most N memories")
    ->type_name("N")
    ->check(number_from(1))
    ->capture_default_str();
  search_ = &search;
  auto& remove = add_subcommand(
    "remove",
    "Remove the memory of a user, or with --session that of a session; the "
    "session itself stays",
    "troupe memory remove --app press --user ann --session s1" + memory);
  // A removal needs the user's name in full.
  remove.get_option("--user")->required();
  const auto not_empty = [](const std::string& text) {
    return text.empty() ? "is empty; leave the option out to remove more"
                        : std::string();
  };
  remove.add_option("--session", session_, "Session; default: all")
    ->type_name("S")
    ->check(not_empty);
  remove
    .add_option("--id", id_, "Only the memory of this id, as search prints it")
    ->type_name("ID")
    ->check(not_empty);
}

CLI::App& memory_command::add_subcommand(const std::string& name,
                                         const std::string& description,
                                         const std::string& example) {
  auto& added = *parser().add_subcommand(name, description);
  show_example(added, example);
  added.add_option("--app", app_, "App")->required()->type_name("A");
  added.add_option("--user", user_, "User")
    ->type_name("U")
    ->capture_default_str();
  store_.add_needed_memory_to(added);
  return added;
}

int memory_command::execute(interrupts& signals) const {
  if (add_->parsed())
    return add(signals);
  return search_->parsed() ? search(signals) : remove(signals);
}

int memory_command::add(interrupts& signals) const {
  return on_sessions(
    store_,
    signals,
    [this](session_service& sessions, output& target) -> result<void> {
      const auto count = sessions.add_to_memory({app_, user_, session_}).get();
      if (!count)
        return count.error();
      auto line = json::object();
      line["memories"] = *count;
      return print_line(target, line);
    });
}

int memory_command::search(interrupts& signals) const {
  return on_memory(
    store_.memory(), signals, [this](memory_service& kept) -> result<json> {
      const auto found = kept.search(app_, user_, query_, limit_);
      if (!found)
        return found.error();
      auto line = json::object();
      line["memories"] = json::array();
      for (const auto& each : *found)
        line["memories"].push_back(found_line(each));
      return line;
    });
}

int memory_command::remove(interrupts& signals) const {
  return on_memory(
    store_.memory(), signals, [this](memory_service& kept) -> result<json> {
      const auto removed
        = !id_.empty()       ? kept.remove(app_, user_, session_, id_)
          : session_.empty() ? kept.remove_user(app_, user_)
                             : kept.remove_session({app_, user_, session_});
      if (!removed)
        return removed.error();
      auto line = json::object();
      line["removed"] = *removed;
      return line;
    });
}

} // namespace troupe::cli

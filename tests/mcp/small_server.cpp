// An MCP server over stdio whose behaviour the tests choose by arguments.
//
// Arguments: `--stateless` knows server/discover; `--subscriptions` has them;
// `--ends-at-probe` exits at a
// request before initialize; `--mute` answers nothing; `--stubborn` ignores the
// end of its input and SIGTERM; `--greets` writes text that is no message;
// `--version V` answers with that version; `--pages` lists two tools at a time;
// `--same-page` repeats its first page; `--child` starts a process that waits;
// `--wordy` describes a tool with 100,000 bytes.

#include <dirent.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

using json = nlohmann::json;

class small_server {
public:
  explicit small_server(std::vector<std::string> words)
    : words_(std::move(words)) {}

  int run() {
    if (has("--stubborn"))
      std::signal(SIGTERM, SIG_IGN);
    if (has("--greets"))
      std::cout << "welcome\n\n{\"no\": \"message\"}\n[1]\n" << std::flush;
    std::cerr << "small server is ready" << std::endl;
    if (has("--child"))
      child_ = ::fork();
    while (has("--child") && child_ == 0)
      ::pause();
    std::string line;
    while (std::getline(std::cin, line))
      if (!has("--mute"))
        take(json::parse(line));
    while (has("--stubborn"))
      ::pause();
    return 0;
  }

private:
  bool has(const std::string& word) const {
    return std::ranges::find(words_, word) != words_.end();
  }

  std::string after(const std::string& word) const {
    const auto found = std::ranges::find(words_, word);
    return found != words_.end() && found + 1 != words_.end() ? *(found + 1)
                                                              : "";
  }

  static void send(const json& message) {
    std::cout << message.dump() << '\n' << std::flush;
  }

  static void answer(const json& id, const json& result) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
  }

  static void refuse(const json& id, int code, const std::string& why) {
    send({{"jsonrpc", "2.0"},
          {"id", id},
          {"error", {{"code", code}, {"message", why}}}});
  }

  static json text(const std::string& said) {
    return {{"content", json::array({json{{"type", "text"}, {"text", said}}})}};
  }

  void take(const json& message) {
    const auto method = message.value("method", "");
    const auto id = message.value("id", json());
    const auto params = message.value("params", json::object());
    if (method == "server/discover" && has("--stateless"))
      return answer(id,
                    {{"supportedVersions", json::array({"2026-07-28"})},
                     {"resultType", "complete"}});
    if (method == "initialize") {
      const auto version = after("--version");
      return answer(
        id,
        {{"protocolVersion", version.empty() ? "2025-11-25" : version},
         {"capabilities", {{"tools", {{"listChanged", true}}}}},
         {"serverInfo", {{"name", "small"}, {"version", "1"}}}});
    }
    if (method == "notifications/initialized") {
      // Ids of both sides are separate: the client's first one is 1, too.
      send({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}});
      send({{"jsonrpc", "2.0"}, {"id", "r"}, {"method", "roots/list"}});
      return;
    }
    if (method == "notifications/cancelled") {
      cancelled_.push_back(params["requestId"]);
      return;
    }
    if (method.empty()) {
      answers_.push_back(message);
      return;
    }
    if (has("--ends-at-probe") && method == "server/discover")
      std::exit(4);
    if (has("--stateless")
        && !params.value("_meta", json::object())
              .contains("io.modelcontextprotocol/protocolVersion"))
      return refuse(id, -32602, "there is no version in _meta");
    if (method == "subscriptions/listen" && has("--subscriptions"))
      return subscribe(id, params);
    if (method == "tools/list")
      return list(id, params);
    if (method == "tools/call")
      return call(id, params);
    refuse(id, -32601, "Method not found");
  }

  void list(const json& id, const json& params) {
    ++lists_;
    const json any{{"type", "object"}};
    auto tools = json::array();
    const auto add = [&](const std::string& name, json more = json::object()) {
      json made{{"name", name}, {"inputSchema", any}};
      made.update(more);
      tools.push_back(std::move(made));
    };
    add("echo",
        {{"description", "says it again"},
         {"inputSchema",
          {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
           {"type", "object"},
           {"properties", {{"text", {{"type", "string"}}}}},
           {"required", json::array({"text"})},
           {"unevaluatedProperties", false}}},
         {"annotations", {{"readOnlyHint", true}}}});
    for (const auto* name : {"add",
                             "picture",
                             "fail",
                             "hang",
                             "exit",
                             "about",
                             "meet",
                             "lie",
                             "flood",
                             "huge",
                             "grow",
                             "odd.name/x"})
      add(name);
    if (has("--subscriptions"))
      add("unsubscribe");
    if (has("--wordy"))
      add("talk", {{"description", std::string(100'000, 'x')}});
    tools.push_back(json{{"title", "without a name"}});
    if (has_grown_)
      add("grown");
    json page{{"tools", tools}};
    if (has("--pages") || has("--same-page")) {
      const auto begin
        = static_cast<std::size_t>(std::stoul(params.value("cursor", "0")));
      auto part = json::array();
      for (auto index = begin; index < std::min(begin + 2, tools.size());
           ++index)
        part.push_back(tools[index]);
      page["tools"] = part;
      if (has("--same-page"))
        page["nextCursor"] = "2";
      else if (begin + 2 < tools.size())
        page["nextCursor"] = std::to_string(begin + 2);
    }
    answer(id, page);
  }

  void call(const json& id, const json& params) {
    const auto name = params["name"].get<std::string>();
    const auto args = params.value("arguments", json::object());
    const auto meta = params.value("_meta", json::object());
    if (name == "echo")
      return answer(id, text(args["text"]));
    if (name == "add") {
      const json sum{{"sum", args["a"].get<int>() + args["b"].get<int>()}};
      auto said = text(sum.dump());
      said["structuredContent"] = sum;
      return answer(id, said);
    }
    if (name == "picture")
      return answer(
        id,
        {{"content",
          json::array(
            {json{
               {"type", "image"}, {"data", "aGk="}, {"mimeType", "image/png"}},
             json{{"type", "resource"},
                  {"resource", {{"uri", "file:///a"}, {"text", "words"}}}}})}});
    if (name == "fail") {
      auto said = text("no such city");
      said["isError"] = true;
      return answer(id, said);
    }
    if (name == "hang") {
      if (const auto token = meta.value("progressToken", json());
          !token.is_null())
        tell_progress(token, args.contains("tells"));
      ++hangs_; // Never answered.
      return exit_if_due();
    }
    if (name == "exit") {
      exit_after_hangs_ = args.value("hangs", 0);
      return exit_if_due();
    }
    if (name == "about")
      return answer(id, about(args));
    if (name == "meet")
      return meet(id, args);
    if (name == "lie") {
      answer(id.get<int>() + 1000, text("for nobody"));
      answer(std::to_string(id.get<int>()), text("a text as id"));
      answer(nullptr, text("no id"));
      answer(id, text("the truth"));
      return answer(id, text("said twice"));
    }
    if (name == "flood") {
      for (int count = 0; count < 20'000; ++count)
        send({{"jsonrpc", "2.0"},
              {"method", "notifications/progress"},
              {"params", {{"progressToken", -1}, {"progress", count}}}});
      return answer(id, text("done"));
    }
    if (name == "huge")
      return answer(id,
                    text(std::string(args["bytes"].get<std::size_t>(), 'x')));
    if (name == "grow") {
      has_grown_ = true;
      note_change();
      return answer(id, text("grown"));
    }
    if (name == "unsubscribe") {
      answer(std::exchange(subscription_, json()), json::object());
      return answer(id, text("done"));
    }
    if (name == "grown")
      return answer(id, text("new"));
    refuse(id, -32602, "Unknown tool: " + name);
  }

  // Reports changes of the list of tools, and nothing else.
  void subscribe(const json& id, const json& params) {
    if (params["notifications"] != json{{"toolsListChanged", true}})
      return refuse(id, -32602, "the subscription is for something else");
    ++subscriptions_;
    subscription_ = id;
    note("notifications/subscriptions/acknowledged",
         {{"notifications", params["notifications"]}});
  }

  void note_change() const {
    if (!has("--stateless") || !subscription_.is_null())
      note("notifications/tools/list_changed", json::object());
  }

  void note(const std::string& method, json params) const {
    if (!subscription_.is_null())
      params["_meta"]["io.modelcontextprotocol/subscriptionId"] = subscription_;
    send({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
  }

  // With `until_told`, repeats it until the client says something.
  static void tell_progress(const json& token, bool until_told) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    do
      send({{"jsonrpc", "2.0"},
            {"method", "notifications/progress"},
            {"params",
             {{"progressToken", token},
              {"progress", 1},
              {"total", 4},
              {"message", "a quarter"}}}});
    while (until_told && ::poll(&input, 1, 1) == 0);
  }

  // Calls of one turn may come in any order.
  void exit_if_due() const {
    if (exit_after_hangs_ < 0 || hangs_ < exit_after_hangs_)
      return;
    std::cerr << "out of paper" << std::endl;
    std::exit(3);
  }

  json about(const json& args) const {
    auto open = json::array();
    if (DIR* folder = ::opendir("/proc/self/fd")) {
      while (const auto* entry = ::readdir(folder))
        if (const std::string number = entry->d_name;
            number != "." && number != ".."
            && std::stoi(number) != ::dirfd(folder))
          open.push_back(std::stoi(number));
      ::closedir(folder);
    }
    const auto* held = std::getenv(args.value("variable", "NONE").c_str());
    const json facts{{"open", open},
                     {"pid", ::getpid()},
                     {"child", child_},
                     {"folder", std::filesystem::current_path().string()},
                     {"variable", held != nullptr ? json(held) : json()},
                     {"lists", lists_},
                     {"subscriptions", subscriptions_},
                     {"cancelled", cancelled_},
                     {"answers", answers_}};
    return {{"content", json::array()}, {"structuredContent", facts}};
  }

  // Answers in the reverse order once `count` calls wait.
  void meet(const json& id, const json& args) {
    waiting_.push_back({id, args["name"]});
    if (waiting_.size() < args["count"].get<std::size_t>())
      return;
    std::ranges::reverse(waiting_);
    for (const auto& [whom, name] : std::exchange(waiting_, {}))
      answer(whom, text(name));
  }

  const std::vector<std::string> words_;
  json cancelled_ = json::array();
  json answers_ = json::array();
  std::vector<std::pair<json, std::string>> waiting_;
  int hangs_ = 0;
  int exit_after_hangs_ = -1; // Below 0: never.
  pid_t child_ = 0;
  int lists_ = 0;
  int subscriptions_ = 0;
  json subscription_; // Id of the request; null: none.
  bool has_grown_ = false;
};

} // namespace

int main(int count, char** words) {
  return small_server(std::vector<std::string>(words + 1, words + count)).run();
}

#include "troupe/models/recording_model.hpp"

#include "troupe/core/support/hidden_characters.hpp"
#include "troupe/core/support/output_file.hpp"
#include "troupe/models/fallback_model.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace troupe {

namespace {

error failed(const error& why) {
  return {why.code(), "record a model's answer: " + why.message()};
}

} // namespace

recording::recording(output_file file)
  : file_(std::make_unique<output_file>(std::move(file))) {}

recording::~recording() = default;

result<std::shared_ptr<recording>>
recording::open(const std::filesystem::path& file) {
  auto opened = output_file::open(
    file, output_file::readers::owner, output_file::placement::at_once);
  if (!opened)
    return failed(opened.error());
  return std::make_shared<recording>(std::move(*opened));
}

result<void> recording::add(std::string_view agent,
                            const result<model_response>& answer,
                            std::chrono::nanoseconds latency) {
  auto line = json::object();
  line["agent"] = agent;
  if (answer) {
    line["content"] = to_json(answer->content);
    if (!answer->extra.is_null())
      line["extra"] = answer->extra.data();
  } else {
    line["error"] = answer.error().message();
  }
  line["latency_ms"]
    = std::chrono::duration<double, std::milli>(latency).count();
  const auto text = visible_json(line) + '\n';
  const std::lock_guard guard(mutex_);
  if (auto written = file_->write(text); !written)
    return failed(written.error());
  return {};
}

void recording_model::generate(model_request request, model_reply reply) {
  const auto begun = std::chrono::steady_clock::now();
  auto agent = request.agent;
  auto outage = request.outage;
  asked_->generate(
    std::move(request),
    [kept = kept_,
     agent = std::move(agent),
     outage = std::move(outage),
     begun,
     reply = std::move(reply)](result<model_response> answer) {
      if (answer && answer->partial)
        return reply(std::move(answer));
      // A list asks its next model, whose answer is that of the call.
      if (!answer && outage && is_outage(answer.error(), *outage))
        return reply(std::move(answer));
      if (auto done
          = kept->add(agent, answer, std::chrono::steady_clock::now() - begun);
          !done)
        return reply(done.error());
      reply(std::move(answer));
    });
}

result<script> read_script(const std::string& text) {
  auto whole = parse_json(text);
  if (whole
      && !(whole->is_object() && whole->contains("agent")
           && (*whole)["agent"].is_string()))
    return script_from_json(*whole);
  // Reads one reply per line. A broken script of another form is reported as a
  // whole.
  if (!whole && text.find("{\"agent\":") != 0)
    return whole.error();
  script replies;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos)
      continue;
    const auto bad = [number](std::string_view why) {
      return error(errc::invalid_argument,
                   fmt::format("line {}: {}", number, why));
    };
    auto data = parse_json(line);
    if (!data)
      return bad(data.error().message());
    if (!data->is_object() || !data->contains("agent")
        || !(*data)["agent"].is_string())
      return bad("expected an object with 'agent'");
    const auto agent = (*data)["agent"].get<std::string>();
    data->erase("agent");
    auto one = json::object();
    one[agent] = json::array({std::move(*data)});
    auto read = script_from_json(one);
    if (!read)
      return bad(read.error().message());
    replies[agent].push_back(std::move(read->at(agent).front()));
  }
  return replies;
}

} // namespace troupe

#include "troupe/load/prices.hpp"

#include "troupe/agents/files/fields.hpp"
#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace troupe::load {

namespace {

constexpr std::size_t prices_bytes_max = std::size_t{4} << 20U;
constexpr std::size_t prices_nodes_max = std::size_t{1} << 18U;
constexpr double tokens_per_price = 1e6;

// A count of usageMetadata; 0 if it is left out or is no count.
std::uint64_t count_of(const json& usage, const char* name) {
  const auto found = usage.find(name);
  if (found == usage.end() || !found->is_number_integer())
    return 0;
  // Bounded, so that sums of counts in a log of another program fit.
  constexpr std::int64_t count_max = std::int64_t{1} << 50U;
  return static_cast<std::uint64_t>(
    std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, count_max));
}

double cost_of(const billed_tokens& tokens, const model_prices& prices) {
  const auto part = [](std::uint64_t count, double price) {
    return static_cast<double>(count) * price / tokens_per_price;
  };
  return part(tokens.input, prices.input)
         + part(tokens.cached_input, prices.cached_input.value_or(prices.input))
         + part(tokens.output, prices.output)
         + part(tokens.thoughts, prices.thoughts.value_or(prices.output));
}

result<void> check_price_fields(const field_reader& fields,
                                std::string_view what,
                                const std::vector<std::string_view>& known) {
  if (fields.node().kind != yaml_node::form::map)
    return fail_at(fields.at(),
                   fmt::format("{} must be a mapping with {}, not {}",
                               what,
                               fmt::join(known, ", "),
                               to_string(fields.node().kind)));
  for (const auto& each : fields.node().fields)
    if (std::ranges::find(known, each.name) == known.end())
      return fail_at({&fields.file(), each.line},
                     fmt::format("{} has no field '{}'; it has {}",
                                 what,
                                 each.name,
                                 fmt::join(known, ", ")));
  return {};
}

result<std::optional<double>> read_price(const field_reader& fields,
                                         std::string_view name) {
  const auto* found = fields.find(name);
  if (found == nullptr)
    return std::optional<double>();
  const auto held = troupe::to_json(*found);
  if (!held.is_number() || !(held.get<double>() >= 0)
      || !std::isfinite(held.get<double>()))
    return fail_at(fields.at(name),
                   fmt::format("'{}' must be a price for a million tokens, a "
                               "number from 0",
                               name));
  return std::optional(held.get<double>());
}

result<model_prices> read_prices(const std::filesystem::path& file,
                                 const yaml_node::field& written) {
  const field_reader fields(file, *written.value);
  if (auto fit
      = check_price_fields(fields,
                           fmt::format("model '{}'", written.name),
                           {"input", "cached_input", "output", "thoughts"});
      !fit)
    return fit.error();
  std::array<std::optional<double>, 4> read;
  constexpr std::array<std::string_view, 4> names{
    "input", "cached_input", "output", "thoughts"};
  for (std::size_t index = 0; index < names.size(); ++index) {
    auto price = read_price(fields, names[index]);
    if (!price)
      return price.error();
    read[index] = *price;
  }
  if (!read[0] || !read[2])
    return fail_at({&file, written.line},
                   fmt::format("model '{}' needs a field '{}'",
                               written.name,
                               read[0] ? "output" : "input"));
  return model_prices{*read[0], read[1], *read[2], read[3]};
}

} // namespace

// Candidates include thoughts for all vendors but Gemini. The total tells which
// is the case, as long as there is one.
std::optional<billed_tokens> tokens_of_call(const event& said) {
  const auto& fields = said.extra.data();
  const auto found
    = fields.is_object() ? fields.find("usageMetadata") : fields.end();
  if (!fields.is_object() || found == fields.end() || !found->is_object())
    return std::nullopt;
  const auto& usage = *found;
  const auto prompt = count_of(usage, "promptTokenCount");
  const auto of_tools = count_of(usage, "toolUsePromptTokenCount");
  const auto candidates = count_of(usage, "candidatesTokenCount");
  const auto thoughts = count_of(usage, "thoughtsTokenCount");
  const auto total = count_of(usage, "totalTokenCount");
  const bool are_apart
    = usage.contains("totalTokenCount")
        ? total >= prompt + of_tools + candidates + thoughts
        : said.field("modelVersion").find("gemini") != std::string::npos;
  billed_tokens tokens;
  tokens.cached_input
    = std::min(count_of(usage, "cachedContentTokenCount"), prompt);
  tokens.input = prompt - tokens.cached_input + of_tools;
  tokens.thoughts = thoughts;
  tokens.output
    = are_apart ? candidates : candidates - std::min(candidates, thoughts);
  // Some servers report nothing but the total.
  if (tokens.total() == 0)
    tokens.input = total;
  return tokens;
}

void cost_sum::add(const cost_sum& other) {
  amount += other.amount;
  priced_calls += other.priced_calls;
  for (const auto& [model, tokens] : other.unpriced)
    unpriced[model] += tokens;
}

result<price_list> price_list::read(const std::filesystem::path& file) {
  const auto text = read_text_file(file, prices_bytes_max);
  if (!text)
    return error(
      text.error().code() == errc::not_found ? errc::not_found
                                             : errc::invalid_argument,
      fmt::format("prices {}: {}", file.string(), text.error().message()));
  const auto root = parse_yaml(*text,
                               {.depth_max = 8,
                                .nodes_max = prices_nodes_max,
                                .bytes_max = prices_bytes_max,
                                .json_only = file.extension() == ".json"});
  if (!root)
    return fail_at({&file, root.error().line}, root.error().why);
  if (!*root)
    return fail_at({&file, 1}, "expected prices, a mapping with 'models'");
  const field_reader fields(file, **root);
  if (auto fit
      = check_price_fields(fields, "a file of prices", {"currency", "models"});
      !fit)
    return fit.error();
  price_list made;
  auto currency = fields.text("currency");
  if (!currency)
    return currency.error();
  made.currency_ = currency->value_or(made.currency_);
  const auto* models = fields.find("models");
  if (models == nullptr || models->kind != yaml_node::form::map
      || models->fields.empty())
    return fail_at(fields.at("models"),
                   "expected 'models', a mapping of the names of models to "
                   "their prices");
  for (const auto& each : models->fields) {
    auto prices = read_prices(file, each);
    if (!prices)
      return prices.error();
    const auto star = each.name.find('*');
    if (star == std::string::npos)
      made.exact_.emplace(each.name, *prices);
    else if (star + 1 == each.name.size())
      made.beginnings_.emplace_back(each.name.substr(0, star), *prices);
    else
      return fail_at(
        {&file, each.line},
        fmt::format("model '{}': a '*' may only be the last character",
                    each.name));
  }
  std::ranges::stable_sort(made.beginnings_,
                           std::greater(),
                           [](const auto& each) { return each.first.size(); });
  return made;
}

const model_prices* price_list::find(std::string_view model) const {
  if (const auto known = exact_.find(model); known != exact_.end())
    return &known->second;
  const auto fits
    = std::ranges::find_if(beginnings_, [model](const auto& each) {
        return model.starts_with(each.first);
      });
  return fits != beginnings_.end() ? &fits->second : nullptr;
}

void price_list::add(const event& said, cost_sum& sum) const {
  if (said.partial)
    return;
  const auto tokens = tokens_of_call(said);
  if (!tokens)
    return;
  auto model = std::string(said.field("modelVersion"));
  // "*" is no price for an answer whose model is unknown.
  const auto* prices = model.empty() ? nullptr : find(model);
  if (prices == nullptr) {
    sum.unpriced[std::move(model)] += tokens->total();
    return;
  }
  sum.amount += cost_of(*tokens, *prices);
  ++sum.priced_calls;
}

std::string amount_text(double amount, std::string_view currency) {
  return fmt::format(
    "{:.{}f} {}", amount, amount >= 1 || amount == 0 ? 2 : 6, currency);
}

std::string to_text(const cost_sum& sum, std::string_view currency) {
  if (sum.unpriced.empty())
    return amount_text(sum.amount, currency);
  std::string names;
  std::uint64_t tokens = 0;
  for (const auto& [model, count] : sum.unpriced) {
    names += (names.empty() ? "" : ", ")
             + (model.empty() ? std::string("a model without a name") : model);
    tokens += count;
  }
  if (sum.priced_calls == 0)
    return fmt::format("unknown: no price for {} ({} tokens)", names, tokens);
  return fmt::format("{}, and {} tokens of models without a price: {}",
                     amount_text(sum.amount, currency),
                     tokens,
                     names);
}

json to_json(const cost_sum& sum, std::string_view currency) {
  auto written = json::object();
  written["currency"] = currency;
  written["amount"] = sum.priced_calls == 0 && !sum.unpriced.empty()
                        ? json()
                        : json(sum.amount);
  auto& unpriced = written["unpriced"] = json::object();
  for (const auto& [model, tokens] : sum.unpriced)
    unpriced[model] = tokens;
  return written;
}

} // namespace troupe::load

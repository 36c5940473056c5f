#include "desk_tools.hpp"

#include "troupe/agents/function_tool.hpp"

#include <map>
#include <string>
#include <tuple>

namespace {

// -- orders ----

struct order_query {
  int order = 0;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("order", &order_query::order, "Number of the order"));
};

troupe::tool order_status() {
  return troupe::function_tool(
    {.name = "order_status", .description = "Tells where an order is."},
    [](const order_query& query) -> std::string {
      // Stands for a database. A tool may block: it has a thread of its own.
      static const std::map<int, std::string> orders{
        {17, "two lamps for 80 euros, on the way since Monday"},
        {18, "one bulb for 4 euros, delivered"}};
      const auto found = orders.find(query.order);
      return found == orders.end() ? "there is no such order" : found->second;
    });
}

// -- memory ----

struct fact {
  std::string text;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("text", &fact::text, "One sentence about the customer"));
};

troupe::tool remember() {
  return troupe::function_tool(
    {.name = "remember", .description = "Keeps a fact about the customer."},
    [](const fact& learned, troupe::tool_context& context) {
      // `user:` is for all sessions of this customer. The owner of the list
      // appends, so two sessions at the same time lose nothing.
      context.state().append("user:facts", learned.text);
      return "noted";
    });
}

// -- money ----

struct refund_request {
  int order = 0;
  int euros = 0;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("order", &refund_request::order, "Number of the order"),
    troupe::parameter("euros", &refund_request::euros, "Sum to pay back"));
};

troupe::tool refund() {
  return troupe::function_tool(
    {.name = "refund",
     .description = "Pays money back for an order.",
     // Above 50 euros a person has to allow the call.
     .require_confirmation
     = [](const troupe::json& args) { return args.value("euros", 0) > 50; }},
    [](const refund_request& wanted, troupe::tool_context& context) {
      context.state().add("app:refunded_euros", wanted.euros);
      return std::to_string(wanted.euros) + " euros are on their way back";
    });
}

} // namespace

std::vector<troupe::tool> desk_tools() {
  return {order_status(), remember(), refund()};
}

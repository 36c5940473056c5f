// The sample of docs/telemetry.md.

#include "troupe/telemetry/exporter.hpp"

#include "page_fixture.hpp"

BOOST_AUTO_TEST_SUITE(telemetry_page)

// Nothing is sent: the variables of the test name no receiver.
BOOST_AUTO_TEST_CASE(the_exporter_is_a_plugin) {
  using namespace troupe;
  const auto root
    = llm({.name = "writer", .model = testing::saying({{.text = "ok"}})});

  auto chosen = telemetry::options_from(telemetry::process_variables()).value();
  auto sent = telemetry::exporter::start(std::move(chosen)).value();
  sent.describe(root);
  runtime_options options;
  options.plugins = {sent.watcher()};
  auto owners = runtime::open(std::move(options)).value();

  const session_key key{"app", "ann", "s"};
  owners.sessions().create({key.app, key.user, key.id}).value();
  BOOST_TEST(owners.run(root, key, {"go"}).wait().get().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

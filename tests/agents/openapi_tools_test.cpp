// Tools that are operations of an HTTP API: their names, arguments, requests,
// answers and failures.

#include "troupe/agents/openapi_tools.hpp"

#include "../models/http_server.hpp"
#include "agent_folder.hpp"
#include "tool_caller.hpp"
#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(openapi)

namespace {

// A document with one path; `{server}` is the address of the server.
json document_with(const std::string& paths,
                   const std::string& server = "https://pets.example/v1",
                   const std::string& more = {}) {
  auto read = read_openapi("openapi: 3.0.3\nservers: [{url: '" + server
                           + "'}]\npaths:\n" + paths + more);
  BOOST_REQUIRE_MESSAGE(read, reason_of(read));
  return std::move(*read);
}

openapi_source source_with(const std::string& paths,
                           const std::string& server
                           = "https://pets.example/v1",
                           const std::string& more = {}) {
  openapi_source made;
  made.document = document_with(paths, server, more);
  return made;
}

std::vector<std::string> names_of(const std::vector<tool>& tools) {
  std::vector<std::string> names;
  for (const auto& each : tools)
    names.push_back(each.name());
  std::ranges::sort(names);
  return names;
}

std::string refusal(const openapi_source& source) {
  try {
    openapi_tools(source);
  } catch (const error& failure) {
    BOOST_TEST(to_string(failure.code()) == "invalid_argument");
    return failure.message();
  }
  return "ok";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string json_head = "Content-Type: application/json\r\n";

// A server that answers every request with the same bytes, and one operation.
struct served {
  explicit served(const std::string& paths,
                  server_script script = {say(whole("{}", 200, json_head))})
    : server(std::move(script)),
      source(source_with(paths, server.url("/v1"))) {}

  json call(json args) {
    const auto tools = openapi_tools(source);
    BOOST_REQUIRE(tools.size() == 1U);
    return tool_caller(tools.front()).call(std::move(args));
  }

  // The line and the body of the request that a call makes.
  std::string line(json args) {
    call(std::move(args));
    const auto sent = server.requests();
    BOOST_REQUIRE(!sent.empty());
    auto text = sent.back().line;
    text.resize(text.rfind(' '));
    return sent.back().body.empty() ? text : text + "\n" + sent.back().body;
  }

  http_server server;
  openapi_source source;
};

// An operation with one query parameter `p` of that style.
std::string query_of(const std::string& style, json argument) {
  served on("  /a:\n    get:\n      operationId: x\n      parameters:\n"
            "      - {name: p, in: query, "
            + style + "}\n");
  return on.line({{"p", std::move(argument)}});
}

// The same with a path parameter.
std::string path_of(const std::string& style, json argument) {
  served on("  '/a/{p}':\n    get:\n      operationId: x\n      parameters:\n"
            "      - {name: p, in: path, "
            + style + "}\n");
  return on.line({{"p", std::move(argument)}});
}

} // namespace

// -- the tools ----

BOOST_AUTO_TEST_CASE(each_operation_is_a_tool_named_as_in_adk) {
  const auto source
    = source_with("  /pets:\n"
                  "    get: {operationId: listAllPets, summary: All pets.}\n"
                  "    post: {operationId: 'HTTPCreate pet-2'}\n"
                  "    head: {operationId: no_tool}\n"
                  "  '/pets/{petId}':\n"
                  "    parameters: [{name: petId, in: path, schema: {}}]\n"
                  "    delete: {description: Removes one.}\n"
                  "    put: {operationId: "
                  + std::string(70, 'a')
                  + "}\n"
                    "    patch: {operationId: 7up}\n");
  const auto tools = openapi_tools(source);
  BOOST_TEST(names_of(tools)
               == std::vector<std::string>({"_7up",
                                            std::string(60, 'a'),
                                            "http_create_pet_2",
                                            "list_all_pets",
                                            "pets_pet_id_delete"}),
             boost::test_tools::per_element());
  for (const auto& each : tools) {
    if (each.name() == "list_all_pets")
      BOOST_TEST(each.description() == "All pets.");
    if (each.name() == "pets_pet_id_delete")
      BOOST_TEST(each.description() == "Removes one.");
  }
}

BOOST_AUTO_TEST_CASE(empty_parts_and_extensions_are_read) {
  const auto tools
    = openapi_tools(source_with("  x-owner: [zoo]\n"
                                "  /empty:\n"
                                "  /pets:\n"
                                "    x-stage: beta\n"
                                "    parameters:\n"
                                "    put:\n"
                                "    get: {operationId: list_pets, parameters: "
                                "null, requestBody: null, security: null}\n"));
  BOOST_TEST(names_of(tools) == std::vector<std::string>({"list_pets"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_filter_and_a_prefix_choose_and_name_the_tools) {
  auto source = source_with("  /a: {get: {operationId: oneThing}}\n"
                            "  /b: {get: {operationId: other}}\n");
  source.tool_filter = {"one_thing"};
  source.tool_name_prefix = "api";
  BOOST_TEST(names_of(openapi_tools(source))
             == std::vector<std::string>{"api_one_thing"});
  source.tool_filter = {"third"};
  BOOST_TEST(contains(refusal(source), "no operation 'third'"));
  BOOST_TEST(contains(refusal(source), "it has: one_thing, other"));
}

BOOST_AUTO_TEST_CASE(parameters_and_properties_of_the_body_are_arguments) {
  const auto tools = openapi_tools(source_with(
    "  '/pets/{id}':\n"
    "    parameters:\n"
    "    - {name: id, in: path, schema: {type: integer}, description: Its "
    "id.}\n"
    "    - {name: X-Trace, in: header, schema: {type: string}}\n"
    "    - {name: verbose, in: query, schema: {type: boolean}}\n"
    "    put:\n"
    "      operationId: replace\n"
    "      parameters:\n"
    "      - {name: verbose, in: query, required: true, schema: {type: "
    "integer}}\n"
    "      - {name: Host, in: header, schema: {type: string}}\n"
    "      - $ref: '#/components/parameters/Page'\n"
    "      requestBody:\n"
    "        content:\n"
    "          application/json:\n"
    "            schema: {$ref: '#/components/schemas/Pet'}\n",
    "https://pets.example",
    "components:\n"
    "  parameters:\n"
    "    Page: {name: pageSize, in: query, schema: {type: integer}}\n"
    "  schemas:\n"
    "    Pet:\n"
    "      type: object\n"
    "      required: [id, petName]\n"
    "      properties:\n"
    "        id: {type: string}\n"
    "        petName: {type: string, nullable: true}\n"
    "        made: {type: string, readOnly: true}\n"
    "        owner: {$ref: '#/components/schemas/Owner'}\n"
    "    Owner:\n"
    "      type: object\n"
    "      properties: {pets: {type: array, items: {$ref: "
    "'#/components/schemas/Pet'}},"
    " age: {type: number, minimum: 0, exclusiveMinimum: true}}\n"));
  BOOST_REQUIRE(tools.size() == 1U);
  const auto& schema = tools[0].parameters();
  std::vector<std::string> names;
  for (const auto& [name, held] : schema["properties"].items())
    names.push_back(name);
  BOOST_TEST(
    names
      == std::vector<std::string>(
        {"id", "id_0", "owner", "page_size", "pet_name", "verbose", "x_trace"}),
    boost::test_tools::per_element());
  BOOST_TEST(schema["properties"]["id"]
             == json({{"type", "integer"}, {"description", "Its id."}}));
  BOOST_TEST(schema["properties"]["verbose"]["type"] == "integer");
  BOOST_TEST(schema["properties"]["pet_name"]["type"]
             == json({"string", "null"}));
  // A pet in an owner of a pet: any object.
  const auto& owner = schema["properties"]["owner"]["properties"];
  BOOST_TEST(owner["pets"]["items"] == json({{"type", "object"}}));
  BOOST_TEST(owner["age"]
             == json({{"type", "number"}, {"exclusiveMinimum", 0}}));
  auto required = schema["required"].get<std::vector<std::string>>();
  std::ranges::sort(required);
  BOOST_TEST(
    required == std::vector<std::string>({"id", "id_0", "pet_name", "verbose"}),
    boost::test_tools::per_element());
}

// The compiler of patterns recurses: this one would overflow the stack.
BOOST_AUTO_TEST_CASE(a_pattern_that_is_too_long_is_left_out) {
  auto source = source_with("  /a:\n    get:\n      operationId: x\n"
                            "      parameters:\n"
                            "      - {name: p, in: query, schema: {type: "
                            "string, pattern: 'a+'}}\n");
  const auto pattern_of = [&source] {
    const auto tools = openapi_tools(source);
    BOOST_REQUIRE(tools.size() == 1U);
    return tools[0].parameters()["properties"]["p"].value("pattern", "none");
  };
  BOOST_TEST(pattern_of() == "a+");
  source.document["paths"]["/a"]["get"]["parameters"][0]["schema"]["pattern"]
    = std::string(200'000, '(') + std::string(200'000, ')');
  BOOST_TEST(pattern_of() == "none");
}

BOOST_AUTO_TEST_CASE(documents_of_3_1_in_json_are_read) {
  openapi_source source;
  source.document = read_openapi(R"({"openapi": "3.1.0",
    "servers": [{"url": "https://{region}.example/v2/",
      "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}}],
    "paths": {"/a": {"get": {"parameters": [{"$ref":
      "#/components/parameters/~0a~1b"}]}}},
    "components": {"parameters": {"~a/b": {"name": "n", "in": "query",
      "schema": {"type": ["integer", "null"], "examples": [1]}}}}})")
                      .value();
  source.server_variables = {{"region", "us"}};
  const auto tools = openapi_tools(source);
  BOOST_REQUIRE(tools.size() == 1U);
  BOOST_TEST(tools[0].name() == "a_get");
  BOOST_TEST(tools[0].parameters()["properties"]["n"]
             == json({{"type", {"integer", "null"}}}));
  source.server_variables = {{"region", "moon"}};
  BOOST_TEST(contains(refusal(source), "does not allow the value 'moon'"));
  source.server_variables = {{"colour", "red"}};
  BOOST_TEST(contains(refusal(source), "no server variable 'colour'"));
}

BOOST_AUTO_TEST_CASE(documents_that_cannot_be_used_are_refused) {
  const auto refused = [](const std::string& text) {
    openapi_source source;
    auto read = read_openapi(text);
    if (!read)
      return read.error().message();
    source.document = std::move(*read);
    return refusal(source);
  };
  const std::string start = "openapi: 3.0.0\nservers: [{url: https://a.b}]\n";
  const auto operation = [&start](const std::string& lines) {
    return start + "paths: {/a: {post: {operationId: x, " + lines + "}}}\n";
  };
  const std::map<std::string, std::string> reasons = {
    {"", "version null"},
    {"swagger: '2.0'\n", "convert it to OpenAPI 3"},
    {"openapi: 4.0.0\n", "version 4.0.0"},
    {"{\"openapi\": ", "the OpenAPI document: "},
    {"a: [", "the OpenAPI document: line"},
    {"openapi: 3.0.0\npaths: {/a: {get: {}}}\n", "has no servers"},
    {"openapi: 3.0.0\nservers: [{url: /v1}]\npaths: {/a: {get: {}}}\n",
     "server '/v1'"},
    {"openapi: 3.0.0\nservers: [{url: 'https://u:p@a.b'}]\npaths: {/a: {get: "
     "{}}}\n",
     "without a user"},
    {"openapi: 3.0.0\nservers: [{url: 'file:///etc'}]\npaths: {/a: {get: "
     "{}}}\n",
     "server 'file:///etc'"},
    {start + "paths: {'/a/{b}': {get: {}}}\n",
     "a path with a place that is no parameter"},
    {start + "paths: {'a': {get: {}}}\n", "does not begin with /"},
    {start
       + "paths: {/a: {get: {operationId: x}}, /b: {get: {operationId: "
         "X}}}\n",
     "two operations of the name 'x', GET /a and GET /b"},
    {operation("parameters: [{name: p, in: path}]"), "no place for its path"},
    {operation("parameters: [{name: p, in: body}]"), "'p' in 'body'"},
    {operation("parameters: [{name: p, in: query, style: matrix}]"),
     "with style 'matrix'"},
    {operation("parameters: [{$ref: 'other.yaml#/p'}]"), "another document"},
    {operation("parameters: [{$ref: '#/p/q'}]"), "nothing at '#/p/q'"},
    {operation("requestBody: {content: {multipart/form-data: {}}}"),
     "body of type 'multipart/form-data'"},
    {operation("security: [{k: []}]"), "needs credentials of a scheme"},
    {start + "paths: {/a: {$ref: '#/paths/~1a'}}\n", "lead in a circle"},
    {start, "has no operation"},
    {start + "paths: {}\n", "has no operation"},
    {start + "paths: {/a: {head: {}}}\n", "has no operation"},
    {start + "paths: [/a]\n", "has a list as 'paths' of the document"},
    {start + "paths: {/a: [get]}\n", "has a list as '/a' of paths"},
    {start + "paths: {/a: {get: x}}\n", "has a text as 'get' of the path /a"},
    {start + "components: 1\npaths: {/a: {get: {}}}\n",
     "has a number as 'components' of the document"},
    {start + "components: {securitySchemes: [k]}\npaths: {/a: {get: {}}}\n",
     "has a list as 'securitySchemes' of components"},
    {start + "security: {k: []}\npaths: {/a: {get: {}}}\n",
     "has a mapping as 'security' of the document"},
    {"openapi: 3.0.0\nservers: {url: https://a.b}\n",
     "has a mapping as 'servers' of the document; expected a list"},
    {start + "paths: {/a: {parameters: {name: x}, get: {}}}\n",
     "has a mapping as 'parameters' of GET /a"},
    {operation("parameters: {name: x}"),
     "has a mapping as 'parameters' of POST /a; expected a list"},
    {operation("parameters: [x]"), "has a text as 'parameters' of POST /a"},
    {operation("parameters: [{name: p, in: query, schema: [x]}]"),
     "has a list as 'schema' of the parameter 'p' of POST /a"},
    {operation("parameters: [{name: p, in: query, content: x}]"),
     "has a text as 'content' of the parameter 'p' of POST /a"},
    {operation("requestBody: [x]"), "has a list as 'requestBody' of POST /a"},
    {operation("requestBody: {content: [application/json]}"),
     "has a list as 'content' of the body of POST /a"},
    {operation("requestBody: {content: {application/json: x}}"),
     "has a text as 'application/json' of the body of POST /a"},
    {operation("requestBody: {content: {application/json: {schema: x}}}"),
     "has a text as 'schema' of the body of POST /a; expected a schema"},
    {operation("security: {k: []}"), "has a mapping as 'security' of POST /a"},
    {operation("security: [k]"), "has a text as 'security' of POST /a"},
    {operation("servers: https://a.b"), "has a text as 'servers' of POST /a"},
    {operation("servers: [https://a.b]"), "has a text as 'servers' of POST /a"},
  };
  for (const auto& [text, reason] : reasons) {
    const auto said = refused(text);
    BOOST_TEST(contains(said, reason), text + "\n" + said);
  }
  // References to references to … do not fill the memory.
  std::string bomb = operation("requestBody: {content: {application/json: "
                               "{schema: {$ref: '#/s/s0'}}}}")
                     + "s:\n";
  for (int n = 0; n < 30; ++n)
    bomb += fmt::format(
      "  s{0}: {{anyOf: [{{$ref: '#/s/s{1}'}}, {{$ref: '#/s/s{1}'}}]}}\n",
      n,
      n + 1);
  bomb += "  s30: {}\n";
  BOOST_TEST(contains(refused(bomb), "too deep or too large"));
}

// -- requests ----

BOOST_AUTO_TEST_CASE(arguments_are_encoded_by_their_styles) {
  const json list{"a b", "c&d", 3};
  const json object{{"k", "v/w"}, {"n", 1}};
  BOOST_TEST(query_of("", "a b&c=ü") == "GET /v1/a?p=a%20b%26c%3D%C3%BC");
  BOOST_TEST(query_of("", true) == "GET /v1/a?p=true");
  BOOST_TEST(query_of("", nullptr) == "GET /v1/a");
  BOOST_TEST(query_of("", list) == "GET /v1/a?p=a%20b&p=c%26d&p=3");
  BOOST_TEST(query_of("explode: false", list) == "GET /v1/a?p=a%20b,c%26d,3");
  BOOST_TEST(query_of("style: spaceDelimited, explode: false", list)
             == "GET /v1/a?p=a%20b%20c%26d%203");
  BOOST_TEST(query_of("style: pipeDelimited, explode: false", list)
             == "GET /v1/a?p=a%20b%7Cc%26d%7C3");
  BOOST_TEST(query_of("", object) == "GET /v1/a?k=v%2Fw&n=1");
  BOOST_TEST(query_of("explode: false", object) == "GET /v1/a?p=k,v%2Fw,n,1");
  BOOST_TEST(query_of("style: deepObject, explode: true", object)
             == "GET /v1/a?p%5Bk%5D=v%2Fw&p%5Bn%5D=1");
  BOOST_TEST(query_of("content: {application/json: {}}", object)
             == "GET /v1/a?p=%7B%22k%22%3A%22v%2Fw%22%2C%22n%22%3A1%7D");
  BOOST_TEST(path_of("", "a/b?c#d") == "GET /v1/a/a%2Fb%3Fc%23d");
  BOOST_TEST(path_of("", list) == "GET /v1/a/a%20b,c%26d,3");
  BOOST_TEST(path_of("", object) == "GET /v1/a/k,v%2Fw,n,1");
  BOOST_TEST(path_of("explode: true", object) == "GET /v1/a/k=v%2Fw,n=1");
  BOOST_TEST(path_of("style: label, explode: true", list)
             == "GET /v1/a/.a%20b.c%26d.3");
  BOOST_TEST(path_of("style: matrix", list) == "GET /v1/a/;p=a%20b,c%26d,3");
  BOOST_TEST(path_of("style: matrix, explode: true", list)
             == "GET /v1/a/;p=a%20b;p=c%26d;p=3");
}

BOOST_AUTO_TEST_CASE(an_argument_cannot_leave_its_path) {
  served on("  '/a/{p}/b':\n    get:\n      operationId: x\n      parameters:\n"
            "      - {name: p, in: path}\n");
  for (const json& argument : {json(".."),
                               json("."),
                               json("x/../y"),
                               json("x\\.."),
                               json(""),
                               json::array(),
                               json({"a", ".."})})
    BOOST_TEST(contains(on.call({{"p", argument}}).value("error", ""),
                        "would change the path"),
               to_text(argument));
  BOOST_TEST(on.server.requests().empty());
  BOOST_TEST(on.line({{"p", "..a"}}) == "GET /v1/a/..a/b");
}

BOOST_AUTO_TEST_CASE(headers_and_cookies_are_sent_and_cannot_be_split) {
  served on("  /a:\n    get:\n      operationId: x\n      parameters:\n"
            "      - {name: X-List, in: header}\n"
            "      - {name: c, in: cookie}\n");
  on.call({{"x_list", {"a", 2}}, {"c", "a;b"}});
  BOOST_REQUIRE(on.server.requests().size() == 1U);
  BOOST_TEST(on.server.requests()[0].header("x-list") == "a,2");
  BOOST_TEST(on.server.requests()[0].header("cookie") == "c=a%3Bb");
  for (const auto* value : {"a\r\nX-Evil: 1", "a\nb", "a\rb", "\x01"})
    BOOST_TEST(contains(on.call({{"x_list", value}}).value("error", ""),
                        "header 'X-List' cannot be sent"));
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(bodies_are_json_forms_or_text) {
  const auto line
    = [](const std::string& method, const std::string& content, json args) {
        served on("  /a:\n    " + method
                  + ":\n      operationId: x\n      requestBody: {content: "
                  + content + "}\n");
        auto made = on.line(std::move(args));
        return made + "\n" + on.server.requests().back().header("content-type");
      };
  const std::string object
    = "{schema: {type: object, properties: {petName: {}, tags: {}}}}";
  BOOST_TEST(line("post",
                  "{text/plain: {}, application/json: " + object + "}",
                  {{"pet_name", "Rex"}, {"tags", {1, 2}}})
             == "POST /v1/a\n{\"petName\":\"Rex\",\"tags\":[1,2]}\n"
                "application/json");
  BOOST_TEST(line("put",
                  "{application/x-www-form-urlencoded: " + object + "}",
                  {{"pet_name", "R & x"}, {"tags", {1, 2}}})
             == "PUT /v1/a\npetName=R%20%26%20x&tags=1&tags=2\n"
                "application/x-www-form-urlencoded");
  BOOST_TEST(line("patch",
                  "{application/merge-patch+json: {schema: {type: array}}}",
                  {{"array", {1}}})
             == "PATCH /v1/a\n[1]\napplication/merge-patch+json");
  BOOST_TEST(
    line("post", "{text/plain: {schema: {type: string}}}", {{"body", "a\nb"}})
    == "POST /v1/a\na\nb\ntext/plain");
  BOOST_TEST(
    line("delete", "{application/json: {schema: {anyOf: [{}]}}}", {{"body", 7}})
    == "DELETE /v1/a\n7\napplication/json");
  BOOST_TEST(line("post", "{application/json: " + object + "}", json::object())
             == "POST /v1/a\n");
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_are_not_sent) {
  served on("  /a:\n    get:\n      operationId: x\n      parameters:\n"
            "      - {name: n, in: query, required: true, schema: {type: "
            "integer}}\n");
  BOOST_TEST(contains(on.call({{"n", "x"}}).value("error", ""), "do not fit"));
  BOOST_TEST(contains(on.call({}).value("error", ""), "do not fit"));
  BOOST_TEST(on.server.requests().empty());
}

// -- secrets ----

BOOST_AUTO_TEST_CASE(secrets_are_sent_in_the_places_of_their_schemes) {
  const auto sent = [](const std::string& scheme, const std::string& text) {
    served on("  /a: {get: {operationId: x, parameters: [{name: key, in: "
              "query}]}}\nsecurity: [{other: []}, {s: []}]\n"
              "components: {securitySchemes: {other: {type: mutualTLS}, s: "
              + scheme + "}}\n");
    on.source.credentials = {{"s", text}};
    // An argument cannot replace the secret.
    on.call({{"key", "of the model"}});
    BOOST_REQUIRE(on.server.requests().size() == 1U);
    return on.server.requests()[0];
  };
  BOOST_TEST(sent("{type: http, scheme: Bearer}", "t").header("authorization")
             == "Bearer t");
  BOOST_TEST(sent("{type: oauth2, flows: {}}", "t").header("authorization")
             == "Bearer t");
  BOOST_TEST(
    sent("{type: http, scheme: basic}", "user:pass").header("authorization")
    == "Basic dXNlcjpwYXNz");
  BOOST_TEST(
    sent("{type: apiKey, in: header, name: X-Key}", "k").header("x-key")
    == "k");
  BOOST_TEST(sent("{type: apiKey, in: cookie, name: sid}", "k").header("cookie")
             == "sid=k");
  BOOST_TEST(sent("{type: apiKey, in: query, name: key}", "k v").line
             == "GET /v1/a?key=k%20v HTTP/1.1");
}

BOOST_AUTO_TEST_CASE(an_operation_without_security_gets_no_secret) {
  served on(
    "  /a: {get: {operationId: x, security: []}}\n"
    "security: [{s: []}]\n"
    "components: {securitySchemes: {s: {type: http, scheme: bearer}}}\n");
  on.source.credentials = {{"s", "t"}};
  on.call({});
  BOOST_TEST(on.server.requests()[0].header("authorization").empty());
}

BOOST_AUTO_TEST_CASE(secrets_that_could_leak_or_miss_are_refused) {
  const std::string schemes
    = "security: [{s: []}]\ncomponents: {securitySchemes: {s: {type: http, "
      "scheme: bearer}, d: {type: http, scheme: digest}}}\n";
  auto source = source_with(
    "  /a: {get: {operationId: x}}\n", "http://a.example", schemes);
  BOOST_TEST(contains(refusal(source), "needs credentials of a scheme"));
  source.credentials = {{"s", "t"}};
  BOOST_TEST(contains(refusal(source), "plain http to a.example"));
  source = source_with("  /a: {get: {operationId: x, security: []}}\n",
                       "https://a.example",
                       schemes);
  source.credentials = {{"t", "t"}};
  BOOST_TEST(contains(refusal(source), "no security scheme 't'"));
  source.credentials = {{"d", "t"}};
  BOOST_TEST(
    contains(refusal(source), "'d' of a kind that troupe cannot send"));
}

// -- answers ----

BOOST_AUTO_TEST_CASE(answers_are_json_text_or_a_status) {
  const auto result = [](const std::string& bytes) {
    served on("  /a: {get: {operationId: x}}\n", {say(bytes)});
    return on.call({});
  };
  BOOST_TEST(result(whole(R"({"a": 1})", 200, json_head)) == json({{"a", 1}}));
  BOOST_TEST(result(whole("[1, 2]", 201, json_head))
             == json({{"result", {1, 2}}}));
  BOOST_TEST(result(whole("hello", 200, "Content-Type: text/plain\r\n"))
             == json({{"result", "hello"}}));
  BOOST_TEST(result(whole("{", 200, json_head)) == json({{"result", "{"}}));
  BOOST_TEST(result(whole("", 204)) == json({{"status", 204}}));
  BOOST_TEST(
    contains(result(whole("\xFF\xD8", 200, "Content-Type: image/jpeg\r\n"))
               .value("error", ""),
             "is no text but image/jpeg"));
}

BOOST_AUTO_TEST_CASE(failures_are_errors_with_their_reason) {
  const auto failure = [](server_script script) {
    served on("  '/a/{b}': {get: {operationId: x, parameters: [{name: b, in: "
              "path}]}}\n",
              std::move(script));
    on.source.answer_bytes_max = 1'000;
    return on.call({{"b", "c"}}).value("error", std::string());
  };
  const auto missing = failure({say(whole("no such pet\n", 404))});
  BOOST_TEST(contains(missing, "GET http://127.0.0.1:"), missing);
  BOOST_TEST(contains(missing,
                      "/v1/a/{b} was answered with status 404: no such "
                      "pet"),
             missing);
  BOOST_TEST(contains(
    failure({say(whole("x", 302, "Location: http://127.0.0.1:1/\r\n"))}),
    "status 302; redirects are not followed"));
  BOOST_TEST(contains(failure({say(whole(std::string(1'001, 'x')))}),
                      "more than 1000 bytes"));
  BOOST_TEST(
    contains(failure({say(whole(std::string(900, '\1')))}), "bytes as JSON"));
  // A body without an end is cut off.
  BOOST_TEST(contains(
    failure({say(chunked_head() + chunk(std::string(2'000, 'x'))), hold()}),
    "more than 1000 bytes"));
  BOOST_TEST(contains(failure({reset()}), "GET http://127.0.0.1:"));
}

BOOST_AUTO_TEST_CASE(a_silent_server_ends_with_the_time_or_the_run) {
  served on("  /a: {get: {operationId: x}}\n", {hold()});
  on.source.timeout = std::chrono::milliseconds(100);
  BOOST_TEST(!on.call({}).value("error", std::string()).empty());
  on.server.wait_for_hang_ups(1);
  on.source.timeout = {};
  tool_caller by(openapi_tools(on.source).front());
  auto running = by.start({function_call("", "x", value(json::object()))});
  on.server.wait_for_requests(2);
  running.cancel();
  BOOST_TEST(code_of(running.wait().get()) == "cancelled");
  on.server.wait_for_hang_ups(2);
}

// -- agent files ----

namespace {

const std::string pets = R"(openapi: 3.0.3
servers: [{url: https://pets.example}]
security: [{key: []}]
paths:
  /pets: {get: {operationId: listPets}, post: {operationId: addPet}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
)";

// An agent with the toolset. `lines` begin at line 6 of the file.
std::string file_with(const std::string& lines) {
  return "name: a\nmodel: scripted:replies.json\ntools:\n"
         "- name: OpenAPIToolset\n  args:\n"
         + lines;
}

const std::string usual
  = "    spec_file: pets.yaml\n    credentials: {key: '${PETS_KEY}'}\n";

struct openapi_folder : folder {
  openapi_folder() {
    write("pets.yaml", pets);
    write("list.yaml", "openapi: 3.0.3\npaths: [/a]\n");
    write("broken.yaml", "openapi: 3.0.3\npaths: [\n");
    ::mkfifo((path / "pipe").c_str(), 0600);
    ::setenv("PETS_KEY", "k", 1);
    options.allowed_variables = {"PETS_KEY"};
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_file_names_a_document, openapi_folder) {
  const auto read = [this](const std::string& lines) {
    const auto loaded = load(file_with(lines));
    BOOST_REQUIRE_MESSAGE(loaded, reason_of(loaded));
    return std::get<llm_options>(loaded->kind()).tools;
  };
  BOOST_TEST(names_of(read(usual))
             == std::vector<std::string>({"add_pet", "list_pets"}));
  const auto tools = read(usual
                          + "    tool_filter: [add_pet]\n"
                            "    tool_name_prefix: shop\n"
                            "    timeout: 2\n"
                            "    headers: {X-Team: red}\n"
                            "  require_confirmation: true\n");
  BOOST_REQUIRE(tools.size() == 1U);
  BOOST_TEST(tools[0].name() == "shop_add_pet");
  BOOST_TEST(tools[0].options().require_confirmation.can_hold());
  BOOST_TEST((tools[0].options().timeout == std::chrono::seconds(2)));
  BOOST_TEST(
    read("    spec_str_type: json\n    spec_str: '{\"openapi\": \"3.0.0\", "
         "\"servers\": [{\"url\": \"https://a.b\"}], \"paths\": {\"/a\": "
         "{\"get\": {}}}}'\n")
      .size()
    == 1U);
  BOOST_TEST(read("    spec_dict: {openapi: 3.0.0, servers: [{url: "
                  "'https://a.b'}], paths: {/a: {get: {}}}}\n")
               .size()
             == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_file_may_not_do_everything, openapi_folder) {
  const std::map<std::string, std::string> reasons = {
    {"    tool_filter: [a]\n", "needs one of spec_file, spec_str"},
    {usual + "    spec_str: '{}'\n", "needs one of spec_file, spec_str"},
    {"    spec_file: none.yaml\n", "spec_file 'none.yaml'"},
    {"    spec_file: .\n", "spec_file '.': is a folder"},
    {"    spec_file: pipe\n", "spec_file 'pipe': is not a regular file"},
    {"    spec_file: list.yaml\n",
     "root_agent.yaml:4: spec_file 'list.yaml': the OpenAPI document has a "
     "list "
     "as 'paths' of the document"},
    {"    spec_file: broken.yaml\n",
     "root_agent.yaml:6: spec_file 'broken.yaml': the OpenAPI document: line "
     "3"},
    {"    spec_file: pets.yaml\n", "needs credentials of a scheme"},
    {"    spec_file: pets.yaml\n    credentials: {key: abc}\n",
     "keys are not allowed in files"},
    {"    spec_file: pets.yaml\n    credentials: {key: '${HOME}'}\n",
     "allow it with --allow-env HOME"},
    {usual + "    headers: {Authorization: Bearer x}\n",
     "keys are not allowed in files"},
    {usual + "    headers: {X-A: '${HOME}'}\n",
     "allow it with --allow-env HOME"},
    {usual + "    auth_credential: {}\n", "'auth_credential' is not supported"},
    {usual + "    ssl_verify: false\n", "TLS is always verified"},
    {usual + "    colour: red\n", "unknown field 'colour'"},
    {usual + "    tool_filter: [remove]\n", "no operation 'remove'"},
    {usual + "- name: OpenAPIToolset\n  args:\n" + usual,
     "the tool 'list_pets' comes twice"},
  };
  for (const auto& [lines, reason] : reasons) {
    const auto said = failure(file_with(lines));
    BOOST_TEST(contains(said, reason), lines + said);
    BOOST_TEST(said.starts_with("root_agent.yaml:"), said);
  }
  BOOST_TEST(contains(failure("name: a\nmodel: scripted:replies.json\ntools: "
                              "[OpenAPIToolset]\n"),
                      "needs args with spec_file"));
}

BOOST_AUTO_TEST_SUITE_END()

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sim/base/units.hpp"
#include "sim/scenario/read.hpp"

using namespace stepcast;
using namespace stepcast::scenario;

TEST_SUITE_BEGIN("unit");

namespace {

enum class Colour : std::uint8_t { kRed, kBlue };
[[maybe_unused]] constexpr std::array<std::pair<const char*, Colour>, 2> enum_words(Colour) {
  return {{{"red", Colour::kRed}, {"blue", Colour::kBlue}}};
}

template <class T>
struct Quoted {
  T value{};
  Colour basis = Colour::kRed;
  std::string source;
};

struct Link {
  std::string name;
  Bandwidth bandwidth;
  Duration latency;
  std::optional<double> efficiency;
  template <class V>
  void visit(V& v) {
    v.key("name", name, "What the link is called.", required().not_empty());
    v.key("bandwidth", bandwidth, "Rate of one direction.", required().above(0));
    v.key("latency", latency, "One way.", at_least(0));
    v.key("efficiency", efficiency, "Payload share of the rate.", between(0, 1));
  }
};

struct Root {
  std::int64_t count = 7;
  Colour colour = Colour::kBlue;
  bool on = false;
  Bytes memory;
  std::vector<Link> links;
  std::map<std::string, double> weights;
  std::optional<Quoted<Bandwidth>> hbm;
};
template <class V>
void visit_keys(V& v, Root& r) {
  v.key("count", r.count, "How many.", at_least(1));
  v.key("colour", r.colour, "Which colour.");
  v.key("on", r.on, "Whether it is on.");
  v.key("memory", r.memory, "Size of the memory.", at_least(0));
  v.key("links", r.links, "The links.");
  v.key("weights", r.weights, "Weights by name.");
  v.key("hbm", r.hbm, "Memory bandwidth.", above(0));
}

Root read(const std::string& text) { return read_yaml_text<Root>(text, "a.yaml"); }

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("scenario: a struct reads from its key list, defaults stay") {
  const Root root = read(
      "memory: 80 GiB\n"
      "on: true\n"
      "links:\n"
      "  - {name: up, bandwidth: 400 Gb/s, latency: 1.5 us}\n"
      "  - {name: down, bandwidth: 50GB/s, efficiency: 0.9}\n"
      "weights: {b: 2, a: 1e-3}\n"
      "hbm: {value: 3350 GB/s, basis: blue, source: \"data sheet\"}\n");
  CHECK(root.count == 7);
  CHECK(root.colour == Colour::kBlue);
  CHECK(root.on);
  CHECK(root.memory == Bytes{80LL << 30});
  REQUIRE(root.links.size() == 2);
  // 400 Gbit/s / 8 = 50 GB/s exactly: the two spellings are one value.
  CHECK(root.links[0].bandwidth == root.links[1].bandwidth);
  CHECK(root.links[0].latency == Duration::nanoseconds(1500));
  CHECK(!root.links[0].efficiency);
  CHECK(root.links[1].efficiency == 0.9);
  CHECK(root.weights == std::map<std::string, double>{{"a", 1e-3}, {"b", 2.0}});
  REQUIRE(root.hbm);
  CHECK(root.hbm->value.si() == 3.35e12);
  CHECK(root.hbm->source == "data sheet");
}

TEST_CASE("scenario: unknown key names the nearest word, and the missing key is not reported twice") {
  CHECK(error_of("links:\n  - name: x\n    bandwith: 1 GB/s\n") ==
        "a.yaml:3:5: error: links[0].bandwith: unknown key\n"
        "  expected: one of bandwidth, efficiency, latency, name\n"
        "  hint:     did you mean 'bandwidth'?");
}

TEST_CASE("scenario: missing key stands at the mapping that lacks it") {
  CHECK(error_of("links:\n  - name: x\n") ==
        "a.yaml:2:5: error: links[0].bandwidth: missing key\n"
        "  expected: Rate of one direction.");
}

TEST_CASE("scenario: bits, bytes, units and dimensions are never guessed") {
  const auto bandwidth = [](const std::string& text) { return error_of("links: [{name: x, bandwidth: " + text + "}]"); };
  const auto has = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(has(bandwidth("400"), "no unit\n  expected: a bandwidth such as 400 Gb/s (bits) or 50 GB/s (bytes)\n  got:      400"));
  CHECK(has(bandwidth("400 gb/s"), "did you mean '400 Gb/s' (bits) or '400 GB/s' (bytes)?"));
  CHECK(has(bandwidth("400 G"), "unknown unit 'G'"));
  CHECK(has(bandwidth("400 GB"), "a size in bytes where a bandwidth belongs"));
  CHECK(has(bandwidth("400 GB"), "did you mean '400 GB/s'?"));
  CHECK(has(bandwidth("400 us"), "a time where a bandwidth belongs"));
  CHECK(has(bandwidth("0"), "out of range\n  expected: a bandwidth above 0"));
  CHECK(has(bandwidth("-1 GB/s"), "out of range"));
  CHECK(has(bandwidth("fast"), "not a number with a unit"));
  CHECK(has(bandwidth(".inf"), "not a number with a unit"));
  CHECK(has(error_of("memory: 80 Gb"), "'Gb' are bits, and a size is in bytes"));
  CHECK(has(error_of("memory: 80 gib"), "did you mean '80 GiB'? capital letters matter"));
}

TEST_CASE("scenario: numbers are strict") {
  CHECK(read("count: 1e3").count == 1000);
  for (const char* text : {"010", ".inf", ".nan", "0x10", "1_000", "1,5", "'8'", "8 us", "+8", "eight", "1.5", "0", "~", "[8]", "1e300"}) {
    CAPTURE(text);
    CHECK(error_of(std::string{"count: "} + text).starts_with("a.yaml:1:1: error: count: "));
  }
  CHECK(error_of("on: yes") ==
        "a.yaml:1:1: error: on: not true or false\n"
        "  expected: true or false\n"
        "  got:      yes\n"
        "  hint:     write true");
}

TEST_CASE("scenario: what YAML allows and we do not") {
  CHECK(error_of("count: 1\ncount: 2\n") ==
        "a.yaml:2:1: error: count: duplicate key\n"
        "  expected: each key once\n"
        "  hint:     first given on line 1");
  CHECK(error_of("weights: &w {a: 1}\n").starts_with("a.yaml:1:10: error: weights: named values (&name) are not supported"));
  CHECK(error_of("weights: {<<: {a: 1}}\n").find("merging of mappings (<<) is not supported") != std::string::npos);
  CHECK(error_of("count: !!int 3\n").find("type tags") != std::string::npos);
  CHECK(error_of("count: 3\n---\ncount: 4\n").find("a second document") != std::string::npos);
  CHECK(error_of("") == "a.yaml: error: the file is empty");
  CHECK(error_of("# nothing\n") == "a.yaml: error: the file is empty");
  CHECK(error_of("weights: {a: 1\n").find("the bracket '{' is never closed") != std::string::npos);
  CHECK(error_of("- 1\n").find("wrong kind of value") != std::string::npos);
}

TEST_CASE("scenario: all mistakes at once, in the file's order") {
  const std::string text = error_of("colour: read\ncount: 0\nmemory: 3\n");
  CHECK(text ==
        "a.yaml:1:1: error: colour: unknown word\n"
        "  expected: one of blue, red\n"
        "  got:      read\n"
        "  hint:     did you mean 'red'?\n"
        "a.yaml:2:1: error: count: out of range\n"
        "  expected: a whole number of at least 1\n"
        "  got:      0\n"
        "a.yaml:3:1: error: memory: no unit\n"
        "  expected: a size in bytes such as 80 GiB or 80 GB\n"
        "  got:      3");
}

TEST_SUITE_END();

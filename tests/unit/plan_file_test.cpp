#include <doctest/doctest.h>

#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/plan/plan_file.hpp"

using namespace stepcast;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("unit");

namespace {

// Lines 1 to 6 of a file, and a program with one stream, one label, one buffer and one event.
const std::string kHead =
    "stepcast-plan 1\nname \"x\"\ndegrees 1 1 1 1 1\norder tp cp ep dp pp\nwork 1 1 1 \"megatron\"\n";
const std::string kProgram = "program \"p\"\nstream compute \"c\"\nlabel \"op\"\nbuffer device workspace 8 0\nevents 1\n";

std::string error_of(const std::string& text) {
  try {
    from_file_text(text, "f.plan");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("plan file: the smallest file") {
  const Plan plan = from_file_text(kHead + kProgram + "0 forward 0 - 3 record 0\nend\nstages 0\n", "f.plan");
  CHECK(plan.name == "x");
  REQUIRE(plan.programs.size() == 1);
  CHECK(plan.programs[0].instructions[0].micro_batch == 3);
  CHECK_FALSE(plan.programs[0].instructions[0].layer.has_value());
}

TEST_CASE("plan file: comments, blank lines, tabs and CRLF do not matter") {
  std::string text = "# made by hand\n\n" + kHead + kProgram + "  # inside\n0\tforward 0 - 3 record 0\nend\nstages 0\n";
  const Plan plain = from_file_text(text, "f.plan");
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string{"\r\n"} : std::string{c};
  CHECK(from_file_text(crlf, "f.plan") == plain);
}

TEST_CASE("plan file: names keep quotes, backslashes, control and other bytes") {
  Plan plan = from_file_text(kHead + "stages\n", "f.plan");
  plan.name = std::string{"a \"b\" \\ \n\t\x01\x7f\xc3\xa9 #"} + '\0';
  CHECK(from_file_text(to_file_text(plan), "f.plan") == plan);
}

TEST_CASE("plan file: volumes of an unequal all-to-all come back, and an even collective is written as ever") {
  const std::string text = kHead + "group \"all\" dp all\nvolumes \"hot\" receivers 2.5 1 0\n" + kProgram +
                           "0 forward 0 - - collective all_to_all 0 4096 bf16 expert volumes 0\n"
                           "0 forward 0 - - collective all_to_all 0 4096 bf16 expert\n0 forward 0 - - record 0\nend\nstages 0\n";
  const Plan plan = from_file_text(text, "f.plan");
  REQUIRE(plan.volumes.size() == 1);
  CHECK(plan.volumes[0] == VolumeTable{.name = "hot", .form = VolumeForm::kReceivers, .values = {2.5, 1, 0}});
  CHECK(std::get<Collective>(plan.programs[0].instructions[0].body).volumes == VolumesId{0u});
  CHECK_FALSE(std::get<Collective>(plan.programs[0].instructions[1].body).volumes.has_value());
  CHECK(from_file_text(to_file_text(plan), "f.plan") == plan);
  CHECK(error_of(kHead + "volumes \"x\" recievers 1\n").find("did you mean 'receivers'?") != std::string::npos);
}

TEST_CASE("plan file: groups keep how they are cut") {
  Plan plan = from_file_text(kHead + "stages\n", "f.plan");
  plan.groups = {{"shard", {Axis::kData}, {}, AxisSplit{Axis::kData, 3, false}},
                 {"replica", {Axis::kData}, {}, AxisSplit{Axis::kData, 3, true}},
                 {"ep", {Axis::kTensor, Axis::kData}, {}, {}, RankSlice{2, 8}}};
  CHECK(from_file_text(to_file_text(plan), "f.plan") == plan);
  CHECK(error_of(kHead + "group \"x\" tp all sliced 2 8\nstages\n").find("one of") != std::string::npos);
}

TEST_CASE("plan file: doubles come back to the last bit") {
  Plan plan = from_file_text(kHead + "stages\n", "f.plan");
  for (const double value : {0.1, 1.0 / 3.0, 1e300, 4.9e-324, 123456789012345678.0}) {
    plan.work.model_flops = Flops::from_si(value);
    CHECK(from_file_text(to_file_text(plan), "f.plan").work.model_flops.si() == value);
  }
}

TEST_CASE("plan file: another version or another file is refused") {
  CHECK(error_of("stepcast-plan 2\n") ==
        "f.plan:1:15: error: version 2 of the plan file form is not known here\n"
        "  expected: version 1\n"
        "  hint:     a newer stepcast wrote this file; update this program");
  CHECK(error_of("{\"plan\": 1}\n") ==
        "f.plan:1:1: error: this is not a plan file\n"
        "  hint:     a plan file starts with the line 'stepcast-plan 1'");
  CHECK(error_of("") == "f.plan:1:1: error: this is not a plan file\n"
                        "  hint:     a plan file starts with the line 'stepcast-plan 1'");
}

TEST_CASE("plan file: errors give line, column, what was expected and the nearest word") {
  CHECK(error_of(kHead + kProgram + "0 forwrad 0 - - record 0\nend\nstages 0\n") ==
        "f.plan:11:3: error: unknown stage\n"
        "  expected: one of backward, forward, gradient_sync, input, optimizer, recompute, weight_gradient\n"
        "  got:      forwrad\n"
        "  hint:     did you mean 'forward'?");
  CHECK(error_of(kHead + kProgram + "0 forward 0 - - alloc 1\nend\nstages 0\n") ==
        "f.plan:11:23: error: wrong buffer\n"
        "  expected: a number from 0 to 0\n"
        "  got:      1");
  CHECK(error_of(kHead + kProgram + "0 forward 0 - - alloc\nend\nstages 0\n") ==
        "f.plan:11:22: error: the line ends where buffer is expected");
  CHECK(error_of(kHead + kProgram + "0 forward 0 - - alloc 0 0\nend\nstages 0\n") ==
        "f.plan:11:25: error: wrong ending\n"
        "  expected: the end of the line\n"
        "  got:      0");
  CHECK(error_of(kHead + kProgram + "0 forward 0 - - load_batch -4\nend\nstages 0\n") ==
        "f.plan:11:28: error: wrong size\n"
        "  expected: a number from 0 to 70368744177664\n"
        "  got:      -4");
  CHECK(error_of(kHead + kProgram + "0 forward 0 - - compute 0\nend\nstages 0\n") ==
        "f.plan:11:25: error: wrong kernel\n"
        "  expected: a kernel declared above; there is none\n"
        "  got:      0");
}

TEST_CASE("plan file: a file cut off says so") {
  CHECK(error_of(kHead + kProgram) ==
        "f.plan:10:1: error: the program that begins on line 6 has no 'end'\n"
        "  hint:     the file may be cut off");
  CHECK(error_of(kHead) == "f.plan:5:1: error: the file has no 'stages' line");
  CHECK(error_of(kHead + "name \"again\"\n") == "f.plan:6:1: error: a second 'name' line");
  CHECK(error_of("stepcast-plan 1\nname \"x\n") ==
        "f.plan:2:6: error: the text has no closing quote\n"
        "  expected: text in double quotes on one line");
}

TEST_SUITE_END();

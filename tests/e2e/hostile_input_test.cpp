// Sizes and files that no machine could answer: one clear error at once, status 2, nothing filled or left behind.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

namespace {

constexpr const char* kQuick = "configs/quickstart.yaml";

void refused(const std::string& arguments, const std::string& words) {
  CAPTURE(arguments);
  const Outcome outcome = run_stepcast(arguments);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_MESSAGE(outcome.err.find(words) != std::string::npos, outcome.err);
}

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("hostile input: clusters and plans beyond any memory are refused before they are built") {
  refused(std::string{"topology "} + kQuick + " --set cluster.nodes=1000000 --set 'cluster.fabric={preset: rail-clos}'",
          "cluster.nodes: more than one simulation can hold");
  refused(std::string{"simulate "} + kQuick +
              " --set 'model={sequence: 8192, shape: {layers: 100000, hidden: 8192, heads: 64, ffn: 28672, vocab: 128256}}'",
          "the plan of one step would be too long");
}

TEST_CASE("hostile input: endless and oversized files end in an error, not in all of the memory") {
  const TemporaryDirectory folder;
  const std::string large = folder.path() / "large.yaml";
  std::ofstream{large} << "name: " << std::string(std::size_t{2} << 20U, 'a') << '\n';
  refused("simulate " + large, "too large");
  const std::string keys = folder.path() / "keys.yaml";
  {
    std::ofstream out{keys};
    for (int i = 0; i < 20'000; ++i) out << 'k' << i << ": 1\n";
  }
  refused("simulate " + keys, "too many keys in one mapping");
  refused("topology " + keys, "too many keys in one mapping");
  refused("validate --table /dev/zero", "too large");
}

TEST_CASE("hostile input: a table's counts of nothing are refused by row, counts that are none by the file") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "runs.csv";
  const auto with_gpus = [&](const std::string& gpus, const std::string& tp) {
    std::ofstream{file} << "row_id,gpu,n_gpus,layers,hidden,heads,seq_len,global_batch,tp,step_s,precision,task\n"
                        << "a,H100 SXM," << gpus << ",32,4096,32,2048,8," << tp << ",1.5,bf16,pretrain\n";
    return run_stepcast("validate --table " + file);
  };
  for (const char* zero : {"0", "-8"}) {
    CAPTURE(zero);
    const Outcome gpus = with_gpus(zero, "1");
    CHECK(gpus.status == 0);
    CHECK_MESSAGE(gpus.out.find("n_gpus is less than one") != std::string::npos, (gpus.out + gpus.err));
    CHECK(with_gpus("8", zero).out.find("tp is less than one") != std::string::npos);
  }
  for (const char* odd : {"1.5", "1e18", "many"}) {
    CAPTURE(odd);
    const Outcome outcome = with_gpus(odd, "1");
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find("n_gpus: not a ") != std::string::npos, outcome.err);
  }
}

TEST_CASE("hostile input: a quote in the profile's file name is part of the name") {
  refused(std::string{"simulate "} + kQuick + " --profile 'a\"b'", "a\"b");
  CHECK(run_stepcast(std::string{"simulate "} + kQuick + " --profile 'a\"b'").err.find("no such file") != std::string::npos);
}

// Before the work: with a broken scenario, it is the file that cannot be written which is told.
TEST_CASE("hostile input: files that cannot be written are said before the work, and nothing is left of the question") {
  const TemporaryDirectory folder;
  const std::string plain = folder.path() / "plain";
  std::ofstream{plain} << "x\n";
  const std::string broken = folder.path() / "broken.yaml";
  std::ofstream{broken} << "nonsense: 1\n";
  for (const std::string& option : {std::string{"--json"}, std::string{"--trace"}, std::string{"--db"}}) {
    for (const std::string& place : {plain + "/r", std::string{"/proc/r"}, folder.path().string() + "/none/r"}) {
      CAPTURE(option);
      CAPTURE(place);
      const Outcome outcome = run_stepcast("simulate " + broken + ' ' + option + ' ' + place);
      CHECK(outcome.status == 3);
      CHECK_MESSAGE((outcome.err.find("cannot be written") != std::string::npos || outcome.err.find("no such folder") != std::string::npos), outcome.err);
    }
  }
  CHECK(run_stepcast("simulate " + broken + " --json " + folder.path().string() + "/r --db " + folder.path().string() + "/r.db").status == 2);
  CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 2);
  CHECK(run_stepcast("simulate " + broken + " --db " + plain).err.find("is not a database") != std::string::npos);
}

TEST_CASE("hostile input: files that are no text are told as what they are, without their bytes") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "file";
  const std::vector<std::string> readers{"simulate ", "validate --table ", "validate --kernels ", "calibrate --table ", "calibrate --gpu h100-sxm --kernels ", "calibrate --folder . --nccl-logs ", "import nccl-tests ", "import nvidia-smi ",
                                         "import kineto ", "import nsys ", "import megatron ", "import deepspeed ", "import ibnetdiscover ", "import nccl-topo ", "profile show ", "network ", "topology ", "calibrate --db "};
  const std::vector<std::pair<std::string, std::string>> forms{{std::string{"\xff\xfeg\0p\0u\0\n\0", 10}, "is UTF-16"}, {"\x1f\x8b\x08\x1b[31m", "compressed"}, {std::string{"a\x1b[31m\0\x07,b\n", 11}, ""}, {"a\x1b[31m,\x9b\n1\n", ""}};
  for (const auto& [bytes, words] : forms) {
    std::ofstream{file, std::ios::binary} << bytes;
    for (const std::string& reader : readers) {
      CAPTURE(reader);
      const Outcome outcome = run_stepcast(reader + file);
      CHECK(outcome.status == 2);
      CHECK_MESSAGE(outcome.err.find_first_of("\x1b\x07\x9b\xff") == std::string::npos, outcome.err);
      const bool any_bytes = reader == "import kineto " || reader == "import nsys " || reader == "calibrate --db ";  // read what is compressed, or nothing but databases
      if (!any_bytes) CHECK_MESSAGE(outcome.err.find(words) != std::string::npos, outcome.err);
    }
  }
}

TEST_CASE("hostile input: two outputs do not share standard output") {
  refused(std::string{"simulate "} + kQuick + " --json - --trace -", "two outputs on standard output");
}

TEST_CASE("hostile input: a closed standard output is told once") {
  const Outcome outcome = run_stepcast(std::string{"plan "} + kQuick + " >&-");
  CHECK(outcome.status == 3);
  CHECK(outcome.err.find("error:") == outcome.err.rfind("error:"));
}

TEST_SUITE_END();

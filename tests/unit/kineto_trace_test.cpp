// Traces of the PyTorch profiler, written by hand in the forms of several versions.
#include <doctest/doctest.h>

#include <fstream>

#include "calibration/kineto_trace.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/program.hpp"

using namespace stepcast::calibration;
using stepcast::UserError;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("calibration");

namespace {

GpuTrace trace_of(const std::string& text, const char* name = "trace.json") {
  const TemporaryDirectory place;
  const std::string path = (place.path() / name).string();
  std::ofstream(path, std::ios::binary) << text;
  return read_kineto_trace(path);
}

std::string error_of(const std::string& text) {
  try {
    trace_of(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

const char* const kHead = R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}, {"id": 3, "name": "NVIDIA H200"}],
 "distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8, "pg_config": [{"ranks": [0]}]}, "traceEvents": [)";

}  // namespace

// Two kernels, 1 us apart on stream 7; the second was launched at 101 (2 us) while the first ran until 110: a gap of 1 us. The first, on a
// stream that had been idle... is the stream's first: no latency. A third is launched at 150 and starts at 156: latency 6 us.
TEST_CASE("kineto: kernels, steps, launches and what was skipped") {
  const GpuTrace trace = trace_of(std::string{kHead} + R"json(
    {"ph": "M", "name": "process_name", "pid": 3, "ts": 0, "args": {"name": "x"}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 99, "tid": 99, "ts": 90.5, "dur": 100.25},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#7", "pid": 3, "tid": 7, "ts": 91, "dur": 90},
    {"ph": "X", "cat": "user_annotation", "name": "## forward ##", "pid": 99, "tid": 99, "ts": 95, "dur": 20},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 99, "tid": 99, "ts": 98, "dur": 5},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 99, "tid": 99, "ts": 98, "dur": 2, "args": {"correlation": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 99, "tid": 99, "ts": 101, "dur": 2, "args": {"correlation": 2}},
    {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 99, "tid": 99, "ts": 150, "dur": 4, "args": {"correlation": 3}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 99, "tid": 99, "ts": 151, "dur": 4, "args": {"correlation": 4}},
    {"ph": "X", "cat": "kernel", "name": "void gemm<float>(float*)", "pid": 3, "tid": 7, "ts": 100.5, "dur": 9.5, "args": {"device": 3, "stream": 7, "correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "triton_poi_fused_add_0", "pid": 3, "tid": 7, "ts": 111.0, "dur": 2, "args": {"device": 3, "stream": 7, "correlation": 2}},
    {"ph": "X", "cat": "kernel", "name": "triton_poi_fused_add_0", "pid": 3, "tid": 7, "ts": 156, "dur": 2, "args": {"device": 3, "stream": 7, "correlation": 3}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 3, "tid": 9, "ts": 120, "dur": 1.5, "args": {"device": 3, "stream": 9, "bytes": 4096, "memory bandwidth (GB/s)": inf}},
    {"ph": "X", "cat": "kernel", "name": "back in time", "pid": 3, "tid": 7, "ts": 130, "dur": -1, "args": {"device": 3, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "long ago", "pid": 3, "tid": 7, "ts": -9000000000000, "dur": 1, "args": {"device": 3, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "no time", "pid": 3, "tid": 7, "dur": 1, "args": {"device": 3, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "huge", "pid": 3, "tid": 7, "ts": 1e300, "dur": 1, "args": {"device": 3, "stream": 7}},
    {"ph": "s", "id": 1, "pid": 99, "tid": 99, "ts": 98, "cat": "ac2g", "name": "ac2g"}
  ], "traceName": "/home/someone/trace.json"})json");
  CHECK(trace.gpus == std::vector<std::string>{"NVIDIA H200"});
  CHECK(trace.workers.at(5) == "rank 5 of 8");
  const auto sums = trace.sums();
  CHECK(sums.at(GpuWork::kGemm).count == 1);
  CHECK(sums.at(GpuWork::kGemm).time_ns == 9500);
  CHECK(sums.at(GpuWork::kElementwise).count == 2);
  CHECK(sums.at(GpuWork::kCopy).time_ns == 1500);
  REQUIRE(trace.steps().size() == 1);
  CHECK(trace.steps()[0].duration_ns == 100250);
  CHECK(trace.steps()[0].start_ns == 0);  // the earliest of all
  CHECK(trace.launches.calls == 3);
  CHECK(trace.launches.gap_s == doctest::Approx(1e-6));
  CHECK(trace.launches.latency_s == doctest::Approx(6e-6));
  CHECK(trace.launches.call_s == doctest::Approx(2e-6));
  CHECK(trace.skipped.at("negative duration") == 1);
  CHECK(trace.skipped.at("start more than 40 days from the others") == 1);
  CHECK(trace.skipped.at("no time or duration") == 1);
  CHECK(trace.skipped.at("time that is no number, or too large") == 1);
  CHECK(trace.skipped.at("host operators (cpu_op)") == 1);
  CHECK(trace.skipped.at("steps as the GPU saw them (the host's are taken)") == 1);
  CHECK(trace.skipped.at("flow arrows (ph s, f)") == 1);
  for (const GpuEvent& event : trace.events) {
    CHECK(event.worker == 5);
    if (event.work == GpuWork::kCopy) CHECK(trace.span(event).bytes == 4096);
    if (event.work == GpuWork::kGemm) CHECK(trace.names[event.name] == "gemm<float>");
  }
}

// Bytes as nccl-tests counts them: all-gather by its output, reduce-scatter by its input.
TEST_CASE("kineto: collectives with and without their sizes") {
  const auto kernel = [](const char* name, int ts, const char* args) {
    return std::string{R"({"ph": "X", "cat": "kernel", "name": ")"} + name + R"(", "pid": 0, "tid": 20, "ts": )" + std::to_string(ts) + R"(, "dur": 4, "args": {"device": 0, "stream": 20)" + args + "}}";
  };
  const GpuTrace trace = trace_of("[" + kernel("ncclDevKernel_AllGather_RING_LL(x)", 10, R"(, "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 800, "Group size": 8, "dtype": "BFloat16")") + "," +
                                  kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE(x)", 20, R"(, "Collective name": "_reduce_scatter_base", "In msg nelems": 800, "Out msg nelems": 100, "Group size": 8, "dtype": "Float")") + "," +
                                  kernel("ncclKernel_AllReduce_TREE_LL_Sum_float(x)", 30, "") + "," +
                                  kernel("ncclDevKernel_SendRecv(x)", 40, R"(, "Collective name": "send", "In msg nelems": 9000000000000000000, "dtype": "Float")") + "]",
                                  "worker_rank12.json");
  CHECK(trace.workers.begin()->second == "rank 12");
  REQUIRE(trace.collectives.size() == 4);
  CHECK(trace.collectives.contains({"all_gather", "BFloat16", "ring", "ll", 8, 1600}));
  CHECK(trace.collectives.contains({"reduce_scatter", "Float", "ring", "simple", 8, 3200}));
  CHECK(trace.collectives.contains({"all_reduce", "", "tree", "ll", 0, -1}));
  CHECK(trace.collectives.contains({"send", "Float", "", "", 0, -1}));
  CHECK(trace.names[trace.events[0].name] == "all_gather BFloat16 of 8 ring ll");
  CHECK(trace.notes.size() == 3);  // no GPU, sizes, launches
}

TEST_CASE("kineto: a file that ends early gives what it has") {
  const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 4, "args": {"device": 0, "stream": 7}})";
  const GpuTrace trace = trace_of(std::string{kHead} + kernel + "," + kernel.substr(0, 60));
  CHECK(trace.events.size() == 1);
  CHECK(trace.notes[0] == "the file ends within event 2: what comes before is taken");
  CHECK(trace_of(std::string{kHead} + kernel + ",").events.size() == 1);
}

TEST_CASE("kineto: what is no such trace is one clear error") {
  CHECK(error_of("").find("is empty") != std::string::npos);
  CHECK(error_of("  \n").find("is empty") != std::string::npos);
  CHECK(error_of(std::string{"\x7f" "ELF\0\0", 6}).find("is no JSON") != std::string::npos);
  CHECK(error_of("hello").find("is no JSON object") != std::string::npos);
  CHECK(error_of("{}").find("has no traceEvents") != std::string::npos);
  CHECK(error_of(R"({"schema": "1.0.1", "nodes": []})").find("execution trace (ET)") != std::string::npos);
  CHECK(error_of(R"({"traceEvents": []})").find("has no events") != std::string::npos);
  CHECK(error_of(R"({"traceEvents": {}})").find("no list") != std::string::npos);
  CHECK(error_of(R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1}]})").find("none of them of a GPU") != std::string::npos);
  CHECK(error_of(R"({"traceEvents": [{"ph": "X" "cat": "kernel"}]})").find("at byte") != std::string::npos);
  CHECK(error_of("{\"schemaVersion\": 1,").find("ends before its first event") != std::string::npos);
}

TEST_SUITE_END();

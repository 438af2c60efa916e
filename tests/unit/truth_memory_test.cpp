// A published memory figure says what it counts; a forecast answers with the like.
#include <doctest/doctest.h>

#include "app/validate/truth_memory.hpp"

using namespace stepcast;
using calibration::memory_figure;
using calibration::MemoryFigure;
using calibration::MemoryMeasure;

TEST_SUITE_BEGIN("unit");

TEST_CASE("truth memory: what mem_kind counts") {
  CHECK(memory_figure(1.0, "torch max_memory_allocated, last global rank").measure == MemoryMeasure::kAllocated);
  CHECK(memory_figure(1.0, "torch max_memory_allocated, last global rank").last_rank);
  CHECK(memory_figure(1.0, "peak reserved, max over ranks (GiB)").measure == MemoryMeasure::kReserved);
  CHECK(memory_figure(1.0, "peak_memory_usage (allocated at end 32.099 GiB)").measure == MemoryMeasure::kAllocated);
  CHECK(memory_figure(1.0, "nvidia-smi (GiB)").measure == MemoryMeasure::kDevice);
  CHECK_FALSE(memory_figure(1.0, "nvidia-smi (GiB)").last_rank);
}

TEST_CASE("truth memory: GiB unless GB is said, and nothing that is no size") {
  CHECK(memory_figure(2.0, "nvidia-smi (GiB)").peak == Bytes{2147483648});
  CHECK(memory_figure(2.0, "max_allocated over ranks").peak == Bytes{2147483648});
  CHECK(memory_figure(2.0, "GPU memory (GB)").peak == Bytes{2000000000});
  CHECK_FALSE(memory_figure(-1.0, "GPU memory (GB)").peak);
  CHECK_FALSE(memory_figure(1e12, "GPU memory (GB)").peak);
  CHECK_FALSE(memory_figure(std::nullopt, "").stated());
  CHECK(memory_figure(std::nullopt, "OOM").out_of_memory);
}

// Two stages of 10 and 6 bytes live; 1 more reserved, 2 of context, 3 of communicators each.
TEST_CASE("truth memory: the like with the like") {
  app::Forecast forecast;
  for (const std::size_t stage : {0, 1}) forecast.plan.program_of_stage.emplace_back(stage);
  const auto peak = [](std::size_t program, std::int64_t live) {
    run::MemoryPeak p{.program = plan::ProgramId{program}};
    p.context = Bytes{2};
    p.communicators = Bytes{3};
    p.fragmentation = Bytes{1};
    p.total = Bytes{live + 6};
    return p;
  };
  forecast.result.memory = {peak(0, 10), peak(1, 6)};
  forecast.device_memory = Bytes{100};
  MemoryFigure figure{.peak = Bytes{8}, .measure = MemoryMeasure::kAllocated};
  CHECK(app::compared_memory(forecast, figure).forecast == Bytes{10});
  CHECK(app::compared_memory(forecast, figure).error_pct() == doctest::Approx(25.0));
  figure.measure = MemoryMeasure::kReserved;
  CHECK(app::compared_memory(forecast, figure).forecast == Bytes{11});
  figure.measure = MemoryMeasure::kDevice;
  CHECK(app::compared_memory(forecast, figure).forecast == Bytes{16});
  figure.last_rank = true;
  CHECK(app::compared_memory(forecast, figure).forecast == Bytes{12});
}

// 100 GiB forecast on a GPU of 80: foreseen; and on one of 200: not. Neither has an error in per cent.
TEST_CASE("truth memory: runs out of memory are foreseen or not") {
  const MemoryFigure out{.out_of_memory = true};
  const app::MemorySummary s = app::sum_up({{.measured = out, .forecast = Bytes{100}, .fits = false},
                                            {.measured = out, .forecast = Bytes{100}, .fits = true},
                                            {.measured = {.peak = Bytes{80}}, .forecast = Bytes{100}}});
  CHECK(s.out_of_memory == 2);
  CHECK(s.foreseen == 1);
  CHECK(s.errors.n == 1);
  CHECK(*s.errors.mean_signed == doctest::Approx(25.0));
}

TEST_SUITE_END();

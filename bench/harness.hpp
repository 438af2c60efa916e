// bench/harness.hpp — how every benchmark measures: one warm-up, then `runs` timed runs; median, min
// and max as one CSV row with compiler, CPU and commit (--commit TEXT on the command line).
// Time is this process's CPU time (the programs have one thread), so neighbours on the machine disturb
// it through the caches only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace stepcast::bench {

struct Options {
  int runs = 5;
  std::string commit = "unknown";
};

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--commit") options.commit = argv[i + 1];
    if (std::string_view(argv[i]) == "--runs") options.runs = std::max(5, std::stoi(argv[i + 1]));
  }
  return options;
}

struct Sample {
  double median;
  double min;
  double max;
};

inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// run() does the work and returns how many operations it did; the sample is operations per second.
template <class Run>
Sample measure(const Options& options, Run&& run) {
  std::vector<double> rates;
  for (int i = -1; i < options.runs; ++i) {
    const double start_s = cpu_seconds();
    const auto operations = static_cast<double>(run());
    const double taken_s = cpu_seconds() - start_s;
    if (i >= 0) rates.push_back(operations / taken_s);  // run -1 is the warm-up
  }
  std::sort(rates.begin(), rates.end());
  return {rates[rates.size() / 2], rates.front(), rates.back()};
}

inline std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

inline void print_header() {
  fmt::print("benchmark,case,unit,median,min,max,runs,ratio_to_baseline,compiler,cpu,commit\n");
}

// `ratio` is 0 where there is no baseline.
inline void print_row(const Options& options, std::string_view benchmark, std::string_view name,
                      std::string_view unit, Sample sample, double ratio = 0.0) {
  fmt::print("{},{},{},{:.4g},{:.4g},{:.4g},{},{},g++ {}.{},{},{}\n", benchmark, name, unit, sample.median,
             sample.min, sample.max, options.runs, ratio > 0.0 ? fmt::format("{:.2f}", ratio) : "",
             __GNUC__, __GNUC_MINOR__, cpu_name(), options.commit);
  std::fflush(stdout);
}

}  // namespace stepcast::bench

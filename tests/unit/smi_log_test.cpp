// nvidia-smi as people keep it: with and without units and headers, several GPUs, headers that come back, missing values.
#include <doctest/doctest.h>

#include "calibration/smi_log.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast::calibration;
using stepcast::UserError;

TEST_SUITE_BEGIN("calibration");

namespace {

const stepcast::trace::Counter& counter(const SmiLog& log, std::size_t gpu, const std::string& name) {
  for (const auto& c : log.gpus.at(gpu).counters) {
    if (c.name == name) return c;
  }
  FAIL("no counter ", name);
  return log.gpus.front().counters.front();
}

std::string error_of(const std::string& text, const SmiOptions& options = {}) {
  try {
    read_smi_log(text, "x.csv", options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("nvidia-smi: units in cells, two GPUs, a header that comes back, missing values") {
  const SmiLog log = read_smi_log(
      "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], temperature.memory, clocks_throttle_reasons.active, clocks_throttle_reasons.sw_power_cap, compute_mode\r\n"
      "2026/02/28 23:59:59.500, 0, NVIDIA A100, 101.50 W, 1410 MHz, N/A, 0x0000000000000004, Active, Default\r\n"
      "2026/02/28 23:59:59.503, 1, NVIDIA A100, [Not Supported], 1400 MHz, [N/A], 0x0000000000000000, Not Active, Default\r\n"
      "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], temperature.memory, clocks_throttle_reasons.active, clocks_throttle_reasons.sw_power_cap, compute_mode\r\n"
      "2026/03/01 00:00:00.500, 0, NVIDIA A100, 99000 mW, 1275 MHz, N/A, 0x0000000000000044, Active, Default\r\n"
      "2026/03/01 00:00:00.503, 1, NVIDIA A100, 88.0 W, 1390\r\n",
      "x.csv");
  REQUIRE(log.gpus.size() == 2);
  const auto& power = counter(log, 0, "power");
  REQUIRE(power.samples.size() == 2);
  CHECK(power.unit == "W");
  CHECK(power.samples[0].value == 101.5);
  CHECK(power.samples[1].value == 99.0);
  CHECK(power.samples[1].time.seconds() == doctest::Approx(1.0));  // over the end of a February
  CHECK(counter(log, 1, "SM clock").samples.size() == 1);
  CHECK(counter(log, 0, "clocks_throttle_reasons.sw_power_cap").samples[0].value == 1.0);
  CHECK(log.throttle_samples == 3);
  CHECK(log.throttled.at("software power cap") == 2);
  CHECK(log.throttled.at("hardware thermal") == 1);
  CHECK(log.skipped.at("cells without a value (temperature.memory)") == 3);
  CHECK(log.skipped.at("cells without a value (power.draw)") == 1);
  CHECK(log.skipped.at("cells of text (compute_mode)") == 3);
  CHECK(log.skipped.at("rows with another number of cells than the header") == 1);
  CHECK(log.gpus[0].facts.at("name") == "NVIDIA A100");
}

// Three GPUs a few milliseconds apart each second, and nothing that names them.
TEST_CASE("nvidia-smi: GPUs that no column tells apart") {
  std::string text = "timestamp, power.draw [W]\n";
  for (int tick = 0; tick < 4; ++tick) {
    for (int gpu = 0; gpu < 3; ++gpu) text += "2026/01/01 10:00:0" + std::to_string(tick) + ".00" + std::to_string(2 * gpu) + ", " + std::to_string(100 * (gpu + 1) + tick) + ".0 W\n";
  }
  const SmiLog log = read_smi_log(text, "x.csv");
  REQUIRE(log.gpus.size() == 3);
  CHECK(counter(log, 2, "power").samples[3].value == 303.0);
  CHECK(log.notes[0].find("bursts of 3") != std::string::npos);
  const SmiLog one = read_smi_log("timestamp, power.draw [W]\n2026/01/01 10:00:00.000, 1\n2026/01/01 10:00:00.100, 2\n2026/01/01 10:00:00.200, 3\n2026/01/01 10:00:00.300, 3\n", "x.csv");
  CHECK(one.gpus.size() == 1);
}

TEST_CASE("nvidia-smi: no header needs the columns, no time an interval") {
  const std::string text = "0, 297.37, 0x4\n1, 289.76, 0x0\n0, 300.00, 0x4\n1, 299.00, 0x4\n";
  CHECK(error_of(text).find("--columns") != std::string::npos);
  const SmiLog log = read_smi_log(text, "x.csv", {.columns = {"index", "power.draw", "clocks_event_reasons.active"}, .interval_s = 0.5});
  REQUIRE(log.gpus.size() == 2);
  CHECK(counter(log, 1, "power").samples[1].time.seconds() == doctest::Approx(0.5));
  CHECK(counter(log, 1, "power").unit == "W");
  CHECK(error_of(text, {.columns = {"index", "pover"}}).find("pover") != std::string::npos);
  CHECK(error_of("index, power.draw [W]\n0, 1\n", {.columns = {"index"}}).find("leave --columns out") != std::string::npos);
}

TEST_CASE("dcgmi dmon: fields by short name, missing values, switches left out") {
  const SmiLog log = read_smi_log(
      "#Entity   POWER    SMCLK   TENSO   XYZZY\n"
      "ID        W        MHz\n"
      "GPU 0     350.5    1980    0.71    1\n"
      "GPU 1     N/A      1965    0.70    2\n"
      "Switch 0  1 2 3 4\n"
      "#Entity   POWER    SMCLK   TENSO   XYZZY\n"
      "ID        W        MHz\n"
      "GPU 0     351.5    1975    0.72    1\n"
      "GPU 1     340.0    1960\n",
      "d.txt", {.columns = {}, .interval_s = 0.5});
  CHECK(log.form == "dcgmi dmon");
  REQUIRE(log.gpus.size() == 2);
  CHECK(log.rows == 3);
  CHECK(counter(log, 0, "power").unit == "W");
  REQUIRE(counter(log, 0, "power").samples.size() == 2);
  CHECK(counter(log, 0, "power").samples[1].value == doctest::Approx(351.5));
  CHECK(counter(log, 0, "tensor cores active").samples[0].value == doctest::Approx(0.71));
  CHECK(counter(log, 1, "XYZZY").samples[0].value == doctest::Approx(2));
  CHECK(log.seconds == doctest::Approx(0.5));
  CHECK(log.skipped.at("rows of what is no GPU") == 1);
  CHECK(log.skipped.at("rows with another number of cells than the header") == 1);
  CHECK(log.skipped.at("cells without a value (POWER)") == 1);
  CHECK(error_of("#Entity\nID\nGPU 0\n").find("without a field") != std::string::npos);
}

TEST_CASE("nvidia-smi dmon: headings that come back, dates, missing values") {
  const SmiLog log = read_smi_log(
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb\n"
      "# Idx      W      C      C      %      %    MHz    MHz     MB\n"
      "    0    218     43      -     95      1  12481   2325    725\n"
      "    1    100     41      -     90      1  12481   1325     25\n"
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb\n"
      "# Idx      W      C      C      %      %    MHz    MHz     MB\n"
      "    0    220     43      -     95      1  12481   2340    725\n"
      "    1    101\n",
      "x.txt");
  REQUIRE(log.gpus.size() == 2);
  CHECK(counter(log, 0, "SM clock").samples[1].value == 2340.0);
  CHECK(counter(log, 0, "power").samples[1].time.seconds() == doctest::Approx(1.0));
  CHECK(counter(log, 0, "memory used").unit == "MiB");
  CHECK(log.skipped.at("cells without a value (mtemp)") == 3);
  const SmiLog dated = read_smi_log(
      "#Date       Time         gpu   pwr\n"
      "#YYYYMMDD   HH:MM:SS     Idx     W\n"
      " 20261004   01:00:00       0   200\n"
      " 20261004   01:00:02       0   210\n",
      "x.txt");
  CHECK(counter(dated, 0, "power").samples[1].time.seconds() == doctest::Approx(2.0));
}

TEST_CASE("nvidia-smi: what is none of its output is one clear error") {
  CHECK(error_of("").find("is empty") != std::string::npos);
  CHECK(error_of("Field \"bogus\" is not a valid field to query.\n\n").find("wrong field") != std::string::npos);
  CHECK(error_of("# gpu pid type sm mem enc dec command\n# Idx # C/G % % % % name\n 0 1 C 1 1 1 1 python\n").find("pmon") != std::string::npos);
  CHECK(error_of("start_time,window_name,elapsed_time\n1,a,2\n").find("has no column of nvidia-smi among start_time") != std::string::npos);
  CHECK(error_of(std::string{"ab\0cd", 5}).find("is no text") != std::string::npos);
  CHECK(error_of(std::string{"\xff\xfei\0n\0", 6}).find("UTF-16") != std::string::npos);
  CHECK(error_of("index, power.draw [W]\n").find("no rows") != std::string::npos);
  CHECK(error_of("index, power.draw [W]\n0, [N/A]\n").find("no row that can be read") != std::string::npos);
  CHECK(error_of("# Notes\n").find("is not of nvidia-smi dmon") != std::string::npos);
  CHECK(error_of("timestamp, power.draw [W]\n2026/13/01 10:00:00.000, 5\n").find("no row that can be read") != std::string::npos);
}

TEST_CASE("nvidia-smi: bytes that are no UTF-8 become question marks, in names of columns and GPUs too") {
  const SmiLog log = read_smi_log("index, name, power.draw [W]\n0, NVIDIA \xbc, 5\n", "x.csv");
  CHECK(log.gpus.at(0).facts.at("name") == "NVIDIA ?");
  const SmiLog dmon = read_smi_log("# gpu  pwr  \x93q\n# Idx    W    %\n 0  5  6\n", "x.txt");
  CHECK(dmon.gpus.at(0).counters.back().name == "?q");
}

// Hundred days are what the store holds.
TEST_CASE("nvidia-smi: times far apart do not overflow") {
  const SmiLog log = read_smi_log("timestamp, power.draw [W]\n1971/01/01 10:00:00.000, 5\n2199/01/01 10:00:00.000, 6\n", "x.csv");
  CHECK(log.skipped.at("rows more than 100 days after the first") == 1);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "7, 1\n";
  const SmiLog slow = read_smi_log(text, "x.csv", {.columns = {"index", "power.draw"}, .interval_s = 86400.0});
  CHECK(slow.skipped.at("rows more than 100 days after the first") == 99);
}

TEST_SUITE_END();

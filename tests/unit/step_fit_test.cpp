// Figures out of step times: runs that are forecast with another host and another clock than the profile has stand for measured ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "app/calibrate/row_deal.hpp"
#include "app/calibrate/step_fit.hpp"
#include "app/scenario/setup.hpp"
#include "app/validate/truth_table.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::app;

TEST_SUITE_BEGIN("unit");

namespace {

const HardwareShelf& shelf() {
  static const HardwareShelf loaded = load_shelf(DataFiles{.root = STEPCAST_SOURCE_DIR});
  return loaded;
}

constexpr const char* kHeader = "row_id,gpu,n_gpus,gpus_per_node,layers,hidden,heads,seq_len,global_batch,micro_batch,vocab,tp,dp,precision,recompute,step_s\n";

// Sixteen runs on one to eight GPUs: hidden sizes that the host bounds and such that the GPU does.
std::string table(double (*step)(const std::string&)) {
  std::string text = kHeader;
  int row = 0;
  for (const int hidden : {512, 1024, 4096, 6144}) {
    for (const int tp : {1, 2}) {
      for (const int batch : {8, 16}) {
        const std::string facts = fmt::format("A100-SXM,{},8,4,{},16,1024,{},2,50304,{},2,bf16,none", 2 * tp, hidden, batch, tp);
        const std::string id = fmt::format("run-{}", row++);
        text += fmt::format("{},{},{:.9g}\n", id, facts, step(facts));
      }
    }
  }
  return text;
}

double forecast_with(const HardwareShelf& with, const std::string& facts) {
  const CsvTable one = CsvTable::parse(std::string{kHeader} + "x," + facts + ",1\n", "one.csv");
  return forecast(prepare(with, load_row(calibration::read_truth_table(one, with.catalogue).front(), "one.csv", with)), {}).step_time_s();
}

double elsewhere(const std::string& facts) {
  static const HardwareShelf machine = [] {
    HardwareShelf changed = shelf();
    for (calibration::Profile& profile : changed.profiles) {
      if (profile.name != "a100") continue;
      calibration::set_parameter(profile, "overhead.host_launch", 70e-6);
      calibration::set_parameter(profile, "overhead.host_step", 12e-3);
      calibration::set_parameter(profile, "clock.sustained_fraction", 0.78);
    }
    return changed;
  }();
  return forecast_with(machine, facts);
}

std::string written(const std::string& text, const char* name) {
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  write_file(path, text);
  return path;
}

}  // namespace

TEST_CASE("step fit: figures of another machine out of half of its runs' step times") {
  const std::string path = written(table(elsewhere), "stepcast_step_fit_test.csv");
  const StepFitRequest request{.file = path, .family = {}, .share = 0.5, .seed = 3, .threads = 2};
  const StepFits fits = fit_steps(request, shelf(), [](const std::string&) {});
  REQUIRE(fits.families.size() == 1);
  const StepFit& fit = fits.families.front();
  CHECK(fit.family == "a100-sxm-80");
  CHECK(fit.errors(true, false).n == 8);
  CHECK(fit.errors(false, false).n == 8);
  CHECK(fits.rows == 16);
  CHECK(fits.shipped.n == 16);
  CHECK(fit.profile.name == "stepcast_step_fit_test-a100-sxm-80");
  CHECK(*fit.errors(false, false).mean_absolute > 15.0);
  CHECK(*fit.errors(false, true).mean_absolute < 3.0);
  CHECK(fit.helps);
  CHECK(fit.left_out < 0.05);
  CHECK(*calibration::parameter_value(fit.profile, "overhead.host_launch") == doctest::Approx(70e-6).epsilon(0.1));
  CHECK(*calibration::parameter_value(fit.profile, "clock.sustained_fraction") == doctest::Approx(0.78).epsilon(0.03));
  for (const calibration::ProfileParameter& p : calibration::parameters_of(fit.profile))
    if (p.key == "overhead.host_launch") CHECK(p.source.find("8 rows of 16 of stepcast_step_fit_test on a100-sxm-80, seed 3") != std::string::npos);

  // One thread, the same figures; another seed, other rows.
  StepFitRequest alone = request;
  alone.threads = 1;
  CHECK(step_fit_text(fit_steps(alone, shelf(), [](const std::string&) {})) == step_fit_text(fits));
  alone.seed = 4;
  CHECK(step_fit_text(fit_steps(alone, shelf(), [](const std::string&) {})) != step_fit_text(fits));
  std::filesystem::remove(path);
}

// Every other run 40 % slower than forecast, the others as much faster, whatever they compute: no figure of a machine tells which, and a
// fit to a few of them would be one to chance.
TEST_CASE("step fit: where rows tell nothing of the others the profile stays as it was") {
  static int row;
  row = 0;
  const std::string path = written(table([](const std::string& facts) { return forecast_with(shelf(), facts) * (row++ % 2 == 0 ? 1.4 : 0.7); }), "stepcast_step_fit_mixed.csv");
  const StepFits fits = fit_steps({.file = path, .family = {}, .share = 0.25, .seed = 1, .threads = 2}, shelf(), [](const std::string&) {});
  const StepFit& fit = fits.families.front();
  CHECK(fit.left_out > fit.left_out_before);
  CHECK_FALSE(fit.helps);
  CHECK(fit.errors(false, true).mean_absolute == fit.errors(false, false).mean_absolute);
  CHECK(step_fit_text(fits).find("with the profile as it was: it stays as it was") != std::string::npos);
  std::filesystem::remove(path);
}

// First and last stages share the embedding's gradients: some pairs of hosts lie on one leaf, some do not. One worker a stage stands for all
// nevertheless, at the pace of the slowest pair.
TEST_CASE("step fit: clusters whose workers differ are estimated by one worker a stage") {
  const CsvTable table = CsvTable::parse("row_id,gpu,n_gpus,gpus_per_node,layers,hidden,heads,seq_len,global_batch,micro_batch,vocab,tp,dp,pp,precision,recompute,step_s\n"
                                         "x,A100-SXM,256,8,24,12288,96,2048,32,1,51200,8,4,8,bf16,full,1\n", "one.csv");
  const calibration::TruthRow row = calibration::read_truth_table(table, shelf().catalogue).front();
  REQUIRE(row.refusal == "");
  const Setup setup = prepare(shelf(), load_row(row, "one.csv", shelf()));
  const EstimatedStep estimate = estimated_step(setup);
  const double exact = step_time(setup, true).seconds();
  CHECK(estimate.time.seconds() == doctest::Approx(exact).epsilon(0.005));
  CHECK_FALSE(estimate.exact);
}

TEST_CASE("rows are dealt by their names: another row moves none, and the share is met") {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(fmt::format("row-{}", i));
  const std::vector<bool> dealt = deal_rows(names, 0.3, 1);
  CHECK(std::count(dealt.begin(), dealt.end(), true) == 12);
  CHECK(deal_rows(names, 0.3, 2) != dealt);
  const std::vector<bool> more = deal_rows(names, 0.5, 1);
  for (std::size_t i = 0; i < names.size(); ++i) CHECK((!dealt[i] || more[i]));  // who was dealt stays dealt
  std::vector<std::string> turned{names.rbegin(), names.rend()};
  const std::vector<bool> turned_dealt = deal_rows(turned, 0.3, 1);
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(turned_dealt[names.size() - 1 - i] == dealt[i]);
}

TEST_CASE("step fit: a family that the table lacks, and too few rows") {
  const std::string path = written(table([](const std::string&) { return 1.0; }), "stepcast_step_fit_short.csv");
  CHECK_THROWS_AS(fit_steps({.file = path, .family = "h100-sxm"}, shelf(), [](const std::string&) {}), UserError);
  CHECK_THROWS_AS(fit_steps({.file = path, .family = "a100-sxm-80", .share = 0.97}, shelf(), [](const std::string&) {}), UserError);
  std::filesystem::remove(path);
}

TEST_SUITE_END();

#include "app/calibrate/step_rows.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

#include <fmt/format.h>

#include "app/validate/parallel_rows.hpp"
#include "app/validate/truth_table.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

// Plans of more instructions are made again for each forecast, rather than kept; and so are further ones once so many are kept.
constexpr std::size_t kLargestKept = 5'000'000;
constexpr std::int64_t kMostKept = 50'000'000;  // some 3 GB

std::size_t instructions(const plan::Plan& plan) {
  std::size_t sum = 0;
  for (const plan::Program& program : plan.programs) sum += program.instructions.size();
  return sum;
}

void set_profile(const HardwareShelf& shelf, Setup& setup, const calibration::Profile& profile) {
  setup.profile.profile = profile;
  setup.collectives = pick_collectives(shelf, setup.hardware, setup.profile);
  setup.side_networks = pick_side_networks(shelf, setup.hardware, setup.profile);
}

// A row of the table with its forecast as profiles are; why not, else.
struct Read {
  std::optional<StepRow> row;
  std::string table;
  std::string gpu;
  calibration::ChosenProfile profile;
  bool refused = false;
};

Read read_row(const calibration::TruthRow& row, const StepTableRequest& request, const HardwareShelf& shelf) {
  Read read;
  if (!row.refusal.empty() || !row.step_s) {
    read.refused = true;
    return read;
  }
  try {
    StepRow one{.loaded = load_row(row, request.file, shelf), .id = row.id, .measured_s = *row.step_s, .complete = row.complete};
    const topology::ClusterHardware hardware = pick_hardware(shelf, one.loaded);
    if (request.family && hardware.gpu.name != *request.family) return read;
    read.table = table_of(row, request.file);
    read.gpu = hardware.gpu.name;
    read.profile = pick_profile(shelf, one.loaded, hardware.gpu);
    const Setup setup = prepare(shelf, one.loaded);
    const EstimatedStep estimate = estimated_step(setup);
    one.before_s = exact_seconds(estimate.exact ? estimate.time : step_time(setup, true));
    one.correction = one.before_s / exact_seconds(estimate.time);
    read.row = std::move(one);
  } catch (const UserError&) {
    read.refused = true;
  }
  return read;
}

}  // namespace

void keep_plans(const HardwareShelf& shelf, std::span<StepRow* const> rows, unsigned threads) {
  std::atomic<std::int64_t> kept{0};
  in_parallel(rows.size(), threads, [&](std::size_t i) {
    if (kept >= kMostKept) return;
    Setup setup = prepare(shelf, rows[i]->loaded);
    const std::size_t size = instructions(setup.plan);
    if (size <= kLargestKept && kept.fetch_add(static_cast<std::int64_t>(size)) < kMostKept) rows[i]->kept = std::move(setup);
  });
}

double step_with(const HardwareShelf& shelf, StepRow& row, const calibration::Profile& profile) {
  std::optional<Setup> made;
  if (!row.kept) made = prepare(shelf, row.loaded);
  Setup& setup = made ? *made : *row.kept;
  set_profile(shelf, setup, profile);
  return row.correction * exact_seconds(estimated_step(setup).time);
}

StepTable read_step_table(const StepTableRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress) {
  const std::vector<calibration::TruthRow> rows = calibration::read_truth_table(CsvTable::read(request.file), shelf.catalogue);
  std::vector<Read> reads(rows.size());
  std::size_t done = 0;
  std::mutex reporting;
  in_parallel(rows.size(), request.threads, [&](std::size_t i) {
    reads[i] = read_row(rows[i], request, shelf);
    const std::scoped_lock lock{reporting};
    progress(fmt::format("{} of {} rows as profiles are", ++done, rows.size()));
  });
  StepTable table;
  for (Read& read : reads) {
    if (read.row || read.refused) ++table.rows;
    if (!read.row) continue;
    StepFamily& family = table.families[read.gpu];
    family.table = std::move(read.table);
    family.own = read.profile.own;
    family.profile = std::move(read.profile.profile);
    family.rows.push_back(std::move(*read.row));
  }
  return table;
}

}  // namespace stepcast::app

// app/forecast/forecast_store.hpp — a forecast as a run of the SQLite store (sim/trace/store.hpp).
#pragma once

#include "app/forecast/forecast.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

// The wall clock: "2026-11-29T18:00:00Z".
std::string utc_now();

// `created` is the wall clock's time, in UTC.
trace::Run stored_run(const Forecast& forecast);

}  // namespace stepcast::app

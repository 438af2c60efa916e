// sim/trace/perfetto.hpp — a Recording as Chrome trace-event JSON, which ui.perfetto.dev opens.
// One process a worker, one thread a stream, complete events (ph X), counters (ph C). Times are
// microseconds with six decimals, written from integer picoseconds: exact, and byte-identical on
// every machine. Slices that overlap on a stream (a measured run may have them) go to a further
// thread of that stream, so that slices of one thread never overlap. Args carry layer, micro-batch,
// bytes, FLOPs and the rates that follow.
// Format: "Trace Event Format", Google, 2016 (JSON object form).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/trace/record.hpp"

namespace stepcast::trace {

// Calls `sink` with consecutive pieces of about a megabyte. Cost O(spans log spans).
void write_perfetto(const Recording& recording, const std::function<void(std::string_view)>& sink);

std::string perfetto_json(const Recording& recording);

// "-" writes to standard output. Throws SystemError when the disk refuses; a reader never sees half a file.
void save_perfetto(const Recording& recording, const std::string& path);

}  // namespace stepcast::trace

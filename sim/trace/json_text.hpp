// sim/trace/json_text.hpp — appends JSON values to a string. Not for other folders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast::trace {

void append_json_string(std::string& out, std::string_view text);  // quoted; bytes that are no UTF-8 become U+FFFD
void append_integer(std::string& out, std::int64_t value);
void append_number(std::string& out, double value);                // shortest that round-trips; null unless finite
void append_microseconds(std::string& out, std::int64_t picoseconds);  // "12.000345": exact

}  // namespace stepcast::trace

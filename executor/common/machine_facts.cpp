#include "executor/common/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "sim/base/hash.hpp"

namespace stepcast::executor {
namespace {

// The first value of a key in a file of "key : value" lines.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string{} : line.substr(begin);
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machine_facts() {
  utsname names{};
  ::uname(&names);
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  return {{"host", names.nodename},
          {"kernel", std::string{names.sysname} + ' ' + names.release},
          {"cpu", value_in("/proc/cpuinfo", "model name")},
          {"frequency_mhz", value_in("/proc/cpuinfo", "cpu MHz")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory_bytes", std::to_string(pages * ::sysconf(_SC_PAGESIZE))}};
}

std::string text_hash(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  Fingerprint hash;
  hash.add(text);
  std::uint64_t value = hash.value();
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4U) digits[i] = kDigits[value & 15U];
  return digits;
}

double clock_mhz() { return std::strtod(value_in("/proc/cpuinfo", "cpu MHz").c_str(), nullptr); }

}  // namespace stepcast::executor

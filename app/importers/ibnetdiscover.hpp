// app/importers/ibnetdiscover.hpp — an InfiniBand fabric as `ibnetdiscover` prints it.
// Form     a block a device: vendid=, devid=, ...; `Switch|Ca|Rt  ports "S-guid"  # "description" ...`; a line a port:
//          `[port](guid) "X-guid"[peer port](guid)  # ... 4xNDR`. Every link stands twice, once at each end.
// Model    a CA's host is the first word of its description, its NICs in the order of the rest; CAs that carry the
//          factory's text have no host. All hosts of our form have as many NICs: those with the commonest
//          number are kept, the others and what is not on a switch are left out and counted.
//          Rate: lanes x data rate of a lane (SDR 2, DDR 4, QDR 8, FDR10 10, FDR 13.6, EDR 25, HDR 50, NDR 100, XDR 200 Gb/s)
// Source   ../shared/formats.md section 3.1; InfiniBand Trade Association roadmap (rates)
// Ignores  lids, routers beyond their links, SHARP aggregation nodes
// Tests    unit/ibnetdiscover_test
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/importers/imported_network.hpp"

namespace stepcast::app {

struct IbDevice {
  char kind = 'S';             // S switch, H channel adapter, R router
  std::uint64_t guid = 0;
  std::int64_t ports = 0;
  std::string description;
};

struct IbLink {
  std::size_t a = 0;           // device; the end whose block comes first
  std::uint32_t a_port = 0;
  std::size_t b = 0;
  std::uint32_t b_port = 0;
  std::string rate;            // "4xNDR"
};

struct IbFabric {
  std::vector<IbDevice> devices;
  std::vector<IbLink> links;   // each once
  std::size_t switch_blocks = 0;
  std::size_t ca_blocks = 0;
  std::size_t port_lines = 0;
  std::size_t switch_switch_lines = 0;
  std::map<std::string, std::size_t> rates_on_switches;  // by port line of a switch
  [[nodiscard]] std::size_t switch_links() const;        // that touch a switch
};

// Throws UserError with line and column for what is no such output.
IbFabric read_ibnetdiscover(std::string_view text, const std::string& file);

ImportedNetwork network_of(const IbFabric& fabric);

}  // namespace stepcast::app

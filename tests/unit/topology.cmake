stepcast_test(topology_test
  SOURCES direct_networks_test.cpp explicit_network_test.cpp failures_test.cpp next_hops_test.cpp topology_analysis_test.cpp htsim_topology_test.cpp topology_catalogue_test.cpp topology_generate_test.cpp
    topology_routing_test.cpp
  DEPS stepcast::topologies)

add_executable(bench_topology bench_topology.cpp)
target_link_libraries(bench_topology PRIVATE stepcast::topologies)

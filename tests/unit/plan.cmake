stepcast_test(plan_test
  SOURCES plan_test.cpp plan_memory_test.cpp plan_check_test.cpp plan_file_test.cpp
  DEPS stepcast::plan)
stepcast_test(trace_test
  SOURCES trace_perfetto_test.cpp trace_store_test.cpp
  DEPS stepcast::trace nlohmann_json::nlohmann_json SQLite::SQLite3)

stepcast_test(plan_property_test
  SOURCES plan_check_test.cpp plan_file_test.cpp plan_memory_test.cpp ../support/random_plan.cpp
  DEPS stepcast::plan)
stepcast_test(trace_property_test
  SOURCES trace_perfetto_test.cpp
  DEPS stepcast::trace nlohmann_json::nlohmann_json)

stepcast_test(plan_test
  SOURCES plan_test.cpp plan_memory_test.cpp plan_check_test.cpp
  DEPS stepcast::plan)

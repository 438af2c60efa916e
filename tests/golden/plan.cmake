stepcast_test(plan_golden_test
  SOURCES plan_test.cpp
  DEPS stepcast::plan)

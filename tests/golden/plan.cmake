stepcast_test(plan_golden_test
  SOURCES plan_test.cpp
  DEPS stepcast::plan)
stepcast_test(planner_golden_test SOURCES planner_test.cpp DEPS stepcast::parallel)

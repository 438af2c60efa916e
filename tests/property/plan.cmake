stepcast_test(plan_property_test
  SOURCES plan_check_test.cpp ../support/random_plan.cpp
  DEPS stepcast::plan)

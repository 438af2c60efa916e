stepcast_test(planner_property_test SOURCES planner_test.cpp DEPS stepcast::parallel)

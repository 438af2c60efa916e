stepcast_test(planner_property_test SOURCES planner_test.cpp planner_volume_test.cpp planner_cuts_test.cpp DEPS stepcast::parallel)
stepcast_test(schedule_property_test SOURCES schedule_property_test.cpp DEPS stepcast::parallel stepcast::run)

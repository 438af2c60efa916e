# Libraries from the distribution's packages; nothing is downloaded at build time.
# scripts/dependencies.sh installs them; docs/guide/install.md lists the package names.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(Eigen3 REQUIRED NO_MODULE)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
if(STEPCAST_BUILD_TESTS)
  find_package(doctest REQUIRED)
endif()

# yaml-cpp before 0.8 exports no namespaced target.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

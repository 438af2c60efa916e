# Compiler flags live on one interface target; stepcast_library() is how a folder becomes a target.
include(GNUInstallDirs)

add_library(stepcast_flags INTERFACE)
target_compile_features(stepcast_flags INTERFACE cxx_std_20)
target_include_directories(stepcast_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(stepcast_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
  # g++ 12 reports these inside std::string at -O2 where there is nothing wrong (GCC bugs 105329, 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>
  # Designated initialisers leave the rest value-initialised on purpose.
  -Wno-missing-field-initializers
  # a*b+c must give the same bits with and without FMA: results are byte-identical across machines.
  -ffp-contract=off)
if(STEPCAST_WERROR)
  target_compile_options(stepcast_flags INTERFACE -Werror)
endif()
if(STEPCAST_SANITIZE)
  target_compile_options(stepcast_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(stepcast_flags INTERFACE -fsanitize=address,undefined)
endif()

find_program(STEPCAST_CCACHE ccache)
if(STEPCAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${STEPCAST_CCACHE}")
endif()

# stepcast_library(NAME SOURCES a.cpp ... DEPS other_targets ...)
# One static library per directory, named stepcast_<NAME>, alias stepcast::<NAME>.
# Without SOURCES it is header-only.
function(stepcast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(stepcast_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(stepcast_${name} PUBLIC stepcast_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(stepcast_${name} INTERFACE)
    target_link_libraries(stepcast_${name} INTERFACE stepcast_flags ${ARG_DEPS})
  endif()
  add_library(stepcast::${name} ALIAS stepcast_${name})
endfunction()

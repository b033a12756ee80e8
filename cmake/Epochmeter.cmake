# SPDX-License-Identifier: Apache-2.0
# House rules of the build: options, flags, and the three helpers that every folder uses.
#
#   epm_library(<folder> SOURCES a.cc ... [DEPENDS base model ...] [LINK fmt::fmt ...])
#   epm_tests(<folder> SOURCES a_test.cc ... [DEPENDS ...] [LINK ...] [NEEDS target ...])
#   epm_program(<name> SOURCES main.cc ... [DEPENDS ...] [LINK ...])
#
# DEPENDS names folders (epm_<folder> targets), LINK names anything else, NEEDS names targets
# that must be built before the tests run (the test replays NVML, starts the binary, ...).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")

if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(epm_tests_default ON)
else()
  set(epm_tests_default OFF)
endif()
option(EPOCHMETER_TESTS "Build the test programs" ${epm_tests_default})
option(EPOCHMETER_WERROR "Treat warnings as errors" ON)
option(EPOCHMETER_FUZZ "Build the libFuzzer programs (clang only)" OFF)
option(EPOCHMETER_BENCH "Build the benchmark programs" OFF)
set(EPOCHMETER_SANITIZE "" CACHE STRING "Value for -fsanitize, such as address,undefined")

find_program(EPM_CCACHE ccache)
mark_as_advanced(EPM_CCACHE)
if(EPM_CCACHE)
  foreach(lang C CXX)
    if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER "${EPM_CCACHE}")
    endif()
  endforeach()
endif()

# Carries the house flags and include folders to every target of ours.
add_library(epm_house INTERFACE)
target_include_directories(epm_house INTERFACE
  "${CMAKE_SOURCE_DIR}/src" "${CMAKE_BINARY_DIR}/generated")
# A designated initializer leaves the other fields at their defaults on purpose; g++ 12 warns of it.
target_compile_options(epm_house INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers
  $<$<BOOL:${EPOCHMETER_WERROR}>:-Werror>)
if(EPOCHMETER_SANITIZE)
  add_compile_options(-fsanitize=${EPOCHMETER_SANITIZE} -fno-omit-frame-pointer)
  add_compile_options(-fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EPOCHMETER_SANITIZE})
endif()
if(EPOCHMETER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "EPOCHMETER_FUZZ needs clang; use: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# base/version.h: written at configure time so that it always exists, and refreshed by each build
# so that kRevision names the commit that was built. Unchanged content keeps its time stamp.
set(epm_version_args
  -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
  -DOUTPUT=${CMAKE_BINARY_DIR}/generated/base/version.h
  -P ${CMAKE_SOURCE_DIR}/cmake/Version.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} ${epm_version_args} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(epm_version ALL COMMAND ${CMAKE_COMMAND} ${epm_version_args}
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/base/version.h COMMENT "" VERBATIM)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(EPOCHMETER_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Adds a folder that exists; a folder may be absent in a partial checkout.
function(epm_add_folder path)
  if(EXISTS "${CMAKE_SOURCE_DIR}/${path}/CMakeLists.txt")
    add_subdirectory("${CMAKE_SOURCE_DIR}/${path}" "${CMAKE_BINARY_DIR}/${path}")
  endif()
endfunction()

function(epm_link_ target visibility)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND epm_)
  target_link_libraries(${target} ${visibility} epm_house ${ARG_DEPENDS} ${ARG_LINK})
  add_dependencies(${target} epm_version)
endfunction()

function(epm_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(epm_${folder} STATIC ${ARG_SOURCES})
  epm_link_(epm_${folder} PUBLIC DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK})
endfunction()

function(epm_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  epm_link_(${name} PRIVATE DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK})
endfunction()

function(epm_tests folder)
  if(NOT EPOCHMETER_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;NEEDS" ${ARGN})
  set(name ${folder}_test)
  add_executable(${name} ${ARG_SOURCES})
  if(TARGET epm_${folder})
    list(PREPEND ARG_DEPENDS ${folder})
  endif()
  epm_link_(${name} PRIVATE DEPENDS ${ARG_DEPENDS}
    LINK ${ARG_LINK} GTest::gtest_main GTest::gtest GTest::gmock)
  if(ARG_NEEDS)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
  gtest_discover_tests(${name}
    TEST_PREFIX "${folder}." TEST_LIST ${name}_cases
    DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" PROPERTIES TIMEOUT 120)
  # The environment is set in a second file, because gtest_discover_tests of CMake 3.25 splits a
  # property value at its semicolons and would keep only the first variable.
  set(EPM_CASES ${name}_cases)
  set(env_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_env.cmake")
  configure_file("${CMAKE_SOURCE_DIR}/cmake/test_env.cmake.in" "${env_file}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${env_file}")
endfunction()

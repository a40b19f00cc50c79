# Builds the consumer project as a stranger would and checks what its programs print.
#   WAY          installed: `cmake --install` into a fresh prefix, then find_package; subdirectory: add_subdirectory
#   SOURCE BUILD SCRATCH GENERATOR COMPILER
file(REMOVE_RECURSE ${SCRATCH})

if(WAY STREQUAL "installed")
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(programs with_spec with_library)
  # Boost out of reach: the package must not ask for it.
  set(options -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON)
else()
  set(programs with_spec)  # the library would be compiled a second time
  set(options -DCENOTE_SOURCE=${SOURCE})
endif()

execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${SCRATCH}/build -G ${GENERATOR}
          -DCMAKE_CXX_COMPILER=${COMPILER} ${options}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build --target ${programs} COMMAND_ERROR_IS_FATAL ANY)

foreach(program IN LISTS programs)
  execute_process(COMMAND ${SCRATCH}/build/${program} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  if(NOT printed STREQUAL "6 8 14 16 ")
    message(FATAL_ERROR "${program} printed \"${printed}\" instead of \"6 8 14 16 \"")
  endif()
  message(STATUS "${program}: ${printed}")
endforeach()

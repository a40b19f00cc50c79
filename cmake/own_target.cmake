# What every target built from this tree gets, and what no consumer inherits.
function(cenote_own_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
      -ffp-contract=off)  # a fused multiply-add would make results depend on the machine
  endif()
endfunction()

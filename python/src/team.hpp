// PyTorch's own threads, for calls from cenote.torch. Two pools on the same cores are in each other's way: the threads
// of whichever computed last still wait busily for more.
#pragma once

#include "cenote/execution.hpp"

namespace cenote::python {

// Looks for the OpenMP library that torch has brought; false if there is none.
bool find_team();

// Its threads, or null: where it was not looked for or found, and in a process forked from one that has such threads,
// because they are not there and the library waits for them.
Executor* team();

}  // namespace cenote::python

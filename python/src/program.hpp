// Programs of graphs as Python objects, made by the graphs of graph.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "cenote/graph.hpp"

namespace cenote::python {

// A program of one scalar, and workspaces of runs that are over. Under Python's lock but for the runs themselves, each
// of which has a workspace of its own.
template <class T>
struct ProgramOf {
  Program<T> program;
  Program<Dual<T>> dual;  // for second derivatives
  std::vector<std::unique_ptr<Workspace<T>>> idle{};
};

struct PythonProgram {
  template <class T>
  PythonProgram(Program<T> program, Program<Dual<T>> dual) : any(ProgramOf<T>{std::move(program), std::move(dual)}) {}
  PythonProgram(PythonProgram&&) = default;
  PythonProgram& operator=(PythonProgram&&) = default;
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;
  ~PythonProgram() = default;
  std::variant<ProgramOf<float>, ProgramOf<double>> any;
};

// A table as Python prints it: without the last line's end.
inline std::string shown(std::string table) {
  table.pop_back();
  return table;
}

void bind_program(nb::module_& m);

}  // namespace cenote::python

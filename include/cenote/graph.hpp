// The graph: a program of nodes, written once, that gives its value, its forward-mode derivative and its gradient.
// Everything is in graph/; this header brings it all in. docs/graph.md shows how it is used.
//
//   node, build     handles, the node with its three payloads, the graph
//   layout, plan, workspace, program, once    memory by liveness, runs, runs with owning results
//   wiring, pointwise, shape, product, matrix, conv, loss, pooling    the nodes
//   draw, picture   the graph as text and as a picture
#pragma once

#include "cenote/graph/build.hpp"
#include "cenote/graph/conv.hpp"
#include "cenote/graph/draw.hpp"
#include "cenote/graph/layout.hpp"
#include "cenote/graph/loss.hpp"
#include "cenote/graph/matrix.hpp"
#include "cenote/graph/node.hpp"
#include "cenote/graph/once.hpp"
#include "cenote/graph/picture.hpp"
#include "cenote/graph/plan.hpp"
#include "cenote/graph/pointwise.hpp"
#include "cenote/graph/pooling.hpp"
#include "cenote/graph/product.hpp"
#include "cenote/graph/program.hpp"
#include "cenote/graph/shape.hpp"
#include "cenote/graph/wiring.hpp"
#include "cenote/graph/workspace.hpp"

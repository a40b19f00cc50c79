// The comparison at f32 and f64.
#define CENOTE_AGREE_INSTANTIATE
#include "kernels/engine.hpp"

namespace cenote::agree {

template std::string disagreement_of<float>(const Case&);
template std::string disagreement_of<double>(const Case&);

}  // namespace cenote::agree

// The comparison at f16 and bf16.
#define CENOTE_AGREE_INSTANTIATE
#include "kernels/engine.hpp"

namespace cenote::agree {

template std::string disagreement_of<f16>(const Case&);
template std::string disagreement_of<bf16>(const Case&);

}  // namespace cenote::agree

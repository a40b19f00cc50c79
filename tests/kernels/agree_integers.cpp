// The comparison at the integers.
#define CENOTE_AGREE_INSTANTIATE
#include "kernels/engine.hpp"

namespace cenote::agree {

template std::string disagreement_of<std::int8_t>(const Case&);
template std::string disagreement_of<std::int16_t>(const Case&);
template std::string disagreement_of<std::int32_t>(const Case&);
template std::string disagreement_of<std::int64_t>(const Case&);
template std::string disagreement_of<std::uint8_t>(const Case&);
template std::string disagreement_of<std::uint16_t>(const Case&);
template std::string disagreement_of<std::uint32_t>(const Case&);
template std::string disagreement_of<std::uint64_t>(const Case&);

}  // namespace cenote::agree

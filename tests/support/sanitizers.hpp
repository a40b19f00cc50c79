// Which sanitizer this is compiled with, whichever compiler it is: some tests are too slow or impossible with one.
#pragma once

namespace cenote::test {

#if defined(__has_feature)
#define CENOTE_TEST_FEATURE(feature) __has_feature(feature)
#else
#define CENOTE_TEST_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || CENOTE_TEST_FEATURE(address_sanitizer)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || CENOTE_TEST_FEATURE(thread_sanitizer)
#define CENOTE_TEST_THREAD_SANITIZER 1
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

#undef CENOTE_TEST_FEATURE

}  // namespace cenote::test

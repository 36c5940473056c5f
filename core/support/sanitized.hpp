// `is_sanitized` is true under AddressSanitizer and ThreadSanitizer, which use
// additional memory and watch the memory that is freed.

#pragma once

#if defined(__has_feature) // clang++
#if __has_feature(address_sanitizer)
#define TROUPE_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define TROUPE_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) // g++
#define TROUPE_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define TROUPE_THREAD_SANITIZER
#endif

namespace troupe {

#if defined(TROUPE_THREAD_SANITIZER)
inline constexpr bool is_thread_sanitized = true;
#else
inline constexpr bool is_thread_sanitized = false;
#endif

#if defined(TROUPE_ADDRESS_SANITIZER)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = is_thread_sanitized;
#endif

} // namespace troupe

// Blocks that a thread keeps for its next objects. Under a sanitizer none are
// kept; its own allocation may use a block again or not.

#include "troupe/contexts/recycled.hpp"

#include "troupe/core/support/sanitized.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(recycled_memory)

namespace {

template <std::size_t Size>
struct object : recycled {
  std::array<std::byte, Size> bytes{};
};

struct base : recycled {
  virtual ~base() = default;
};

struct derived : base {
  std::array<std::byte, 1000> bytes{};
};

// Returns true if `made` has the block. Under a sanitizer every object has it.
bool has_block(const void* made, const void* block) {
  return is_sanitized || made == block;
}

// Returns true if the memory of a deleted `First` is that of the next `Second`.
template <class First, class Second>
bool is_used_again() {
  auto first = std::make_unique<First>();
  const void* const before = first.get();
  first.reset();
  const auto second = std::make_unique<Second>();
  return has_block(second.get(), before);
}

} // namespace

BOOST_AUTO_TEST_CASE(serves_the_next_object_of_about_its_size) {
  BOOST_TEST((is_used_again<object<100>, object<100>>()));
  BOOST_TEST((is_used_again<object<65>, object<128>>()));
  BOOST_TEST((is_used_again<object<4096>, object<4096>>()));
}

BOOST_AUTO_TEST_CASE(
  objects_that_live_at_the_same_time_have_blocks_of_their_own) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<object<64>>> all;
    for (unsigned index = 0; index < 100; ++index) {
      all.push_back(std::make_unique<object<64>>());
      all.back()->bytes.fill(static_cast<std::byte>(index));
    }
    for (unsigned index = 0; index < all.size(); ++index)
      for (const auto each : all[index]->bytes)
        BOOST_REQUIRE((each == static_cast<std::byte>(index)));
  }
}

BOOST_AUTO_TEST_CASE(knows_the_size_of_an_object_deleted_through_its_base) {
  std::unique_ptr<base> large = std::make_unique<derived>();
  const void* const before = large.get();
  large.reset();
  const auto small = std::make_unique<base>();
  BOOST_TEST(small.get() != before);
  const auto next = std::make_unique<derived>();
  BOOST_TEST(has_block(next.get(), before));
}

BOOST_AUTO_TEST_CASE(stays_with_the_thread_that_frees_the_object) {
  auto made = std::make_unique<object<3000>>();
  const void* const before = made.get();
  bool is_same = false;
  std::thread([&] {
    made.reset();
    is_same = has_block(std::make_unique<object<3000>>().get(), before);
  }).join();
  BOOST_TEST(is_same);
}

BOOST_AUTO_TEST_CASE(many_objects_of_one_size_leave_room_for_other_sizes) {
  std::vector<std::unique_ptr<object<512>>> many;
  for (int count = 0; count < 1'000; ++count)
    many.push_back(std::make_unique<object<512>>());
  many.clear();
  BOOST_TEST((is_used_again<object<2000>, object<2000>>()));
}

BOOST_AUTO_TEST_CASE(objects_may_outlive_the_kept_blocks_of_their_thread) {
  struct holder {
    std::unique_ptr<object<200>> held;
  };

  std::thread([] {
    // Made before the first block is kept, so it is destroyed after the blocks.
    thread_local holder late;
    late.held = std::make_unique<object<200>>();
    std::make_unique<object<200>>().reset();
  }).join();
}

BOOST_AUTO_TEST_SUITE_END()

// The main function of every test program. It is written out because Boost's
// macro for it would have to come before the precompiled headers.

#include <boost/test/unit_test.hpp>

int main(int count, char** words) {
  return boost::unit_test::unit_test_main([] { return true; }, count, words);
}

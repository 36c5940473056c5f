#include "troupe/core/support/descriptor.hpp"

#include <unistd.h>

namespace troupe {

descriptor::~descriptor() {
  if (number_ >= 0)
    ::close(number_);
}

} // namespace troupe

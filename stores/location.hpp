// The location of state or artifacts: an address, or a store of the caller's
// own.

#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe {

/// An address in text, such as `sqlite:PATH`, or a shared object. Checked where
/// it is opened; a null object is refused there.
template <class Store>
class location {
public:
  /// No address: the default of the option that takes it.
  location() = default;

  /// An address. The pointer must not be null.
  location(const char* address) : held_(std::string(address)) {}

  /// An address.
  location(std::string address) : held_(std::move(address)) {}

  /// A store of the caller's own, as a shared or unique pointer. The code that
  /// opens the location closes the store.
  template <class Pointer>

  requires std::is_convertible_v<Pointer, std::shared_ptr<Store>>
  location(Pointer own) : held_(std::shared_ptr<Store>(std::move(own))) {}

  /// The object; null if this is an address, or if a null object was given.
  std::shared_ptr<Store> object() const {
    const auto* own = std::get_if<std::shared_ptr<Store>>(&held_);
    return own != nullptr ? *own : nullptr;
  }

  /// The address; null if this is an object.
  const std::string* address() const noexcept {
    return std::get_if<std::string>(&held_);
  }

private:
  std::variant<std::string, std::shared_ptr<Store>> held_;
};

/// The address, or `custom:` for an object.
template <class Store>
std::string name_of(const location<Store>& where) {
  const auto* const address = where.address();
  return address != nullptr ? *address : "custom:";
}

} // namespace troupe

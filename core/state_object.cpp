#include "troupe/core/state_object.hpp"

#include <utility>

namespace troupe {

// -- the entries of a temporary ----

state_object::owned_items::owned_items(json object)
  : object_(std::move(object)) {}

state_entry state_object::owned_items::begin() const {
  return object_.items().begin();
}

state_entry state_object::owned_items::end() const {
  return object_.items().end();
}

// -- the object ----

state_object::state_object() : json(json::object()) {}

state_object::state_object(json object) : json(std::move(object)) {}

state_items state_object::items() const& {
  return json::items();
}

state_object::owned_items state_object::items() && {
  return owned_items(std::move(*this));
}

json& state_object::operator[](std::string_view key) & {
  return json::operator[](key);
}

const json& state_object::operator[](std::string_view key) const& {
  static const json missing;
  const auto found = json::find(key);
  return found == json::end() ? missing : *found;
}

json state_object::operator[](std::string_view key) const&& {
  return (*this)[key];
}

json& state_object::operator[](const char* key) & {
  return (*this)[std::string_view(key)];
}

const json& state_object::operator[](const char* key) const& {
  return (*this)[std::string_view(key)];
}

json state_object::operator[](const char* key) const&& {
  return (*this)[std::string_view(key)];
}

const json& state_object::at(std::string_view key) const& {
  return json::at(key);
}

json state_object::at(std::string_view key) const&& {
  return json::at(key);
}

json::const_iterator state_object::find(std::string_view key) const& {
  return json::find(key);
}

void to_json(json& target, state_object all) {
  target = static_cast<json&&>(all);
}

// -- the iterator ----

state_iterator::state_iterator(state_object all)
  : all_(std::make_shared<const state_object>(std::move(all))),
    at_(all_->items().begin()) {}

state_iterator& state_iterator::operator++() {
  ++at_;
  return *this;
}

void state_iterator::operator++(int) {
  ++*this;
}

bool state_iterator::is_end() const {
  return !all_ || at_ == all_->items().end();
}

} // namespace troupe

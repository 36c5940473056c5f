#include "troupe/stores/sqlite/scopes.hpp"

#include "troupe/stores/sqlite/sums.hpp"

#include <boost/container_hash/hash.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

constexpr std::size_t known_max = 65'536;

} // namespace

sqlite_scopes::sqlite_scopes(const sqlite_database& database, log_tail& tail)
  : tail_(tail),
    connection_(database.connection()),
    find_(database.prepare(
      fmt::format("SELECT id,revision,{} FROM scopes WHERE app=?1 AND user=?2"
                  " AND session=?3",
                  is_sound("sum", sums::scopes)))),
    insert_(database.prepare(
      "INSERT INTO scopes(app,user,session,revision,updated,keys,sum)"
      " VALUES(?1,?2,?3,?4,?5,0,row_sum(?1,?2,?3,?4,?5,0))")),
    erase_(database.prepare("DELETE FROM scopes WHERE id=?1")),
    hide_(database.prepare(
      "UPDATE scopes SET app='',user='',session=?2,"
      "sum=row_sum('','',?2,revision,updated,keys) WHERE id=?1")),
    sessions_(database.prepare("SELECT session FROM scopes"
                               " WHERE app=?1 AND user=?2 AND session<>''")),
    name_(database.prepare("SELECT app,user,session FROM scopes WHERE id=?1")) {
}

known_scope* sqlite_scopes::find(const owner_view& owner) {
  const auto known = known_.find(owner);
  if (known != known_.end())
    return known->second.is_removed ? nullptr : &known->second;
  known_scope found;
  {
    auto rows = find_.rows(owner.app, owner.user, owner.session);
    if (!rows.next())
      return nullptr;
    rows.expect_sound(2, "scopes");
    found = {rows.integer(0), rows.integer(1)};
  }
  if (const auto newest = tail_.newest(found.id))
    found.revision = std::max(found.revision, *newest);
  return &known_.emplace(owner_name(owner), found).first->second;
}

known_scope& sqlite_scopes::add(const owner_view& owner) {
  return known_.insert_or_assign(owner_name(owner), known_scope())
    .first->second;
}

void sqlite_scopes::insert(const owner_view& owner,
                           known_scope& added,
                           std::int64_t revision,
                           std::int64_t updated) {
  insert_.run(owner.app, owner.user, owner.session, revision, updated);
  added.id = sqlite3_last_insert_rowid(connection_);
}

void sqlite_scopes::bury(const owner_view& owner) {
  add(owner).is_removed = true;
}

void sqlite_scopes::bury_user(const owner_view& user) {
  for (auto& [owner, known] : known_)
    if (owner.user == user.user && owner.app == user.app)
      known.is_removed = true;
  for (const auto& session : sessions_of(user))
    bury({user.app, user.user, session});
  bury(user);
}

std::vector<std::string> sqlite_scopes::sessions_of(const owner_view& user) {
  std::vector<std::string> ids;
  auto rows = sessions_.rows(user.app, user.user);
  while (rows.next())
    ids.emplace_back(rows.text(0));
  return ids;
}

std::optional<owner_name> sqlite_scopes::name_of(std::int64_t id) {
  auto rows = name_.rows(id);
  if (!rows.next())
    return std::nullopt;
  return owner_name{std::string(rows.text(0)),
                    std::string(rows.text(1)),
                    std::string(rows.text(2))};
}

void sqlite_scopes::shrink() {
  if (known_.size() > known_max)
    known_.clear();
}

std::size_t
sqlite_scopes::name_hash::operator()(const owner_view& owner) const noexcept {
  std::size_t seed = 0;
  for (const auto part : {owner.app, owner.user, owner.session})
    boost::hash_combine(seed, std::hash<std::string_view>()(part));
  return seed;
}

std::size_t
sqlite_scopes::name_hash::operator()(const owner_name& owner) const noexcept {
  return (*this)(owner_view{owner.app, owner.user, owner.session});
}

bool sqlite_scopes::name_equal::operator()(
  const owner_view& left, const owner_name& right) const noexcept {
  return left.session == right.session && left.user == right.user
         && left.app == right.app;
}

} // namespace troupe

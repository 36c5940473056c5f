// Clients that call everything there is to call, several at the same time, and
// write down what they are answered.

#pragma once

#include "troupe/runtime/runtime.hpp"
#include "troupe/runtime/session_writer.hpp"

#include "cast.hpp"
#include "history.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "world.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

class traffic {
public:
  /// `programs` may be null for a while; client `n` uses number `n` modulo
  /// their count.
  traffic(world& in,
          history& told,
          const plan& chosen,
          std::vector<std::unique_ptr<program>>& programs);

  void start();

  /// Clients that have found their program closed go on.
  void wake();

  /// Nobody has anything more to do or to wait for.
  bool is_over() const noexcept { return open_ == 0 && active_ == 0; }

  /// A program that is to end now, or none.
  struct wish {
    std::size_t number;
    bool dies;
  };

  std::optional<wish> take_wish() { return std::exchange(wish_, {}); }

  bool has_wish() const noexcept { return wish_.has_value(); }

private:
  program* program_of(std::size_t client) const;
  void act(std::size_t client);
  void act_once(std::size_t client, runtime& on);
  void later(std::size_t client);

  call_record& note(std::size_t client, call_kind kind);
  template <class T, class Keep>
  completion<T> answer_to(call_record& call, Keep keep);
  void settle(call_record& call, const std::string& code);

  session_key any_session();
  void create(std::size_t client, session_service& sessions);
  void append(std::size_t client, session_service& sessions);
  void repeat(std::size_t client, session_service& sessions);
  void send(call_record& call, session_service& sessions);
  void send_in_order(call_record& call,
                     session_service& sessions,
                     completion<event_ptr> done);
  void get(std::size_t client, session_service& sessions);
  void list(std::size_t client, session_service& sessions);
  void remove(std::size_t client, session_service& sessions);
  void remove_user(std::size_t client, session_service& sessions);
  void read_state(std::size_t client, session_service& sessions);
  void run(std::size_t client, runtime& on);
  void follow(const std::shared_ptr<troupe::run>& started,
              run_record& record,
              std::size_t client);

  world& world_;
  history& told_;
  const plan& plan_;
  std::vector<std::unique_ptr<program>>& programs_;
  dice chance_;
  std::shared_ptr<cast> cast_;
  std::size_t left_;       // Operations to begin.
  std::size_t open_ = 0;   // Calls and runs that have not been answered.
  std::size_t active_ = 0; // Clients that will do something.
  std::size_t bursts_ = 0;
  // Of each client, which others may interrupt.
  std::vector<std::size_t> burst_of_;
  std::vector<std::size_t> waits_;  // Per client, calls of its burst.
  std::vector<std::size_t> parked_; // Clients of closed programs.
  std::vector<std::string> cursors_;
  // By burst and session, until the burst ends.
  std::map<std::pair<std::size_t, session_key>, session_writer> writers_;
  std::optional<wish> wish_;
};

} // namespace troupe::testing

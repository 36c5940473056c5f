#include "http_load.hpp"

#include "client_socket.hpp"
#include "event_poll.hpp"
#include "http_answer.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace bench {

namespace {

struct caller {
  client_socket to;
  std::string answer;
  std::size_t request = 0; // Index of the request under way.
  clock::time_point sent;
  bool has_latency = false;
};

class load {
public:
  load(std::uint16_t port,
       std::size_t connections,
       const std::vector<std::string>& requests,
       latency_end until)
    : port_(port),
      requests_(requests),
      until_(until) {
    for (std::size_t index = 0; index < connections; ++index) {
      callers_.push_back({client_socket(port), {}, 0, {}, false});
      poll_.add(callers_.back().to.descriptor(), index);
    }
  }

  load_result run() {
    const stopwatch watch;
    for (auto& each : callers_)
      send_next(each);
    while (answered_ < requests_.size())
      for (const auto index : poll_.wait())
        receive(index);
    made_.round.seconds = watch.seconds();
    made_.round.cpu_seconds = watch.cpu_seconds();
    made_.round.operations = answered_;
    return std::move(made_);
  }

private:
  void send_next(caller& by) {
    by.answer.clear();
    if (next_ == requests_.size())
      return;
    by.request = next_++;
    by.has_latency = false;
    by.sent = clock::now();
    by.to.send(requests_[by.request]);
  }

  void receive(std::size_t index) {
    auto& by = callers_[index];
    if (!by.to.receive(by.answer))
      return connect_again(index);
    const bool is_over = is_whole(by.answer);
    if (is_over || (until_ == latency_end::first_byte && has_body(by.answer)))
      note_latency(by);
    if (!is_over)
      return;
    ++answered_;
    if (status_of(by.answer) != 200)
      ++made_.refused;
    send_next(by);
  }

  void note_latency(caller& by) {
    if (std::exchange(by.has_latency, true))
      return;
    const std::chrono::nanoseconds passed = clock::now() - by.sent;
    made_.round.latencies.push_back(
      static_cast<std::uint32_t>(std::min<std::int64_t>(
        passed.count(), std::numeric_limits<std::uint32_t>::max())));
  }

  // A server may close the connection after an answer. The request that was
  // sent then has not been read.
  void connect_again(std::size_t index) {
    auto& by = callers_[index];
    by.to = client_socket(port_);
    poll_.add(by.to.descriptor(), index);
    by.answer.clear();
    by.to.send(requests_[by.request]);
  }

  const std::uint16_t port_;
  const std::vector<std::string>& requests_;
  const latency_end until_;
  event_poll poll_;
  std::vector<caller> callers_;
  std::size_t next_ = 0;
  std::size_t answered_ = 0;
  load_result made_;
};

} // namespace

load_result send_requests(std::uint16_t port,
                          std::size_t connections,
                          const std::vector<std::string>& requests,
                          latency_end until) {
  return load(port, connections, requests, until).run();
}

std::string http_request(const std::string& method,
                         const std::string& path,
                         const std::string& body) {
  auto head
    = fmt::format("{} {} HTTP/1.1\r\nhost: 127.0.0.1\r\n", method, path);
  if (body.empty())
    return head + "\r\n";
  return head
         + fmt::format("content-type: application/json\r\n"
                       "content-length: {}\r\n\r\n",
                       body.size())
         + body;
}

} // namespace bench

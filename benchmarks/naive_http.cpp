#include "naive_http.hpp"

#include <curl/curl.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

namespace {

using easy_ptr = std::unique_ptr<CURL, void (*)(CURL*)>;

std::size_t count_bytes(char*, std::size_t, std::size_t size, void* sum) {
  *static_cast<std::size_t*>(sum) += size;
  return size;
}

easy_ptr
make_easy(const std::string& url, const std::string& body, std::size_t& came) {
  easy_ptr easy(curl_easy_init(), &curl_easy_cleanup);
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  // Some requests never learn of their end; they fail after this time.
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT, 20L);
  curl_easy_setopt(
    easy.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, count_bytes);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &came);
  return easy;
}

} // namespace

std::size_t ask_by_one_handle(const std::string& url,
                              const std::string& body,
                              std::size_t count) {
  const std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi(
    curl_multi_init(), &curl_multi_cleanup);
  std::size_t came = 0;
  std::vector<easy_ptr> all;
  for (std::size_t index = 0; index < count; ++index) {
    all.push_back(make_easy(url, body, came));
    curl_multi_add_handle(multi.get(), all.back().get());
  }
  std::size_t whole = 0;
  for (int running = 1; running > 0;) {
    curl_multi_perform(multi.get(), &running);
    int left = 0;
    while (const auto* told = curl_multi_info_read(multi.get(), &left))
      whole += told->msg == CURLMSG_DONE && told->data.result == CURLE_OK;
    if (running > 0)
      curl_multi_poll(multi.get(), nullptr, 0, 1000, nullptr);
  }
  for (const auto& easy : all)
    curl_multi_remove_handle(multi.get(), easy.get());
  return whole;
}

std::size_t ask_by_threads(const std::string& url,
                           const std::string& body,
                           std::size_t count) {
  std::atomic<std::size_t> whole = 0;
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < count; ++index)
    threads.emplace_back([&] {
      std::size_t came = 0;
      const auto easy = make_easy(url, body, came);
      whole += curl_easy_perform(easy.get()) == CURLE_OK;
    });
  for (auto& thread : threads)
    thread.join();
  return whole;
}

} // namespace bench

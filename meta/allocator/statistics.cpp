#include "meta/allocator/statistics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace metaprof {

namespace {

constexpr std::array<std::pair<std::string_view, PooledStatistic Statistics::*>, 9> kPooled{{
    {"allocation", &Statistics::allocation},
    {"segment", &Statistics::segment},
    {"active", &Statistics::active},
    {"inactive_split", &Statistics::inactive_split},
    {"allocated_bytes", &Statistics::allocated_bytes},
    {"reserved_bytes", &Statistics::reserved_bytes},
    {"active_bytes", &Statistics::active_bytes},
    {"inactive_split_bytes", &Statistics::inactive_split_bytes},
    {"requested_bytes", &Statistics::requested_bytes},
}};

constexpr std::array<std::pair<std::string_view, Statistic Statistics::*>, 2> kUnpooled{{
    {"oversize_allocations", &Statistics::oversize_allocations},
    {"oversize_segments", &Statistics::oversize_segments},
}};

constexpr std::array<std::pair<std::string_view, std::uint64_t Statistics::*>, 6> kCounters{{
    {"num_alloc_retries", &Statistics::num_alloc_retries},
    {"num_ooms", &Statistics::num_ooms},
    {"num_sync_all_streams", &Statistics::num_sync_all_streams},
    {"num_device_alloc", &Statistics::num_device_alloc},
    {"num_device_free", &Statistics::num_device_free},
    {"max_split_size", &Statistics::max_split_size},
}};

void reset_sums(Statistic& s) { s.allocated = s.freed = 0; }

constexpr std::array<std::pair<std::string_view, Statistic PooledStatistic::*>, 3> kPools{{
    {"all", &PooledStatistic::all},
    {"small_pool", &PooledStatistic::small_pool},
    {"large_pool", &PooledStatistic::large_pool},
}};

constexpr std::array<std::pair<std::string_view, std::uint64_t Statistic::*>, 4> kValues{{
    {"current", &Statistic::current},
    {"peak", &Statistic::peak},
    {"allocated", &Statistic::allocated},
    {"freed", &Statistic::freed},
}};

std::string dotted(std::string_view first, std::string_view second) {
  return std::string(first).append(".").append(second);
}

}  // namespace

void Statistics::reset_peak() {
  for (const auto& [name, member] : kPooled) (this->*member).reset_peak();
  for (const auto& [name, member] : kUnpooled) (this->*member).reset_peak();
}

void Statistics::reset_accumulated() {
  for (const auto& [name, member] : kPooled) {
    reset_sums((this->*member).all);
    reset_sums((this->*member).small_pool);
    reset_sums((this->*member).large_pool);
  }
  for (const auto& [name, member] : kUnpooled) reset_sums(this->*member);
  for (const auto& [name, member] : kCounters) {
    if (member != &Statistics::max_split_size) this->*member = 0;
  }
}

std::vector<StatisticField> StatisticField::make_all() {
  std::vector<StatisticField> fields;
  for (const auto& [name, pooled] : kPooled) {
    for (const auto& [pool_name, pool] : kPools) {
      for (const auto& [value_name, value] : kValues) {
        StatisticField& field = fields.emplace_back();
        field.name_ = dotted(dotted(name, pool_name), value_name);
        field.pooled_ = pooled;
        field.pool_ = pool;
        field.value_ = value;
      }
    }
  }
  for (const auto& [name, unpooled] : kUnpooled) {
    for (const auto& [value_name, value] : kValues) {
      StatisticField& field = fields.emplace_back();
      field.name_ = dotted(name, value_name);
      field.unpooled_ = unpooled;
      field.value_ = value;
    }
  }
  for (const auto& [name, counter] : kCounters) {
    StatisticField& field = fields.emplace_back();
    field.name_ = name;
    field.counter_ = counter;
  }
  return fields;
}

const std::vector<StatisticField>& StatisticField::all() {
  static const std::vector<StatisticField> fields = make_all();
  return fields;
}

const StatisticField* StatisticField::find(std::string_view name) {
  const auto it =
      std::find_if(all().begin(), all().end(), [&](const auto& field) { return field.name_ == name; });
  return it == all().end() ? nullptr : &*it;
}

}  // namespace metaprof

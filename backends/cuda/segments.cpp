#include "backends/cuda/segments.h"

#include <algorithm>

namespace metaprof::cuda {

CudaSegments::CudaSegments(const CudaDevice& device) : device_(device) {
  // As the framework asks for it (c10/cuda/CUDACachingAllocator.cpp, ExpandableSegment).
  kind_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal()};
  access_.location = kind_.location;
  access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  reset_most_used();
}

CudaSegments::~CudaSegments() {
  driver().cuCtxSynchronize.try_to();
  for (const auto& [address, bytes] : segments_) driver().cuMemFree.try_to(address);
  while (!pages_.empty()) {
    const auto [address, page] = *pages_.begin();
    driver().cuMemUnmap.try_to(address, page.first);
    driver().cuMemRelease.try_to(page.second);
    pages_.erase(address);
  }
  for (const auto& [address, bytes] : reserved_) driver().cuMemAddressFree.try_to(address, bytes);
}

void CudaSegments::note_use() { most_used_ = std::max(most_used_, device_.memory().used()); }

std::optional<uint64_t> CudaSegments::allocate(uint64_t bytes) {
  CUdeviceptr address = 0;
  const CUresult status = driver().cuMemAlloc.try_to(&address, bytes);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    ++calls_.refused;
    return std::nullopt;
  }
  if (status != CUDA_SUCCESS) throw_failed("cuMemAlloc", status);
  segments_[address] = bytes;
  addresses_.segments.push_back(address);
  ++calls_.allocations;
  note_use();
  return address;
}

void CudaSegments::free(uint64_t address, uint64_t) {
  driver().cuMemFree(address);
  segments_.erase(address);
  ++calls_.frees;
}

uint64_t CudaSegments::reserve_addresses(uint64_t bytes) {
  CUdeviceptr address = 0;
  driver().cuMemAddressReserve(&address, bytes, 0, 0, 0);
  reserved_[address] = bytes;
  addresses_.reserved.push_back(address);
  return address;
}

void CudaSegments::release_addresses(uint64_t address, uint64_t) {
  const auto found = reserved_.find(address);
  driver().cuMemAddressFree(address, found->second);
  reserved_.erase(found);
}

bool CudaSegments::map(uint64_t address, uint64_t bytes, uint64_t page) {
  for (uint64_t done = 0; done < bytes; done += page) {
    if (map_page(address + done, page)) continue;
    ++calls_.refused;
    for (; done > 0; done -= page) unmap_page(address + done - page, page);
    return false;
  }
  note_use();
  return true;
}

void CudaSegments::unmap(uint64_t address, uint64_t bytes, uint64_t page) {
  device_.synchronize();  // as the framework does before it takes memory away: work may still use it
  for (uint64_t done = 0; done < bytes; done += page) unmap_page(address + done, page);
}

bool CudaSegments::map_page(uint64_t address, uint64_t page) {
  CUmemGenericAllocationHandle memory = 0;
  const CUresult status = driver().cuMemCreate.try_to(&memory, page, &kind_, 0);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return false;
  if (status != CUDA_SUCCESS) throw_failed("cuMemCreate", status);
  driver().cuMemMap(address, page, 0, memory, 0);
  pages_[address] = {page, memory};
  driver().cuMemSetAccess(address, page, &access_, 1);
  ++calls_.mapped;
  return true;
}

void CudaSegments::unmap_page(uint64_t address, uint64_t page) {
  driver().cuMemUnmap(address, page);
  driver().cuMemRelease(pages_.at(address).second);
  pages_.erase(address);
  ++calls_.unmapped;
}

}  // namespace metaprof::cuda

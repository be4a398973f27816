// The heap of a program: mimalloc, which the linker puts in place of the C library's. A run makes and drops tens of
// thousands of small objects, and with the C library's heap an eighth of it goes there.
//
// Its memory is asked for in large pages: a page of 4 KiB that is touched for the first time costs a microsecond, and a
// tenth of a run went there. A system without large pages ignores the wish; what is not used is not taken.
// mimalloc takes its first memory before any constructor of this program runs, so the wish is uttered in
// .preinit_array, which runs before those of libraries.

#include <mimalloc.h>

namespace {

void ask_for_large_pages() { mi_option_enable(mi_option_large_os_pages); }

[[gnu::used, gnu::section(".preinit_array")]] void (*const kAskForLargePages)() = ask_for_large_pages;

}  // namespace

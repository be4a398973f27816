// libmetaprof-emulator.so needs all stand-ins: preloading it loads them.
namespace metaprof::emulator {}

// What the thread sanitizer cannot see: oneDNN's own loops run on libgomp's threads, whose barriers are not instrumented, so
// that the end of each looks like a race.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libdnnl.so\n"; }

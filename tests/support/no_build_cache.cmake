# Read by CTest before it runs anything: no program that a test starts reads or writes the cache of its user.
set(ENV{STEPSCOPE_SET_CACHE_DIR} off)

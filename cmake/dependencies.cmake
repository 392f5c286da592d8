# All libraries that the project links, found once, as targets.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(PMIX REQUIRED IMPORTED_TARGET pmix>=4.2)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent libevent_pthreads)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)

# rdma-core ships pkg-config files for some of its libraries only.
find_library(IBNETDISC_LIBRARY ibnetdisc)
find_library(IBMAD_LIBRARY ibmad)
find_library(IBUMAD_LIBRARY ibumad)
find_path(IBNETDISC_INCLUDE infiniband/ibnetdisc.h)
if(IBNETDISC_LIBRARY AND IBMAD_LIBRARY AND IBUMAD_LIBRARY AND IBNETDISC_INCLUDE)
  set(HAVE_IBNETDISC ON)
else()
  set(HAVE_IBNETDISC OFF)
  message(STATUS "libibnetdisc not found: the probe ibnetdisc is not built")
endif()

# The local probes, each built if its library is there (probes/NAME/NAME.cmake).
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc)
pkg_check_modules(VERBS IMPORTED_TARGET libibverbs)
pkg_check_modules(LIBFABRIC IMPORTED_TARGET libfabric)
pkg_check_modules(UCX IMPORTED_TARGET ucx)
pkg_check_modules(LLDPCTL IMPORTED_TARGET lldpctl)

# The scheduler authenticates nodes by munge.
find_library(MUNGE_LIBRARY munge REQUIRED)
find_path(MUNGE_INCLUDE munge.h REQUIRED)

# The page of `fabricctl report` includes these modules of d3; each depends on those before it.
set(D3_FILES "")
foreach(module dispatch selection drag timer ease color interpolate transition zoom)
  find_file(D3_${module} d3-${module}.min.js PATHS /usr/share/nodejs/d3-${module}/dist /usr/share/javascript/d3-${module}
    NO_DEFAULT_PATH REQUIRED)
  list(APPEND D3_FILES ${D3_${module}})
endforeach()

# For the Python package and for tests. The system's own first, which has Debian's python3-* packages.
find_program(Python3_EXECUTABLE python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(Python3_EXECUTABLE python3)

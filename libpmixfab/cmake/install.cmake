# Files for programs that link libpmixfab: header, library, a pkg-config file, a CMake package.
include(CMakePackageConfigHelpers)

install(TARGETS pmixfab EXPORT pmixfab
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Relative to the file itself where possible, so that an installed tree can be moved.
set(PMIXFAB_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pmixfab)
install(EXPORT pmixfab NAMESPACE pmixfab:: FILE pmixfabTargets.cmake DESTINATION ${PMIXFAB_CMAKE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pmixfabConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/pmixfabConfig.cmake INSTALL_DESTINATION ${PMIXFAB_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pmixfabConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pmixfabConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/pmixfabConfigVersion.cmake DESTINATION ${PMIXFAB_CMAKE_DIR})

cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE PMIXFAB_LIBDIR)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE PMIXFAB_INCLUDEDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${PMIXFAB_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE PMIXFAB_PC_PREFIX)
configure_file(${CMAKE_CURRENT_LIST_DIR}/pmixfab.pc.in ${CMAKE_CURRENT_BINARY_DIR}/pmixfab.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pmixfab.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

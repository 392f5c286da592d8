if(LIBFABRIC_FOUND)
  probe_module(libfabric libfabric/libfabric.c LINK PkgConfig::LIBFABRIC)
endif()

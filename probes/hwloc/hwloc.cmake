if(HWLOC_FOUND)
  probe_module(hwloc hwloc/hwloc.c LINK PkgConfig::HWLOC m)
endif()

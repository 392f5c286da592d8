if(UCX_FOUND)
  probe_module(ucx ucx/ucx.c LINK PkgConfig::UCX m)
endif()

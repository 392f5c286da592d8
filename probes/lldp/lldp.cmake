if(LLDPCTL_FOUND)
  probe_module(lldp lldp/lldp.c LINK PkgConfig::LLDPCTL)
endif()

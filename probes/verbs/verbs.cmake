if(VERBS_FOUND)
  probe_module(verbs verbs/verbs.c LINK PkgConfig::VERBS)
endif()

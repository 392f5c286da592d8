probe_module(ethernet ethernet/ethernet.c ethernet/ethernet_sysfs.c core/source_facts.c)

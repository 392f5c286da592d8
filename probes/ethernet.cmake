probe_module(ethernet ethernet.c ethernet_sysfs.c facts.c)

probe_module(ethernet ethernet/ethernet.c)

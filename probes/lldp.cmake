probe_module(lldp lldp.c lldp_run.c lldp_read.c facts.c)

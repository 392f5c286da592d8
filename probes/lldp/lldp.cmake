probe_module(lldp lldp/lldp.c lldp/lldp_run.c lldp/lldp_read.c core/facts.c)

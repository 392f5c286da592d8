/* version_order.c - preloaded into a PMIx server: the library calls itself another version. */
const char *PMIx_Get_version(void);

const char *PMIx_Get_version(void)
{
    return "OpenPMIx 6.1.0, repo rev: v6.1.0";
}

/* version_order.c - preloaded into a PMIx server: the library calls itself a version that there is not. */
const char *PMIx_Get_version(void);

const char *PMIx_Get_version(void)
{
    return "OpenPMIx 4.9.99, repo rev: v4.9.99";
}

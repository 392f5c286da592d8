/*
 * verbs_refused.c - what else of libibverbs the libraries link that look at devices through it (libfabric,
 * UCX, librdmacm): functions that work with a device. The stand-in describes devices, none of them works.
 */
#include <errno.h>
#include <stddef.h>

/* Without the arguments, which nobody looks at. */
#define FAILS(name) /* a number */                                                                           \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return errno = ENOSYS;                                                                               \
    }
#define MAKES_NONE(name) /* a pointer */                                                                     \
    void *name(void);                                                                                        \
    void *name(void)                                                                                         \
    {                                                                                                        \
        errno = ENOSYS;                                                                                      \
        return NULL;                                                                                         \
    }
#define DOES_NOTHING(name)                                                                                   \
    void name(void);                                                                                         \
    void name(void)                                                                                          \
    {                                                                                                        \
    }

FAILS(ibv_attach_mcast)
FAILS(ibv_dealloc_pd)
FAILS(ibv_dereg_mr)
FAILS(ibv_destroy_ah)
FAILS(ibv_destroy_comp_channel)
FAILS(ibv_destroy_cq)
FAILS(ibv_destroy_qp)
FAILS(ibv_destroy_srq)
FAILS(ibv_detach_mcast)
FAILS(ibv_get_async_event)
FAILS(ibv_get_cq_event)
FAILS(ibv_get_pkey_index)
FAILS(ibv_modify_qp)
FAILS(ibv_query_ece)
FAILS(ibv_query_qp)
FAILS(ibv_set_ece)
MAKES_NONE(ibv_alloc_pd)
MAKES_NONE(ibv_create_ah)
MAKES_NONE(ibv_create_comp_channel)
MAKES_NONE(ibv_create_cq)
MAKES_NONE(ibv_create_qp)
MAKES_NONE(ibv_create_srq)
MAKES_NONE(ibv_qp_to_qp_ex)
MAKES_NONE(ibv_reg_dmabuf_mr)
MAKES_NONE(ibv_reg_mr)
MAKES_NONE(ibv_reg_mr_iova2)
DOES_NOTHING(ibv_ack_async_event)
DOES_NOTHING(ibv_ack_cq_events)
DOES_NOTHING(ibv_copy_ah_attr_from_kern)
DOES_NOTHING(ibv_copy_path_rec_from_kern)
DOES_NOTHING(ibv_copy_qp_attr_from_kern)

const char *ibv_wc_status_str(int status);
const char *ibv_wc_status_str(int status)
{
    (void)status;
    return "unknown";
}

int ibv_is_fork_initialized(void);
int ibv_is_fork_initialized(void)
{
    return 0; /* fork is no danger */
}

/* Of drivers, which register themselves when they are loaded. */
/* NOLINTBEGIN(bugprone-reserved-identifier): the library calls them so. */
FAILS(ibv_cmd_alloc_pd)
FAILS(ibv_cmd_create_ah)
FAILS(ibv_cmd_create_cq_ex)
FAILS(ibv_cmd_create_qp_ex)
FAILS(ibv_cmd_dealloc_pd)
FAILS(ibv_cmd_dereg_mr)
FAILS(ibv_cmd_destroy_ah)
FAILS(ibv_cmd_destroy_cq)
FAILS(ibv_cmd_destroy_qp)
FAILS(ibv_cmd_get_context)
FAILS(ibv_cmd_modify_qp)
FAILS(ibv_cmd_query_device_any)
FAILS(ibv_cmd_query_port)
FAILS(ibv_cmd_query_qp)
FAILS(ibv_cmd_reg_dmabuf_mr)
FAILS(ibv_cmd_reg_mr)
MAKES_NONE(_verbs_init_and_alloc_context)
DOES_NOTHING(__verbs_log)
DOES_NOTHING(verbs_register_driver_34)
DOES_NOTHING(verbs_set_ops)
DOES_NOTHING(verbs_uninit_context)
/* NOLINTEND(bugprone-reserved-identifier) */

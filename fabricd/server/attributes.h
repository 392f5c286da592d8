/* attributes.h - the attributes that this server supports: PMIx_Register_attributes, as shown by pattrs. */
#ifndef FABRICD_SERVER_ATTRIBUTES_H
#define FABRICD_SERVER_ATTRIBUTES_H

/* Register them. Call once, after PMIx_server_init(). An error of the library is logged only, since this is
 * information. */
void attributes_register(void);

#endif

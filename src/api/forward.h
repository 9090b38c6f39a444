/*
 * forward.h - forwarded ports: each has a listener of its own on the loopback address, and so an
 * origin of its own. The API is not served there, and no sandbox on the API's port.
 *
 *   forward.c   which there are: made, renewed, kept over a restart, ended by time or with the
 * sandbox relay.c     one request that comes by such a listener duct.c      its connection into the
 * sandbox ports.c     the routes of the API about them
 */
#pragma once

#include "api/auth.h"
#include "wire/forward.h"

#define FORWARDS_OF_ONE 64      /* ports of one sandbox */
#define FORWARDS_MAX 1024       /* of the daemon: each is one or two descriptors */
#define FORWARD_REQUESTS_MAX 64 /* at a time, of one forward: each is a worker inside */
#define PORT_TOKEN_PREFIX "cpt_"

struct forward {
	struct forward *next;
	struct core *core;
	char sandbox[ID_SIZE], tenant[TENANT_SIZE];
	uint16_t port, local_port;
	char tag[FORWARD_TAG +
	         1]; /* of its cookies: the same for this port of this sandbox, always */
	uint8_t hash[STORE_HASH_BYTES]; /* of the token */
	int64_t created_ms, expires_ms; /* expires_ms 0: with the sandbox */
	struct timer expiry;
	size_t n_requests;
	bool is_closed; /* its last request frees it */
};

int forwards_open(struct api *a, struct err *e) MUST_USE; /* after recovery: what is on record */
void forwards_close(void); /* before the core is: listeners go, records stay */

struct forward_ask {
	struct sbx *sandbox;
	uint16_t port, local_port; /* local_port 0: as it is, or any */
	uint64_t ttl_ms;           /* 0: none */
};
/* Made, or renewed: the token before is void. It is on record when the store answers; when that
 * fails, call forward_drop(). */
struct forward *forward_put(const struct forward_ask *ask, char token[TOKEN_TEXT],
                            struct store_call call, struct fail *f) MUST_USE;
struct forward *forward_find(const char *sandbox, uint16_t port); /* or NULL */
void forward_close(struct forward *f); /* its record is somebody else's to remove */
void forward_drop(struct forward *f);  /* with its record */
/* Of one sandbox, as JSON. */
json_t *forward_print(const struct forward *f);
json_t *forward_list(const char *sandbox);

bool forward_takes(const struct forward *f, struct span token); /* in constant time */

/* ---- relay.c ---- */
/* A request with a body that streams goes to a port of a sandbox, and its answer comes back. Texts
 * live as long as the request. */
struct relay_how {
	struct core *core;
	const char *tenant, *sandbox;
	uint16_t port;
	struct forward_way way;
	/* NULL, or: says no in other words; the request is over then. */
	void (*refuse)(struct request *r, int status, const char *detail);
};
void relay_start(struct request *r, const struct relay_how *how);
extern const struct server_ops relay_ops; /* of the server whose tags are forwards */
void forward_release(struct forward *f);  /* one request less */

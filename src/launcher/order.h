/*
 * order.h - tickets for opened folders, and the plan that is made from an order of the daemon.
 */
#pragma once

#include "launcher/launcher.h"
#include "wire/launch.h"

/* A folder or file of the host that was opened for somebody. */
struct ticket {
	uint32_t number; /* 0: none */
	int fd;
	bool is_dir;
	bool is_all; /* its caller may see all that is in it with its owner's rights */
	uid_t uid;   /* whose files are the command's user's, inside */
	gid_t gid;
};

struct tickets {
	struct ticket at[LAUNCH_TICKETS];
	uint32_t last;
};

/* Takes over t.fd; t.number is given here and returned. */
uint32_t tickets_add(struct tickets *all, struct ticket t);
void tickets_done(struct tickets *all);

/* What the numbers of an order mean. */
struct order_from {
	struct tickets *tickets;
	int trees_fd; /* launcher/trees.h */
};

/* `p` is a checked L_MAKE. Its tickets are used up, also on failure. The plan is to be
 * plan_done(). Fills what the order gets from it: plan, image_uid, image_gid, is_kept, id,
 * workspace, root. Mounts of workspaces have no source yet: order_give_work(), _root(). */
int order_read(const struct launch_packet *p, const struct order_from *from, struct plan *plan,
               struct launcher_order *order, struct err *e) MUST_USE;
/* Takes over the mount of the order's workspace, and of its root. */
void order_give_work(struct plan *plan, int fd);
void order_give_root(struct plan *plan, int fd);

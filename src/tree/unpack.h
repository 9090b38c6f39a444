/*
 * unpack.h - an archive becomes files: all of it under a secret name first, so that one that is
 * refused leaves nothing. Then the new tree gets its name, or its files go over those of the
 * directory that is there.
 */
#pragma once

#include "tree/call.h"
#include "tree/dest.h"

struct unpack {
	struct call *call;
	struct err *e;
	struct dest dest;
	int (*all)(struct unpack *u); /* fills `dest` */
};

#define UNPACK(c, err, fill)                                                                       \
	{                                                                                          \
		.call = (c), .e = (err), .all = (fill), .dest = {.root_fd = -1, .dir_fd = -1 }     \
	}

/* To the path of the call; and the answer. Nothing is left of it then. */
int unpack_run(struct unpack *u) MUST_USE;

/*
 * layer.h - tar archives become a root file system, one over the other.
 *
 * An image is one flat tree: each layer is applied to what the ones below left (OCI Image Layer
 * Specification; `.wh.NAME` removes NAME of the layers below, `.wh..wh..opq` all that they had in
 * its directory). Names are resolved without links and without leaving the tree, so that nothing
 * that was put in can redirect what comes next.
 *
 * Refused, and with it the whole image: absolute names and `..`, files through a link, hard links
 * to what is not there, devices, pipes, sockets, a name that comes twice as different things,
 * attributes that an overlay would obey, more bytes or entries than allowed. Links may lead where
 * they like: they are only ever followed inside. Dropped and counted: setuid and setgid, which
 * would do nothing on a mount of ours, and attributes other than `user.`. Ids above
 * LAYER_ID_MAX become that, the one of nobody. Directories can be entered and written by their
 * owner, the root by everybody entered.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "tree/call.h"
#include "tree/decode.h"
#include "tree/dest.h"
#include "tree/nameset.h"

#define LAYER_ID_MAX 65534 /* engine/box.h: more is not mapped */

struct layer_time {
	const char *path;
	struct timespec mtime;
};

struct layers {
	struct call *call;
	struct dest dest; /* where they are applied */
	bool has_owners;
	uint64_t bytes_max, keep_free;
	uint64_t unlooked; /* bytes written since the disk was looked at */
	uint64_t dropped;
	size_t entries, n;   /* n: layers */
	struct nameset mine; /* of the layer that is applied now */
	struct arena names;
	size_t names_bytes;
	VEC(struct layer_time)
	times; /* of directories: set when nothing is put into them any more */
};

struct layer_ask {
	decode_source_fn *source;
	void *arg;
	enum decode_kind kind;
	bool has_whiteouts;
	char *hex;     /* NULL, or room for OCI_HEX: of what was unpacked */
	bool must_end; /* an archive without its end mark is cut: nothing else tells */
};

/* `root_fd` is borrowed: an empty directory. */
int layers_open(struct layers *l, struct call *call, int root_fd, struct err *e) MUST_USE;
int layers_apply(struct layers *l, const struct layer_ask *ask, struct err *e) MUST_USE;
int layers_finish(struct layers *l, struct err *e) MUST_USE;
void layers_done(struct layers *l);

/* Bytes that are about to be written: there is room for them, and still for others. */
int layers_count(struct layers *l, uint64_t bytes, struct err *e) MUST_USE;

/*
 * test_image.h - archives as strangers write them, and a worker that makes an image of them.
 */
#pragma once

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "test_tree.h"
#include "tree/decode.h"

#define BYTES_MAX (1ull << 30)

/* ---- archives, byte by byte: what no library would write ------------------------------ */

struct part {
	const char *name;
	char type;        /* of the tar header; 0: a file */
	const char *data; /* of a file; where a link leads; lines of pax; a long name */
	unsigned int mode, uid;
	long long size; /* that the header claims; 0: of the data */
};

static inline void put_octal(char *field, size_t n, unsigned long long value)
{
	snprintf(field, n, "%0*llo", (int)n - 1, value);
}

/* "key=value" becomes "13 key=value": the length counts itself. */
static inline const char *pax_of(const char *lines)
{
	static char out[1024];
	size_t used = 0;

	while (*lines) {
		size_t n = strcspn(lines, "\n") + 2, digits = n + 1 < 10 ? 1 : n + 2 < 100 ? 2 : 3;

		used += (size_t)snprintf(out + used, sizeof out - used, "%zu %.*s", n + digits,
		                         (int)n - 1, lines);
		lines += n - 1;
	}
	return out;
}

static inline void add_part(struct str *tar, const struct part *from)
{
	struct part copy = *from, *p = &copy;

	if (p->type == 'x')
		p->data = pax_of(p->data);
	char head[512] = { 0 };
	bool is_link = p->type == '1' || p->type == '2';
	size_t len = p->data && !is_link ? strlen(p->data) : 0;
	unsigned int sum = 0;

	memcpy(head, p->name, strlen(p->name) < 100 ? strlen(p->name) : 100);
	put_octal(head + 100, 8, p->mode ? p->mode : p->type == '5' ? 0755 : 0644);
	put_octal(head + 108, 8, p->uid);
	put_octal(head + 116, 8, p->uid);
	put_octal(head + 124, 12, p->size ? (unsigned long long)p->size : len);
	put_octal(head + 136, 12, 1000);
	memset(head + 148, ' ', 8);
	head[156] = '0';
	if (p->type)
		head[156] = p->type;
	if (is_link)
		snprintf(head + 157, 100, "%s", p->data);
	memcpy(head + 257, (const char[]){ 'u', 's', 't', 'a', 'r', 0, '0', '0' }, 8);
	for (size_t i = 0; i < sizeof head; i++)
		sum += (unsigned char)head[i];
	put_octal(head + 148, 7, sum);
	str_addn(tar, head, sizeof head);
	str_addn(tar, p->data ? p->data : "", len);
	str_addn(tar, (char[512]){ 0 }, (512 - len % 512) % 512);
}

static inline void make_tar(struct str *tar, const struct part *parts, size_t n)
{
	*tar = (struct str){ .max = 64u << 20 };
	for (size_t i = 0; i < n; i++)
		add_part(tar, &parts[i]);
	str_addn(tar, (char[1024]){ 0 }, 1024);
}

static inline struct span text_of(const struct str *s)
{
	return (struct span){ str_text(s), s->len };
}

static inline void pack(struct str *out, struct span from, enum decode_kind kind)
{
	size_t room = from.len + (64u << 10);
	char *bytes = mem_alloc(room);
	size_t n = from.len;

	*out = (struct str){ .max = SIZE_MAX };
	if (kind == DECODE_GZIP) {
		z_stream z = { .next_in = (unsigned char *)(uintptr_t)from.at,
			       .avail_in = (unsigned int)from.len,
			       .next_out = (unsigned char *)bytes,
			       .avail_out = (unsigned int)room };

		CHECK_INT(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
		CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
		n = z.total_out;
		deflateEnd(&z);
	} else if (kind == DECODE_ZSTD) {
		ZSTD_CCtx *c = ZSTD_createCCtx();

		ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
		n = ZSTD_compress2(c, bytes, room, from.at, from.len);
		ZSTD_freeCCtx(c);
		CHECK(!ZSTD_isError(n));
	} else {
		memcpy(bytes, from.at, n);
	}
	str_addn(out, bytes, n);
	free(bytes);
}

/* ---- a worker ------------------------------------------------------------------------- */

struct how {
	uint32_t flags;
	uint64_t bytes_max, keep_free;
	const char *ref;
};

static inline enum tree_code import(struct rig *r, struct span body, struct how how,
                                    struct reply *reply)
{
	struct tree_ask ask = { .flags = how.flags,
		                .request = { .verb = TREE_IMAGE,
		                             .count = how.bytes_max ? how.bytes_max : BYTES_MAX,
		                             .from = how.keep_free },
		                .path = span_of(how.ref ? how.ref : ""),
		                .body = body };

	rig_ask(r, ask, -1);
	rig_reply(r, reply);
	return (enum tree_code)reply->last.code;
}

/* The worker's root is a folder of the rig's. */
static inline void image_rig(struct rig *r)
{
	char root[80];

	*r = (struct rig){ .is_confined = true };
	snprintf(r->root, sizeof r->root, "/tmp/tree-test-XXXXXX");
	CHECK(mkdtemp(r->root));
	snprintf(root, sizeof root, "%s/image", r->root);
	CHECK(mkdir(root, 0700) == 0);
	rig_start(r, root, 0);
	close(r->dir_fd);
	r->dir_fd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(r, "outside", "canary");
}

static inline void image_close(struct rig *r)
{
	CHECK_STR(got(r, "outside"), "canary");
	CHECK_INT(entries_of(r, ""), 2);
	rig_close(r);
}

static const struct part small_root[] = {
	{ .name = "./", .type = '5', .mode = 0700 },
	{ .name = "./etc/", .type = '5' },
	{ .name = "./etc/passwd", .data = "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/:/bin/sh\n" },
	{ .name = "bin", .type = '2', .data = "usr/bin" },
	{ .name = "usr/bin/su", .data = "su", .mode = 04755, .uid = 0 },
	{ .name = "usr/bin/link", .type = '1', .data = "usr/bin/su" },
	{ .name = "etc/mtab", .type = '2', .data = "/proc/mounts" },
	{ .name = "ro/", .type = '5', .mode = 0555, .uid = 7 },
	{ .name = "ro/f", .data = "in it", .mode = 0400, .uid = 70000 },
};

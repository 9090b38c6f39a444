/*
 * xattrs.h - extended attributes that a checkpoint keeps: those of users, the overlay's own, ACLs
 * and file capabilities. As bytes: name NUL u32 length value, sorted by name.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define XATTRS_MAX (1u << 20) /* the kernel's own limits are below that on ext4 */

int xattrs_read(int fd, struct str *out, struct err *e) MUST_USE;
/* The attributes become exactly these. `id_base` is added to the ids in ACLs; with `is_view` the
 * overlay's own are left alone. */
struct xattrs_how {
	uint32_t id_base;
	bool is_view;
};
int xattrs_write(int fd, struct span xattrs, struct xattrs_how how, struct err *e) MUST_USE;
/* What one sees of them through the overlay is the same. */
bool xattrs_same_view(struct span a, struct span b);
/* The next one; false at the end. */
struct xattr {
	const char *name;
	struct span value;
};
bool xattrs_next(struct span *rest, struct xattr *out);
bool xattrs_is_overlay(const char *name);

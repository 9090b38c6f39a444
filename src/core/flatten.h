/*
 * flatten.h - stacks that are too long become one layer, in the background.
 *
 *   row: making ─▷ the keeper links all of it into one tree ─▷ one transaction: the row is ready,
 *   and everything that lay on the stack lies on that tree, workspaces and points
 *
 * Only a stack that nobody has open, with no layer that anybody has: what is linked shows it in its
 * times. The flat tree says what it stands for (vault/trees.h), so a point that was made on the old
 * layers is as good as before. Those stay until eviction finds them unused.
 */
#pragma once

#include "core/core.h"

#define FLAT_OWNER "flat" /* of the rows of such trees; their key is the hash of the stack */

void flatten_look(struct core *c); /* now and then */
/* Its stack is being exchanged: nobody opens it, nothing is told of it. For a moment. */
struct wsx;
bool flatten_holds(const struct wsx *w);
void flatten_close(struct core *c);

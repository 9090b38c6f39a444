/*
 * settle.h - new bytes go to the disk soon, but not while somebody waits for an answer.
 *
 * ext4 writes a file out at once when it is renamed over another, so that a power cut does not
 * leave an empty one; that takes longer than all else that an edit does. A name that is exchanged
 * has no such care taken of it: we take it ourselves, in the next pause. Who dies in between
 * changes nothing, only who pulls the plug.
 */
#pragma once

#include "base/base.h"

/* Takes the descriptor of a file that is complete. */
void settle_later(int fd);
bool settle_is_due(void);
void settle_now(void);

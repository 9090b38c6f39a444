/*
 * harden.h - what the writer of the ledger gives up before it hears the first word.
 */
#pragma once

#include "base/err.h"

/* It reads and writes the one folder, and the sockets that it is given; it makes none. */
int harden_ledger(int dir_fd, struct err *e) MUST_USE;

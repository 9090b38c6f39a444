/*
 * ask.h - for the clients of a monitor: how a command is sent to it.
 */
#pragma once

#include "engine/command.h"
#include "wire/channel.h"

/* CH_EXEC; both descriptors are borrowed. -1 with EAGAIN in e->sys when the socket has no room. */
int ask_exec(int channel_fd, uint32_t num, const struct command *c, int log_fd,
             struct err *e) MUST_USE;

/*
 * pulse.h - no sleep that a peer chose: the kernel closes for us, and a close can wait.
 *
 * A descriptor that comes by SCM_RIGHTS and finds no room, or lies unread in a socket that we
 * close, is closed by the kernel in our context. If it is the last one of a TCP socket with
 * SO_LINGER, that close sleeps for as long as its former owner wished. Clearing SO_LINGER first
 * does not help (the owner may set it again), nor does looking first (the owner may send after).
 *
 * Two walls, docs/decisions/0053-no-close-for-others.md:
 *   - os_refuse_fds(), where the kernel has it: nothing can be sent along any more;
 *   - the pulse: while callbacks run a timer signals this process again and again. Every such
 *     sleep ends at a pending signal, and so do all further ones before the kernel returns to us.
 *     The handler does nothing, and calls that can be restarted are (SA_RESTART).
 *
 * A sleep in poll(2) or nanosleep(2) ends early too: os_poll() goes on.
 */
#pragma once

#include <poll.h>

#include "base/base.h"

#define OS_PULSE_MS 50 /* the most that such a close takes */

int os_pulse_init(void); /* the handler: once in each process, after its signals were reset */
void os_pulse_on(void);
void os_pulse_off(void);

/* As poll(2), for the whole of `ms` whatever signals come. Value or -errno. */
int os_poll(struct pollfd *fds, size_t n, int ms);

/* Senders of descriptors get EPERM from now on (SO_PASSRIGHTS, since Linux 6.16); what a listening
 * socket accepts inherits it. False: this kernel does not know it. */
bool os_refuse_fds(int fd);

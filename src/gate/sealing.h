/*
 * sealing.h - `caisson-gate --seal`: seals one value for a client. A program of its own, because
 * the client shall not carry the library for it in every command.
 *
 *   standard input    struct sealing_head, the aad, the value up to the end
 *   standard output   the sealed value, base64
 */
#pragma once

#include "base/err.h"
#include "wire/sealing.h"

int sealing_run(int in_fd, int out_fd, struct err *e) MUST_USE;

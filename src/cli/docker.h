/*
 * docker.h - `caisson docker ...`, and `docker ...` where that is a link to us: sandboxes by the
 * words, outputs and exit codes of Docker's client.
 *
 * It translates, and keeps nothing. What a container has and a sandbox has not (its command, its
 * working folder, whether it is removed at its end) is in labels of the sandbox; its main process
 * is the newest one with the label DOCKER_MAIN. docs/docker.md has what maps on what.
 */
#pragma once

#include "cli/verb.h"

extern const struct verb cmd_docker;

/* Is this name, of argv[0], Docker's? */
bool docker_is(const char *program);
int docker_main(int argc, char **argv); /* argv[1] is the command */

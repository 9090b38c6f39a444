/*
 * gitscript-internal.h - how every script of gitscript.h begins.
 */
#pragma once

#include "core/gitscript.h"

/* One file is the whole configuration, so that what git starts itself has it too. */
#define PRELUDE                                                                                    \
	"umask 022\n"                                                                              \
	"export GIT_CONFIG_GLOBAL=/tmp/config GIT_COMMITTER_NAME=caisson "                         \
	"GIT_COMMITTER_EMAIL=caisson@localhost GIT_AUTHOR_NAME=caisson "                           \
	"GIT_AUTHOR_EMAIL=caisson@localhost\n"                                                     \
	"cat >/tmp/config <<'END'\n"                                                               \
	"[core]\n"                                                                                 \
	"attributesFile = /dev/null\n"                                                             \
	"excludesFile = /nonexistent\n" /* an empty one is not none to the untracked cache */      \
	"fsmonitor = false\n"                                                                      \
	"hooksPath = /dev/null\n"                                                                  \
	"logAllRefUpdates = false\n"                                                               \
	"[commit]\n"                                                                               \
	"gpgSign = false\n"                                                                        \
	"[diff]\n"                                                                                 \
	"ignoreSubmodules = all\n"                                                                 \
	"[fetch]\n"                                                                                \
	"fsckObjects = true\n"                                                                     \
	"recurseSubmodules = false\n"                                                              \
	"unpackLimit = 1\n"                                                                        \
	"[fetch \"fsck\"]\n" /* harmless, and in the history of many */                            \
	"badTimezone = warn\n"                                                                     \
	"missingSpaceBeforeDate = warn\n"                                                          \
	"missingSpaceBeforeEmail = warn\n"                                                         \
	"missingNameBeforeEmail = warn\n"                                                          \
	"zeroPaddedFilemode = warn\n"                                                              \
	"zeroPaddedDate = warn\n"                                                                  \
	"[gc]\n"                                                                                   \
	"auto = 0\n"                                                                               \
	"[maintenance]\n"                                                                          \
	"auto = false\n"                                                                           \
	"[protocol]\n"                                                                             \
	"allow = never\n"                                                                          \
	"version = 2\n"                                                                            \
	"[protocol \"file\"]\n"                                                                    \
	"allow = always\n"                                                                         \
	"[protocol \"https\"]\n"                                                                   \
	"allow = always\n"                                                                         \
	"[safe]\n"                                                                                 \
	"directory = *\n"                                                                          \
	"[submodule]\n"                                                                            \
	"recurse = false\n"                                                                        \
	"END\n"

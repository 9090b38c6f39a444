/*
 * help.h - `caisson help [COMMAND]`, `caisson version`.
 */
#pragma once

int help_main(int argc, char **argv);
int help_version_main(int argc, char **argv);

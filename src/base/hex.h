/*
 * hex.h - bytes as digits of base 16: lower case, two for each.
 */
#pragma once

#include "base/base.h"

int hex_digit(char c);                                     /* 0 to 15; -1: it is none */
void hex_print(const uint8_t *bytes, size_t n, char *out); /* 2 * n, and a NUL */
/* Of n bytes, and nothing behind them. */
bool hex_read(const char *text, uint8_t *out, size_t n);

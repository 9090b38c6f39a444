/*
 * truststore.h - the certificates of a PEM file as Java reads them.
 *
 * A PKCS#12 file (RFC 7292) without a password: nothing in it is secret, and Java asks for none.
 * Each certificate has the attribute that makes it trusted there.
 */
#pragma once

#include "base/str.h"

/* What is not a certificate in plain PEM is left out. False: too large for out->max. */
bool truststore_make(const char *pem, size_t n, struct str *out) MUST_USE;

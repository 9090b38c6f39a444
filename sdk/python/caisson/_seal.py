"""The seal of secrets: HPKE of RFC 9180 (base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305), one message per key.

The standard library has no curve and no cipher, so they are here, as short as they can be. Whoever
seals uses each key once and keeps none; that the time it takes depends on it tells nobody anything.
"""
from __future__ import annotations

import hashlib
import hmac
import os
import struct
from typing import List

_P = 2**255 - 19
_KEM = b"KEM\x00\x20"
_HPKE = b"HPKE\x00\x20\x00\x01\x00\x03"


# ---- X25519, RFC 7748 ------------------------------------------------------------------------

def x25519(scalar: bytes, point: bytes) -> bytes:
    k = bytearray(scalar)
    k[0] &= 248
    k[31] = k[31] & 127 | 64
    number = int.from_bytes(k, "little")
    x1 = int.from_bytes(point, "little") & (2**255 - 1)
    x2, z2, x3, z3, swapped = 1, 0, x1, 1, 0
    for t in reversed(range(255)):
        bit = number >> t & 1
        if swapped ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % _P, b * b % _P, d * a % _P, c * b % _P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % _P, x1 * (da - cb) ** 2 % _P
        x2, z2 = aa * bb % _P, e * (aa + 121665 * e) % _P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, _P - 2, _P) % _P).to_bytes(32, "little")


# ---- ChaCha20-Poly1305, RFC 8439 -------------------------------------------------------------

def _quarter(s: List[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        v = s[z] ^ s[x]
        s[z] = (v << n | v >> (32 - n)) & 0xFFFFFFFF


def _block(key: bytes, counter: int, nonce: bytes) -> bytes:
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]
    s = list(start)
    for _ in range(10):
        for i in range(4):
            _quarter(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(s, start)))


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16)


def _poly1305(key: bytes, data: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at:at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) & (2**128 - 1)).to_bytes(16, "little")


def chacha20_poly1305(key: bytes, nonce: bytes, aad: bytes, plain: bytes) -> bytes:
    stream = b"".join(_block(key, 1 + i, nonce) for i in range((len(plain) + 63) // 64))
    coded = bytes(a ^ b for a, b in zip(plain, stream))
    tagged = _pad(aad) + _pad(coded) + struct.pack("<QQ", len(aad), len(coded))
    return coded + _poly1305(_block(key, 0, nonce)[:32], tagged)


# ---- HPKE, RFC 9180 --------------------------------------------------------------------------

def _extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256).digest()


def _expand(suite: bytes, prk: bytes, label: bytes, info: bytes, n: int) -> bytes:
    text = struct.pack(">H", n) + b"HPKE-v1" + suite + label + info + b"\x01"
    return hmac.new(prk, text, hashlib.sha256).digest()[:n]


def seal(to: bytes, info: bytes, aad: bytes, plain: bytes, ephemeral: bytes = b"") -> bytes:
    """The ephemeral public key, the ciphertext, its tag. `ephemeral` is for the RFC's vectors."""
    own = ephemeral or os.urandom(32)
    enc = x25519(own, (9).to_bytes(32, "little"))
    dh = x25519(own, to)
    if dh == bytes(32):
        raise ValueError("the key is none")
    shared = _expand(_KEM, _extract(_KEM, b"", b"eae_prk", dh), b"shared_secret", enc + to, 32)
    mode = b"\x00" + _extract(_HPKE, b"", b"psk_id_hash", b"") + _extract(_HPKE, b"", b"info_hash", info)
    secret = _extract(_HPKE, shared, b"secret", b"")
    key, nonce = _expand(_HPKE, secret, b"key", mode, 32), _expand(_HPKE, secret, b"base_nonce", mode, 12)
    return enc + chacha20_poly1305(key, nonce, aad, plain)

// The seal of secrets: HPKE of RFC 9180 (base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305), one message per key.
import crypto from "node:crypto";

const PUBLIC = Buffer.from("302a300506032b656e032100", "hex"); // SubjectPublicKeyInfo of X25519, before the key
const PRIVATE = Buffer.from("302e020100300506032b656e04220420", "hex"); // PKCS #8, likewise
const KEM = Buffer.from("KEM\x00\x20", "latin1");
const HPKE = Buffer.from("HPKE\x00\x20\x00\x01\x00\x03", "latin1");
const VERSION = Buffer.from("HPKE-v1");

const hmac = (key, ...parts) => crypto.createHmac("sha256", key).update(Buffer.concat(parts)).digest();
const extract = (suite, salt, label, ikm) => hmac(salt.length ? salt : Buffer.alloc(32), VERSION, suite, Buffer.from(label), ikm);
const expand = (suite, prk, label, info, n) =>
  hmac(prk, Buffer.from([0, n]), VERSION, suite, Buffer.from(label), info, Buffer.from([1])).subarray(0, n);
const publicKey = (raw) => crypto.createPublicKey({ key: Buffer.concat([PUBLIC, raw]), format: "der", type: "spki" });
const privateKey = (raw) => crypto.createPrivateKey({ key: Buffer.concat([PRIVATE, raw]), format: "der", type: "pkcs8" });

/** The ephemeral public key, the ciphertext, its tag. `ephemeral` is for the RFC's vectors. */
export function seal(to, info, aad, plain, ephemeral = crypto.randomBytes(32)) {
  const own = privateKey(ephemeral), none = Buffer.alloc(0);
  const enc = crypto.createPublicKey(own).export({ format: "der", type: "spki" }).subarray(PUBLIC.length);
  const dh = crypto.diffieHellman({ privateKey: own, publicKey: publicKey(to) });
  const shared = expand(KEM, extract(KEM, none, "eae_prk", dh), "shared_secret", Buffer.concat([enc, to]), 32);
  const mode = Buffer.concat([Buffer.from([0]), extract(HPKE, none, "psk_id_hash", none), extract(HPKE, none, "info_hash", info)]);
  const secret = extract(HPKE, shared, "secret", none);
  const cipher = crypto.createCipheriv("chacha20-poly1305", expand(HPKE, secret, "key", mode, 32), expand(HPKE, secret, "base_nonce", mode, 12),
    { authTagLength: 16 });
  cipher.setAAD(aad, { plaintextLength: plain.length });
  return Buffer.concat([enc, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

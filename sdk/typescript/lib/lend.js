// Host paths are lent to the launcher before a request names them: it opens no others with the caller's rights.
import net from "node:net";
import path from "node:path";

const OK = "+".charCodeAt(0);
const ANSWER_MS = 10000;

function ofEntry(entry) {
  if (entry && typeof entry === "object") return entry.src;
  const found = typeof entry === "string" ? /^(?:ro|overlay):([^:]*)/.exec(entry) : null;
  return found?.[1];
}

function ofObject(body) {
  if (!body || typeof body !== "object") return [];
  const found = (Array.isArray(body.fs) ? body.fs : [body.fs]).map(ofEntry);
  if (typeof body.image === "string" && body.image.startsWith("dir:")) found.push(body.image.slice(4));
  for (const text of [body.url, body.repo]) found.push(typeof text === "string" ? text.replace(/^file:\/\//, "") : undefined);
  return found;
}

/** What is said to the launcher before this request; undefined: nothing has to be lent. */
function messageOf(target, body) {
  if (!Buffer.isBuffer(body) || body[0] !== 0x7b) return undefined;
  let value;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  const paths = [...ofObject(value), ...ofObject(value.spec)].filter((p) => typeof p === "string" && p.startsWith("/"));
  if (paths.length === 0) return undefined;
  const text = Buffer.from(paths.map((p) => `${p}\0`).join(""));
  const head = Buffer.alloc(5);
  head.write(target.split("?")[0] === "/v1/run" ? "o" : "k");
  head.writeUInt32LE(text.length, 1);
  return Buffer.concat([head, text]);
}

/** A connection that keeps the paths of a request lent until it is destroyed; undefined: nothing to lend, or nobody to lend it to. */
export function lend(address, target, body) {
  const said = address.tcp ? undefined : messageOf(target, body);
  if (!said) return undefined;
  return new Promise((resolve) => {
    const socket = net.connect(path.join(path.dirname(address.path), "lend.sock"));
    const give = (value) => {
      socket.setTimeout(0);
      if (!value) socket.destroy();
      resolve(value);
    };
    socket.on("error", () => give(undefined)); // a daemon of the caller's own needs nobody's word
    socket.on("close", () => resolve(undefined));
    socket.setTimeout(ANSWER_MS, () => give(undefined));
    socket.once("data", (bytes) => give(bytes[0] === OK ? socket : undefined));
    socket.write(said);
  });
}

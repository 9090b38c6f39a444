// What the adapters share: a command whose whole output is wanted, as bytes, however much it is.
import { CaissonError } from "../lib/index.js";

const LATE = 124, DENIED = 126, KILLED = 137;

/** As a shell has it. */
export function statusOf(result) {
  if (result.state === "exited") return result.exitCode ?? 0;
  if (result.state === "signaled") return 128 + (result.signal ?? 15);
  return { timeout: LATE, expired: LATE, denied: DENIED }[result.state] ?? KILLED;
}

/** Why it was not executed at all, or did not end by itself. */
export const refusalOf = (result) => result.reason ?? (["exited", "signaled"].includes(result.state) ? "" : result.state);

const bytesOf = (event) => event.base64 === undefined ? Buffer.from(event.data ?? "") : Buffer.from(event.base64, "base64");

/** The last bytes of a stream, and of a text that begins in the middle of a letter not that letter. */
class Tail {
  pieces = [];
  size = 0;
  dropped = 0;
  constructor(limit = Infinity) { this.limit = limit; }

  add(piece) {
    this.pieces.push(piece);
    this.size += piece.length;
    while (this.pieces.length > 0 && this.size - this.pieces[0].length >= this.limit) {
      this.size -= this.pieces[0].length;
      this.dropped += this.pieces.shift().length;
    }
  }

  end() {
    let all = Buffer.concat(this.pieces), from = Math.max(0, all.length - this.limit);
    while (from > 0 && from < all.length && (all[from] & 0xc0) === 0x80) from++;
    this.dropped += from;
    return all.subarray(from);
  }
}

/** Kills it; that it was over is no error. */
export async function kill(process) {
  try {
    await process.kill();
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
  }
}

/** Follows a process to its end. `heard(stream, bytes)` gets every piece; of each stream the last `limit` bytes are returned. */
export async function listen(process, { limit, heard, signal } = {}) {
  const streams = { stdout: new Tail(limit), stderr: new Tail(limit) };
  for await (const event of process.events({ signal })) {
    if (event.type !== "output") continue;
    const piece = bytesOf(event);
    streams[event.stream].add(piece);
    heard?.(event.stream, piece);
  }
  const result = await process.poll();
  return {
    result, status: statusOf(result), refusal: refusalOf(result), stdout: streams.stdout.end(), stderr: streams.stderr.end(),
    dropped: { stdout: streams.stdout.dropped, stderr: streams.stderr.dropped },
  };
}

/** Runs it to its end; whoever aborts `signal` ends the command. */
export async function runWhole(place, cmd, { limit, heard, signal, ...options } = {}) {
  signal?.throwIfAborted();
  const process = await place.spawn(cmd, options);
  try {
    return await listen(process, { limit, heard, signal });
  } catch (error) {
    await kill(process);
    signal?.throwIfAborted();
    throw error;
  }
}

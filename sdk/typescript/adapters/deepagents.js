// For deepagents: `createDeepAgent({ backend: await caissonBackend(BaseSandbox, { net: "deny" }) })`. BaseSandbox is that of the program's
// `deepagents`, which makes everything else of these four: by a shell inside.
import { CaissonError, Sandbox, SandboxUnavailable } from "../lib/index.js";
import { refusalOf, statusOf } from "./run.js";

const WORDS = { not_found: "file_not_found", not_directory: "file_not_found", permission_denied: "permission_denied", forbidden: "permission_denied",
  is_directory: "is_directory", invalid: "invalid_path" };

/** What came of it, or the word for why nothing did. Only our own failure is an exception. */
async function attempt(path, act) {
  if (!path.startsWith("/")) return { error: "invalid_path" };
  try {
    return { value: await act(), error: null };
  } catch (error) {
    if (error instanceof SandboxUnavailable || !(error instanceof CaissonError)) throw error;
    return { error: WORDS[error.code] ?? error.message };
  }
}

/** A backend in a sandbox of its own, made of what Sandbox() takes, or in one that is there: `{ sandbox }`. */
export async function caissonBackend(BaseSandbox, { sandbox, timeout = "30m", ...spec } = {}) {
  const place = sandbox ?? await Sandbox.create(spec);

  class CaissonBackend extends BaseSandbox {
    sandbox = place;
    id = place.id;

    async execute(command) {
      const done = await place.exec(command, { timeout, output: { inline: "4m", merge: true } }), why = refusalOf(done);
      return { output: done.stdout + (why && `\n[${why}]`), exitCode: statusOf(done), truncated: done.dropped > 0 };
    }

    async uploadFiles(files) {
      const made = [];
      for (const [path, data] of files) made.push({ path, error: (await attempt(path, () => place.write(path, data))).error });
      return made;
    }

    async downloadFiles(paths) {
      const found = [];
      for (const path of paths) {
        const { value, error } = await attempt(path, () => place.readBytes(path));
        found.push({ path, content: value === undefined ? null : new Uint8Array(value), error });
      }
      return found;
    }

    /** Deletes the sandbox; at the end of the program it is done without. */
    close() { return place.close(); }
  }
  return new CaissonBackend();
}

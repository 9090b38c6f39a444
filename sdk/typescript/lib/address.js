// Where the daemon is, and how to get one: the rules of the CLI, which starts it.
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Invalid, SandboxUnavailable } from "./errors.js";

const START_MS = 30000;

function splitHost(text) {
  const found = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  if (!found || Number(found[3]) < 1 || Number(found[3]) > 65535) throw new Invalid(`a host is HOST:PORT, not ${JSON.stringify(text)}`);
  return { host: found[1] ?? found[2], port: Number(found[3]) };
}

function runDir() {
  if (process.geteuid() === 0) return "/run/caisson";
  if (process.env.XDG_RUNTIME_DIR) return `${process.env.XDG_RUNTIME_DIR}/caisson`;
  const folder = `/tmp/caisson-${process.geteuid()}`;
  const st = fs.lstatSync(folder, { throwIfNoEntry: false });
  if (st && (!st.isDirectory() || st.uid !== process.geteuid() || st.mode & 0o22)) throw new Invalid(`${folder} belongs to somebody else`);
  return folder;
}

/** What was said, else what the environment says, else where the CLI looks. `isNamed`: nothing is started. */
export function findAddress({ socket, host, token } = {}) {
  if (!socket && !host) {
    socket = process.env.CAISSON_SOCKET || undefined;
    host = process.env.CAISSON_HOST || undefined;
  }
  if (socket && host) throw new Invalid("a socket and a host: which one?");
  if (host) return { tcp: splitHost(host), token: token ?? process.env.CAISSON_TOKEN, isNamed: true };
  return { path: socket ?? `${runDir()}/api.sock`, isNamed: Boolean(socket) };
}

export const hostText = ({ host, port }) => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);

const isProgram = (name) => {
  try {
    fs.accessSync(name, fs.constants.X_OK);
    return fs.statSync(name).isFile();
  } catch {
    return false;
  }
};

/** The program `caisson`: as given, $CAISSON, on the PATH, or beside a checkout of this package. */
export function findProgram(given) {
  if (given ?? process.env.CAISSON) return given ?? process.env.CAISSON;
  const places = (process.env.PATH ?? "").split(":").filter((p) => p.startsWith("/")).map((p) => `${p}/caisson`);
  places.push(path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../../build/caisson"));
  const found = places.find(isProgram);
  if (!found) {
    throw new SandboxUnavailable("no daemon answers, and there is no program `caisson` to start one: install it, put it on the PATH, "
      + "or set CAISSON=/path/to/caisson or CAISSON_SOCKET");
  }
  return found;
}

export const mayStart = (address) => !address.isNamed && process.env.CAISSON_START !== "never";

/** A command of the CLI, on the same daemon. */
export function runCli(address, program, words, options = {}) {
  const env = { ...process.env };
  for (const name of ["CAISSON_SOCKET", "CAISSON_HOST", "CAISSON_TOKEN"]) delete env[name];
  if (address.tcp) {
    env.CAISSON_HOST = hostText(address.tcp);
    if (address.token) env.CAISSON_TOKEN = address.token;
  } else if (address.isNamed) {
    env.CAISSON_SOCKET = address.path;
  }
  return new Promise((resolve, reject) => {
    const child = execFile(findProgram(program), words, { env, maxBuffer: 256 << 20, ...options }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number" && !error.killed) reject(new SandboxUnavailable(`caisson: ${error.message}`, { cause: error }));
      else resolve({ status: error ? error.code ?? 125 : 0, stdout, stderr });
    });
    child.stdin?.end();
  });
}

/** Any command that asks the daemon something starts it when it is not there, one starter at a time. */
export async function startDaemon(address, program) {
  const done = await runCli(address, program, ["ps", "--json"], { timeout: START_MS });
  if (done.status !== 0) {
    const said = done.stderr.trim().split("\n").pop();
    throw new SandboxUnavailable(`the daemon could not be started: ${said || "nothing was said"}`);
  }
}

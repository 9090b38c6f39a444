// Sandboxes that nobody closed are deleted when the program ends.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Wire } from "./wire.js";

const left = new Map(); // id -> address
let isHeard = false;

export const remember = (id, address) => {
  if (!isHeard) {
    process.on("beforeExit", dropAll);
    process.on("exit", dropNow);
    isHeard = true;
  }
  left.set(id, address);
};
export const forget = (id) => left.delete(id);

export async function dropThese(entries) {
  for (const [id, address] of entries) {
    const wire = new Wire({ ...address, isNamed: true }); // a daemon that is gone is not started for that
    try {
      (await wire.ask("DELETE", `/v1/sandboxes/${id}`, {}, undefined, true)).resume();
    } catch { /* it is gone, or the daemon is */ } finally {
      wire.close();
    }
  }
}

/** With nothing left it does nothing, so that the program can end. */
async function dropAll() {
  const entries = [...left];
  left.clear();
  await dropThese(entries);
}

/** process.exit() waits for nobody: another program does it. */
function dropNow() {
  if (left.size === 0) return;
  const input = JSON.stringify([...left]);
  left.clear();
  spawnSync(process.execPath, [fileURLToPath(new URL("./drop.js", import.meta.url))], { input, timeout: 20000, stdio: ["pipe", "ignore", "ignore"] });
}

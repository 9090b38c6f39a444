#!/usr/bin/env node
// A write-test-fix loop in JavaScript; a script plays the model (see fix_tests.py).
import { Workspace } from "@caisson/sdk";

const SOURCE = "export const total = (items) => items.reduce((sum, item) => sum + item.price, 0);\n";
const TEST = `import assert from "node:assert/strict";
import { total } from "./basket.mjs";
assert.equal(total([{ price: 3, count: 2 }, { price: 5, count: 1 }]), 11);
assert.equal(total([{ price: 3 }]), 3, "one unless it says how many");
console.log("all is well");
`;
const EDITS = [
  [/8 !== 11/, "sum + item.price", "sum + item.price * item.count"],
  [/NaN|one unless/, "item.count", "(item.count ?? 1)"],
];

function think(said) {
  if (said === undefined || said.startsWith("---")) return ["bash", { command: "node test.mjs" }];
  if (said.includes("all is well")) return undefined;
  const [, old_string, new_string] = EDITS.find(([pattern]) => pattern.test(said));
  return ["edit", { file_path: "basket.mjs", old_string, new_string }];
}

const ws = await Workspace.open("example-fix-tests-js");
try {
  await ws.write("basket.mjs", SOURCE);
  await ws.write("test.mjs", TEST);
  const tools = ws.tools();
  let said, call;
  for (let turn = 1; turn < 10 && (call = think(said)); turn++) {
    said = await tools.call(...call);
    console.log(turn, call[0], said.trim().split("\n").pop());
  }
  const result = await ws.exec("node test.mjs");
  console.log("passes:", result.ok);
  process.exitCode = result.ok ? 0 : 1;
} finally {
  await ws.remove({ force: true });
}

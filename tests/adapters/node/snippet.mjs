// Snippets of docs/adapters.md, run as they stand.
import { readFileSync, writeFileSync, rmSync } from "node:fs";

let count = 0;

/** The code below a heading, with these names known; returns some of those that it leaves. */
export async function snippet(heading, known, wanted) {
  const text = readFileSync(process.env.ADAPTERS_DOC, "utf-8"), from = text.indexOf(`\n## ${heading}\n`);
  const code = /```(?:js|ts)\n([^]*?)\n```/.exec(text.slice(from))[1], file = new URL(`./snippet-${process.pid}-${count++}.mjs`, import.meta.url);
  globalThis.known = known;
  writeFileSync(file, `const { ${Object.keys(known).join(", ")} } = globalThis.known;\n${code}\nexport { ${wanted.join(", ")} };\n`);
  try {
    return await import(file.href);
  } finally {
    rmSync(file);
  }
}

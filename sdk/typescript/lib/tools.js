// The six tools of an agent: what to tell a model, and who does what it asks for.
import { CaissonError, SandboxUnavailable } from "./errors.js";
import { TOOLS } from "./tooldata.js";

const BASH_SECONDS = 120, BASH_SECONDS_MAX = 600;
const OUTPUT_MAX = 30000; // characters of a result; the tail counts more than the head
const READ_LINES = 2000, LINE_MAX = 2000, GLOB_MAX = 200, GREP_MAX = 200;

function clip(text) {
  if (text.length <= OUTPUT_MAX) return text;
  const head = Math.floor(OUTPUT_MAX / 3);
  return `${text.slice(0, head)}\n[… ${text.length - OUTPUT_MAX} characters left out …]\n${text.slice(head - OUTPUT_MAX)}`;
}

function showResult(result) {
  const parts = [result.stdout, result.stderr].filter(Boolean).map(clip);
  if (result.dropped) parts.push(`[${result.dropped} bytes of output are only in the log of ${result.id}]`);
  if (!result.isOver) parts.push(`[${result.id} still runs]`);
  else if (result.state !== "exited") parts.push(`[${result.state}${result.reason ? `: ${result.reason}` : ""}]`);
  else if (result.exitCode !== 0) parts.push(`[exit status ${result.exitCode}]`);
  parts.push(...result.violations.map((one) => `[refused: ${one.kind} ${one.target}]`));
  return parts.map((part) => part.replace(/\n+$/, "")).join("\n") || "[no output]";
}

function showLines(lines) {
  if (lines.encoding !== "utf-8") return `[${lines.path} is not text: ${lines.bytes} bytes]`;
  const rows = lines.text.split("\n");
  if (rows.at(-1) === "") rows.pop();
  let shown = rows.map((row, i) => `${String(lines.first + i).padStart(6)}\t${row.replace(/\r$/, "").slice(0, LINE_MAX)}`).join("\n");
  if (lines.next !== null) shown += `\n[${lines.total_lines} lines; go on with offset ${lines.next}]`;
  return shown || "[the file is empty]";
}

function showMatches(found, mode) {
  const rows = [];
  if (mode === "content") {
    for (const m of found.matches) {
      const before = m.before ?? [], after = m.after ?? [];
      before.forEach((text, i) => rows.push(`${m.path}-${m.line - before.length + i}-${text}`));
      rows.push(`${m.path}:${m.line}:${m.text.slice(0, LINE_MAX)}`);
      after.forEach((text, i) => rows.push(`${m.path}-${m.line + 1 + i}-${text}`));
    }
  } else {
    const counts = new Map();
    for (const m of found.matches) counts.set(m.path, (counts.get(m.path) ?? 0) + 1);
    for (const [path, n] of counts) rows.push(mode === "count" ? `${path}:${n}` : path);
  }
  if (found.truncated) rows.push("[there may be more]");
  return clip(rows.join("\n")) || "[nothing was found]";
}

const SHAPES = {
  anthropic: ({ name, description, schema }) => ({ name, description, input_schema: schema }),
  openai: ({ name, description, schema }) => ({ type: "function", function: { name, description, parameters: schema } }),
  "openai-responses": ({ name, description, schema }) => ({ type: "function", name, description, parameters: schema, strict: false }),
  plain: (one) => ({ ...one }),
};

/** `specs(kind)` goes with the request to the model; `call` does what comes back, and says how it went in words. */
export class Tools {
  constructor(place) { this.place = place; }

  specs(kind = "anthropic") {
    if (!Object.hasOwn(SHAPES, kind)) throw new TypeError(`${kind}: ${Object.keys(SHAPES).join(", ")}`);
    return structuredClone(TOOLS).map(SHAPES[kind]);
  }

  /** One function for each, by name, with what frameworks want to know about it. */
  functions() {
    return Object.fromEntries(this.specs("plain").map(({ name, description, schema }) =>
      [name, { name, description, parameters: schema, execute: (given) => this.call(name, given) }]));
  }

  /** What a model asked for: arguments as an object, or as the JSON text of one. */
  async call(name, given) {
    const spec = TOOLS.find((one) => one.name === name);
    if (!spec) return `[there is no tool '${name}': ${TOOLS.map((one) => one.name).join(", ")}]`;
    if (typeof given === "string") {
      try {
        given = JSON.parse(given);
      } catch (error) {
        return `[the arguments are not JSON: ${error.message}]`;
      }
    }
    const unknown = Object.keys(given ?? {}).filter((one) => !Object.hasOwn(spec.schema.properties, one));
    const missing = spec.schema.required.filter((one) => given?.[one] === undefined);
    if (unknown.length || missing.length) {
      return `[${name}: ${[unknown.length && `unknown: ${unknown.join(", ")}`, missing.length && `needed: ${missing.join(", ")}`].filter(Boolean).join("; ")}]`;
    }
    try {
      return await DO[name](this.place, given);
    } catch (error) {
      if (!(error instanceof CaissonError) || error instanceof SandboxUnavailable) throw error;
      return `[${error.message}]`;
    }
  }
}

const DO = {
  async bash(place, { command, timeout, description, run_in_background: isAside }) {
    if (isAside) return `[${(await place.spawn(command, { label: description })).id} runs in the background]`;
    const seconds = Math.min(timeout ? timeout / 1000 : BASH_SECONDS, BASH_SECONDS_MAX);
    return showResult(await place.exec(command, { timeout: seconds, label: description }));
  },
  async read(place, { file_path: path, offset, limit }) {
    const first = Math.max(offset ?? 1, 1);
    return clip(showLines(await place.readLines(path, first, first + (limit ?? READ_LINES) - 1)));
  },
  async write(place, { file_path: path, content }) {
    const made = await place.write(path, content);
    return `[${made.path}: ${made.bytes} bytes, ${made.created ? "new" : "replaced"}]`;
  },
  async edit(place, { file_path: path, old_string: old, new_string: text, replace_all: all = false }) {
    const made = await place.edit(path, old, text, { all });
    return made.diff ?? `[${made.replaced} replaced]`;
  },
  async glob(place, { pattern, path }) {
    const found = await place.glob(pattern, { path, sort: "mtime", max: GLOB_MAX });
    const names = found.paths.map((one) => (typeof one === "string" ? one : one.path));
    return [...names, ...(found.truncated ? ["[there are more]"] : [])].join("\n") || "[nothing was found]";
  },
  async grep(place, { pattern, path, glob, output_mode: mode = "content", ignore_case: ignoreCase, context, multiline, head_limit: max }) {
    return showMatches(await place.grep(pattern, { path, glob, ignoreCase, context, multiline, max: max ?? GREP_MAX }), mode);
  },
};

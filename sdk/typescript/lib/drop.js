// A program of its own: deletes the sandboxes that are named on its standard input, for one that exits (exit.js).
import { dropThese } from "./exit.js";
import { readAll } from "./wire.js";

await dropThese(JSON.parse((await readAll(process.stdin)).toString()));

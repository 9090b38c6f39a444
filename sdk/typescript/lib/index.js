// Caisson: a place where a coding agent works, behind walls.
export { Client, defaultClient } from "./client.js";
export { Result } from "./common.js";
export * from "./errors.js";
export { Process, Terminal } from "./process.js";
export { Port, Sandbox } from "./sandbox.js";
export { seal } from "./seal.js";
export { Tools } from "./tools.js";
export { Workspace } from "./workspace.js";

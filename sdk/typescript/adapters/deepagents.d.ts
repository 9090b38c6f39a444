// Caisson for deepagents.
import type { Duration, Sandbox, SandboxOptions } from "../index.js";

/** `BaseSandbox` is the class of `deepagents`. */
export function caissonBackend<Base extends abstract new (...given: any[]) => object>(
  BaseSandbox: Base, options?: SandboxOptions & { sandbox?: Sandbox; timeout?: Duration },
): Promise<InstanceType<Base> & { readonly id: string; readonly sandbox: Sandbox; close(): Promise<void> }>;

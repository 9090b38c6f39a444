// Caisson for Mastra.
import type { Port, Sandbox, SandboxOptions } from "../index.js";

type Class = abstract new (...given: any[]) => any;
interface Workspace { MastraSandbox: Class; MastraFilesystem: Class; ProcessHandle: Class; SandboxProcessManager: Class }

export interface CaissonSandboxOptions extends Omit<SandboxOptions, "env"> {
  id?: string;
  env?: Record<string, string | undefined>;
  onStart?: (given: any) => void | Promise<void>;
  onStop?: (given: any) => void | Promise<void>;
  onDestroy?: (given: any) => void | Promise<void>;
}

/** `mastra` is the module `@mastra/core/workspace`. */
export function caissonFor<M extends Workspace>(mastra: M): {
  CaissonSandbox: new (options?: CaissonSandboxOptions) => InstanceType<M["MastraSandbox"]> & {
    readonly sandbox: Sandbox | undefined; port(port: number): Promise<Port | null>;
  };
  CaissonFilesystem: new (sandbox: InstanceType<M["MastraSandbox"]>, options?: object) => InstanceType<M["MastraFilesystem"]>;
};

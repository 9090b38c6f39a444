// Caisson for the AI SDK. The types are those of `ai` by their structure, so that it need not be installed for anything else here.
import type { Sandbox, SandboxOptions, Workspace } from "../index.js";

interface Ask { path: string; abortSignal?: AbortSignal }
interface Run { command: string; workingDirectory?: string; env?: Record<string, string>; abortSignal?: AbortSignal }
type Transport = "http" | "https" | "ws";

/** Experimental_SandboxSession of `ai`. */
export interface CaissonSession {
  readonly description: string;
  readFile(options: Ask): Promise<ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: Ask): Promise<Uint8Array | null>;
  readTextFile(options: Ask & { encoding?: string; startLine?: number; endLine?: number }): Promise<string | null>;
  writeFile(options: Ask & { content: ReadableStream<Uint8Array> }): Promise<void>;
  writeBinaryFile(options: Ask & { content: Uint8Array }): Promise<void>;
  writeTextFile(options: Ask & { content: string; encoding?: string }): Promise<void>;
  run(options: Run): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  spawn(options: Run): Promise<{
    readonly stdout: ReadableStream<Uint8Array>; readonly stderr: ReadableStream<Uint8Array>;
    wait(): Promise<{ exitCode: number }>; kill(): Promise<void>;
  }>;
}

/** HarnessV1NetworkSandboxSession of `@ai-sdk/harness`. */
export interface CaissonNetworkSession extends CaissonSession {
  readonly id: string;
  readonly defaultWorkingDirectory: string;
  readonly ports: readonly number[];
  readonly sandbox: Sandbox;
  getPortEndpoint(options: { port: number; protocol?: Transport }): Promise<{ url: string; headers: Record<string, string> }>;
  /** For a browser: it sets a cookie. */
  getPortUrl(options: { port: number; protocol?: Transport }): Promise<string>;
  stop(): Promise<void>;
  destroy(): Promise<void>;
  setNetworkPolicy(policy: { mode: "allow-all" } | { mode: "deny-all" } | {
    mode: "custom"; allowedHosts?: readonly string[]; allowedCIDRs?: readonly string[]; deniedCIDRs?: readonly string[];
  }): Promise<void>;
  restricted(): CaissonSession;
}

/** HarnessV1SandboxProvider of `@ai-sdk/harness`. */
export interface CaissonProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: "caisson";
  createSession(options?: {
    sessionId?: string; abortSignal?: AbortSignal; identity?: string;
    onFirstCreate?: (session: CaissonSession, options: { abortSignal?: AbortSignal }) => Promise<void>;
  }): Promise<CaissonNetworkSession>;
  resumeSession(options: { sessionId: string; abortSignal?: AbortSignal }): Promise<CaissonNetworkSession>;
}

export function sandboxSession(sandbox: Sandbox | Workspace, home?: string): CaissonSession;
export function createCaissonSandbox(options?: SandboxOptions & { ports?: readonly number[] }): CaissonProvider;
export function caissonTools<S>(sandbox: Sandbox | Workspace, jsonSchema: (schema: any) => S): Record<"bash" | "read" | "write" | "edit" | "glob" | "grep", {
  description: string; inputSchema: S; execute(given: any): Promise<string>;
}>;

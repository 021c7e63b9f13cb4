import type { Readable } from "node:stream";

/**
 * Live traffic with a sandbox, from whichever process got the request to the node that has the sandbox: calls with a
 * JSON head and a body of bytes in both directions, which flow at the same time and with back-pressure.
 *
 * In one process a call is a call of a function. Between processes it is a request of HTTP/2 over the connection that
 * the node keeps to the control plane (`link.ts`): its streams, their flow control and their resets are HTTP/2's.
 */
export type NodeCall = {
  method: NodeMethod;
  sandboxId: string;
  /** JSON; checked by whoever answers the method. */
  params: unknown;
  /** What is sent along; ends when the caller has no more. Absent where there is nothing. */
  body?: Readable;
  /** Aborted when nobody wants the answer any more. */
  signal: AbortSignal;
};

/** `result` is JSON. Failures are `EngineError`s, and arrive as such with code and message. */
export type NodeReply = { result: unknown; body?: Readable };

export type NodeCallHandler = (call: NodeCall) => Promise<NodeReply>;

/**
 * | method | params | body in | result | body out |
 * |---|---|---|---|---|
 * | `exec` | `ExecParams` | its input (with `stdin: true`) | `{exec_id}` | lines of JSON: `ExecEvent` |
 * | `exec.attach` | `{exec_id, stdout, stderr}` (bytes had) | | `{exec_id}` | as `exec` |
 * | `exec.kill` | `{exec_id, signal}` | | `{}` | |
 * | `shell` | `{exec_id, argv?, cwd?, env?, columns, rows}` | frames: see `shell-frames.ts` | `{exec_id}` | frames |
 * | `files.list` | `{path, after?}` (a name) | | `{entries: FileEntry[], more}` | |
 * | `files.stat` | `{path}` | | `FileEntry & {etag}` | |
 * | `files.get` | `{path, start?, end?}` (end inclusive; start below 0: the last so many) | | `FileEntry & {etag, start, end}` | the bytes |
 * | `files.put` | `{path, mode?, if_match?, if_none_match?, size?}` | the bytes | `FileEntry & {etag, created}` | |
 * | `files.delete` | `{path, recursive, if_match?}` | | `{}` | |
 * | `stats` | `{}` | | the fields of the specification | |
 * | `connect` | `{port}` | bytes | `{}` | bytes |
 */
export const NODE_METHODS = [
  "exec",
  "exec.attach",
  "exec.kill",
  "shell",
  "files.list",
  "files.stat",
  "files.get",
  "files.put",
  "files.delete",
  "stats",
  "connect",
] as const;
export type NodeMethod = (typeof NODE_METHODS)[number];

/** `exec_id` is chosen by the control plane. `log`: what it writes also becomes log lines of the sandbox. */
export type ExecParams = {
  exec_id: string;
  argv: string[];
  cwd?: string;
  env?: Record<string, string>;
  user?: "agent" | "root";
  timeout_ms?: number;
  stdin?: boolean;
  /** Kill it when the call is given up. */
  cancel_on_disconnect?: boolean;
  log?: boolean;
};

/** Bytes of each stream that the reader has. */
export type OutputFrom = { stdout: number; stderr: number };

/** `at` counts the bytes of that stream up to and with this piece; `data` is base64 where `encoding` says so. */
export type ExecEvent =
  | { type: "stdout" | "stderr"; data: string; encoding?: "base64"; at: number }
  | { type: "skipped"; stream: "stdout" | "stderr"; bytes: number }
  | { type: "exit"; exit_code: number | null; signal: string | null; timed_out: boolean };

/** `path` as `sandbox/contract/files/paths.ts` has it: bytes that are no UTF-8 are lone surrogates. `mode`: permission bits. */
export type FileEntry = { path: string; size: number; is_dir: boolean; mode: number; modified_at: string };

/** The control plane's side: calls to any node that is connected to this process, or is in it. */
export interface NodeCaller {
  /** Rejects with `unavailable` when there is no connection to that node. */
  call(nodeId: string, call: NodeCall): Promise<NodeReply>;
}

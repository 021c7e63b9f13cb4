import type { Readable } from "node:stream";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import { matchesEtag } from "../../../core/etags.ts";
import { shownPath } from "../../contract/files/paths.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { SandboxDeps } from "./deps.ts";
import { parseRange, type FileRange } from "./file-range.ts";
import { callNode } from "./node-call.ts";

/** A file of a sandbox as an answer: the whole, a range of it, or its head. */

export const OCTETS = "application/octet-stream";

/** What nodes answer: see `sandbox/contract/link/calls.ts`. */
export const entry = z.object({
  path: z.string(),
  size: z.number(),
  is_dir: z.boolean(),
  mode: z.number(),
  modified_at: z.string(),
});
export const tagged = entry.extend({ etag: z.string() });
const got = tagged.extend({ start: z.number(), end: z.number() });

type NodeDeps = Pick<SandboxDeps, "nodes" | "clock" | "callTimeoutMs">;

type FileRequest = {
  sandbox: Sandbox;
  path: string;
  headers: { range?: string | undefined; "if-range"?: string | undefined; "if-match"?: string | undefined };
  signal: AbortSignal;
};

/** Rejects with `precondition_failed`, `range_not_satisfiable`, and what the node says. */
export async function fileResponse(deps: NodeDeps, request: FileRequest): Promise<HttpResponse> {
  const { headers } = request;
  const range = parseRange(headers.range);
  const { file, body } = await openFile(deps, request, range);
  try {
    checkMatch(file, headers["if-match"]);
  } catch (error) {
    body.destroy();
    throw error;
  }
  const wanted = headers["if-range"];
  if (range === undefined || wanted === undefined || wanted === file.etag) return partOf(file, range, body);
  body.destroy();
  const whole = await openFile(deps, request, undefined);
  return partOf(whole.file, undefined, whole.body);
}

async function openFile(
  deps: NodeDeps,
  { sandbox, path, signal }: FileRequest,
  range: FileRange | undefined,
): Promise<{ file: z.output<typeof got>; body: Readable }> {
  const params = { path, ...range };
  const { result, body } = await callNode(deps, sandbox, { method: "files.get", params, signal });
  if (body === undefined) throw new Error("a node answered files.get without a body");
  return { file: got.parse(result), body };
}

function partOf(file: z.output<typeof got>, range: FileRange | undefined, body: Readable): HttpResponse {
  const { headers } = headOf(file);
  headers["Content-Length"] = String(file.end - file.start + 1);
  if (range === undefined) return { status: 200, headers, body };
  headers["Content-Range"] = `bytes ${file.start}-${file.end}/${file.size}`;
  return { status: 206, headers, body };
}

/** Throws `conflict` for a directory. */
export function headOf(file: z.output<typeof tagged>): HttpResponse {
  if (file.is_dir) throw new EngineError("conflict", `${JSON.stringify(shownPath(file.path))}: it is a directory`);
  const modified = new Date(file.modified_at);
  const hasHttpYear = modified.getUTCFullYear() >= 0 && modified.getUTCFullYear() <= 9_999;
  return {
    status: 200,
    headers: {
      "Content-Type": OCTETS,
      "Content-Length": String(file.size),
      "Accept-Ranges": "bytes",
      ETag: file.etag,
      ...(hasHttpYear && { "Last-Modified": modified.toUTCString() }),
    },
  };
}

/** Throws `precondition_failed`. */
export function checkMatch({ etag, path }: z.output<typeof tagged>, wanted: string | undefined): void {
  if (wanted === undefined || matchesEtag(wanted, etag)) return;
  throw new EngineError("precondition_failed", `${JSON.stringify(shownPath(path))}: it is another by now`);
}

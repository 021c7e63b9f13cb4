import { Readable } from "node:stream";
import { z } from "zod";
import type { Caller } from "../../../auth/caller.ts";
import { EngineError } from "../../../core/errors.ts";
import type { HttpRequest } from "../../../io/http/http.ts";
import { matchesWeakly } from "../../../core/etags.ts";
import { MAX_FILE_BYTES, MAX_LIST_ENTRIES } from "../../contract/files/limits.ts";
import { percentDecodedPath, percentEncodedPath, shownPath } from "../../contract/files/paths.ts";
import type { FileEntry } from "../../contract/link/calls.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { SandboxState } from "../../contract/states.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { checkMatch, entry, fileResponse, headOf, OCTETS, tagged } from "./file-response.ts";
import { callNode, inState } from "./node-call.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** The files of a sandbox: what a command of its agent would see, and may do. */

type FilesDeps = Pick<SandboxDeps, "sandboxes" | "nodes" | "clock" | "callTimeoutMs" | "actionWaitMs">;
type Asking = { caller: Caller; request: HttpRequest };

const STATES: readonly SandboxState[] = ["running", "pausing", "paused", "stopped"];

const fileBody = z.object({
  path: z.string().describe("Absolute. Bytes that are no UTF-8 are shown as U+FFFD."),
  size: z.int().describe("In bytes; 0 for directories."),
  is_dir: z.boolean(),
  mode: z.int().describe("Permission bits: 420 is 0644."),
  modified_at: z.iso.datetime(),
  encoded_path: z
    .string()
    .optional()
    .describe("Where the path is not UTF-8: its bytes, percent-encoded as these routes take it."),
});

nameSchemas({ FileEntry: fileBody });

const listing = z.object({ entries: z.array(entry), more: z.boolean() });

const filePath = z.object({
  id: z.string(),
  path: z
    .string()
    .describe("From the root of the sandbox. Percent-decoded as bytes: `%2F` is as good as `/`, a NUL is refused."),
});
const ifMatch = z.string().describe("Entity tags: it must be one of these; `*`: it must be there.");
const common = { tag: "Sandboxes" } as const;
const entityTag = { ETag: "Changes with every change of the file." };
const ABOUT =
  "What the sandbox's agent (1000:1000) may do and see, also while it is paused or stopped: what it may not is " +
  "`forbidden`. Symbolic links are followed within the sandbox.";

export const listFilesRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/files",
  summary: "List a directory of a sandbox",
  description:
    `${ABOUT} By name, at most ${MAX_LIST_ENTRIES} entries; where there are more, \`Link\` leads to the next ones ` +
    '(`rel="next"`). A name that is a link is shown as what it leads to, or as the link where that is nothing.',
  params: z.object({ id: z.string() }),
  query: z.object({
    path: z.string().optional().describe("The directory; `/` unless given."),
    after: z.string().optional().describe("Only names above this one."),
  }),
  responses: [
    {
      status: 200,
      description: "Its entries.",
      type: "application/json",
      schema: z.array(fileBody),
      headers: { Link: "To the next entries." },
    },
  ],
  errors: ["sandbox_not_found", "sandbox_invalid_state", "file_not_found", "conflict", "sandbox_timeout"],
  handler:
    (deps: FilesDeps) =>
    async ({ caller, params: { id }, request }) => {
      const sandbox = await sandboxOf(deps, id, { caller, request });
      const path = decoded(queryValue(request.query, "path") ?? "/");
      const after = queryValue(request.query, "after");
      const params = { path, ...(after !== undefined && { after: textOf(after) }) };
      const { signal } = request;
      const { result } = await callNode(deps, sandbox, { method: "files.list", params, signal });
      const { entries, more } = listing.parse(result);
      const last = entries.at(-1)?.path.split("/").at(-1);
      const next = more && last !== undefined ? nextPage(id, path, last) : undefined;
      return jsonResponse(200, entries.map(bodyOf), next === undefined ? {} : { Link: next });
    },
});

export const getFileRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/files/{*path}",
  summary: "The bytes of a file of a sandbox",
  description: `${ABOUT} Regular files only. One that is cut short while it is sent ends the connection.`,
  params: filePath,
  headers: z.object({
    range: z.string().optional().describe("One range of bytes: `bytes=0-1023`, `bytes=1024-`, `bytes=-100`."),
    "if-range": z.string().optional().describe("The range only where this is its entity tag, else the whole."),
    "if-match": ifMatch.optional(),
    "if-none-match": z.string().optional().describe("Entity tags: `304` where it is one of these."),
  }),
  responses: [
    { status: 200, description: "The file.", type: OCTETS, headers: entityTag },
    {
      status: 206,
      description: "The range of it.",
      type: OCTETS,
      headers: { ...entityTag, "Content-Range": "Which part, and the size of the whole." },
    },
    { status: 304, description: "It has not changed.", headers: entityTag },
  ],
  errors: [
    "sandbox_not_found",
    "sandbox_invalid_state",
    "file_not_found",
    "conflict",
    "precondition_failed",
    "range_not_satisfiable",
    "sandbox_timeout",
  ],
  handler:
    (deps: FilesDeps) =>
    async ({ caller, params: { id, path: encoded }, headers, request }) => {
      const sandbox = await sandboxOf(deps, id, { caller, request });
      const path = decoded(encoded);
      const known = headers["if-none-match"];
      if (known !== undefined || request.method === "HEAD") {
        const { signal } = request;
        const { result } = await callNode(deps, sandbox, { method: "files.stat", params: { path }, signal });
        const file = tagged.parse(result);
        checkMatch(file, headers["if-match"]);
        if (known !== undefined && matchesWeakly(known, file.etag))
          return { status: 304, headers: { ETag: file.etag } };
        if (request.method === "HEAD") return headOf(file);
      }
      return await fileResponse(deps, { sandbox, path, headers, signal: request.signal });
    },
});

export const putFileRoute = defineRoute({
  ...common,
  role: "write",
  method: "PUT",
  path: "/api/v1/sandboxes/{id}/files/{*path}",
  summary: "Put a file into a sandbox",
  description:
    `${ABOUT} Directories that are missing are made. The file takes the place of an older one in one step, and keeps its ` +
    "permission bits; a new one has 0644. An upload that is cut off leaves nothing. Other names of the older one (hard " +
    "links) keep its bytes; one that the agent may not write is not replaced.",
  params: filePath,
  query: z.object({
    mode: z
      .string()
      .regex(/^0?[0-7]{1,3}$/, "is not an octal mode from 0 to 777")
      .transform((text) => Number.parseInt(text, 8))
      .optional()
      .describe("Permission bits in octal, of old and new."),
  }),
  headers: z.object({
    "if-match": ifMatch.optional(),
    "if-none-match": z
      .string()
      .regex(/^\s*\*\s*$/, "only * is taken")
      .optional()
      .describe("`*`: only where there is no such file."),
  }),
  body: { types: [OCTETS, "*/*"], description: "The file's bytes.", limitBytes: MAX_FILE_BYTES },
  responses: [
    { status: 200, description: "The file is there.", type: "application/json", schema: fileBody, headers: entityTag },
  ],
  errors: [
    "sandbox_not_found",
    "sandbox_invalid_state",
    "file_not_found",
    "conflict",
    "precondition_failed",
    "body_too_large",
    "unsupported_media_type",
    "request_timeout",
    "insufficient_storage",
    "sandbox_timeout",
  ],
  handler:
    (deps: FilesDeps) =>
    async ({ caller, params: { id, path: encoded }, query: { mode }, headers, request }) => {
      const sandbox = await sandboxOf(deps, id, { caller, request });
      checkWhole(request);
      const size = announcedBytes(request);
      const match = headers["if-match"];
      const params = {
        path: decoded(encoded),
        ...(mode !== undefined && { mode }),
        ...(match !== undefined && { if_match: match }),
        ...(headers["if-none-match"] !== undefined && { if_none_match: "*" }),
        ...(size !== undefined && { size }),
      };
      const upload = new Upload(request);
      const { signal } = request;
      // It is answered when all of it is there, which is up to the client.
      const call = { method: "files.put", params, body: upload.body, signal, isTimed: false } as const;
      const { result } = await callNode(deps, sandbox, call).catch((error: unknown) => {
        throw upload.failure ?? error;
      });
      const file = tagged.parse(result);
      return jsonResponse(200, bodyOf(file), { ETag: file.etag });
    },
});

export const deleteFileRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: "/api/v1/sandboxes/{id}/files/{*path}",
  summary: "Delete a file of a sandbox",
  description: `${ABOUT} Of a symbolic link, the link. A directory is a \`conflict\` unless \`recursive\` is said.`,
  params: filePath,
  query: z.object({ recursive: z.enum(["true", "false"]).optional().describe("With all that is in it.") }),
  headers: z.object({ "if-match": ifMatch.optional() }),
  responses: [{ status: 204, description: "It is gone." }],
  errors: [
    "sandbox_not_found",
    "sandbox_invalid_state",
    "file_not_found",
    "conflict",
    "precondition_failed",
    "sandbox_timeout",
  ],
  handler:
    (deps: FilesDeps) =>
    async ({ caller, params: { id, path: encoded }, query, headers, request }) => {
      const sandbox = await sandboxOf(deps, id, { caller, request });
      const match = headers["if-match"];
      const params = {
        path: decoded(encoded),
        recursive: query.recursive === "true",
        ...(match !== undefined && { if_match: match }),
      };
      // A large tree takes its time; the node bounds it.
      const { signal } = request;
      await callNode(deps, sandbox, { method: "files.delete", params, signal, isTimed: query.recursive !== "true" });
      return { status: 204, headers: {} };
    },
});

async function sandboxOf(deps: FilesDeps, id: string, { caller, request: { signal } }: Asking): Promise<Sandbox> {
  const sandbox = await deps.sandboxes.get(id, caller);
  return await inState(deps, sandbox, { allowed: STATES, asker: caller, signal });
}

/** The body of a request as a stream; `failure` is why it could not be read to its end. */
class Upload {
  readonly body: Readable;
  failure: unknown;

  constructor(request: HttpRequest) {
    // Piece by piece, as they are: whoever has sent one on gives its buffer back.
    this.body = Readable.from(this.#pieces(request), { objectMode: true, highWaterMark: 1 });
  }

  async *#pieces(request: HttpRequest): AsyncGenerator<Uint8Array> {
    try {
      yield* request.stream(MAX_FILE_BYTES, { shared: true });
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}

/** Throws where the body is a part of a file (RFC 9110 §14.5 wants that refused), or is not the file as it is. */
function checkWhole(request: HttpRequest): void {
  if (request.header("content-range") !== undefined) {
    throw new EngineError("invalid_header", "header Content-Range: a part of a file can't be put");
  }
  const coding = request.header("content-encoding") ?? "identity";
  if (coding.trim().toLowerCase() === "identity") return;
  throw new EngineError("unsupported_media_type", `a file is put as it is, not with Content-Encoding ${coding}`);
}

/** Throws `body_too_large`, before anybody else is asked for anything. */
function announcedBytes(request: HttpRequest): number | undefined {
  const length = request.header("content-length");
  if (length === undefined || !/^\d+$/.test(length)) return undefined;
  if (Number(length) <= MAX_FILE_BYTES) return Number(length);
  throw new EngineError("body_too_large", `a file can have ${MAX_FILE_BYTES} bytes, not ${length}`);
}

/** Of a query as it was sent: not every name is text. */
function queryValue(query: string, name: string): string | undefined {
  const pairs = query.split("&").map((pair) => pair.split(/=(.*)/s));
  return pairs.find(([key]) => key === name)?.[1]?.replaceAll("+", "%20");
}

function textOf(encoded: string): string {
  const text = percentDecodedPath(encoded);
  if (text === undefined) throw new EngineError("invalid_parameter", "the path is not valid percent-encoding");
  return text;
}

function decoded(encoded: string): string {
  const path = textOf(encoded);
  return path.startsWith("/") ? path : `/${path}`;
}

function nextPage(id: string, path: string, after: string): string {
  const query = `path=${percentEncodedPath(path)}&after=${percentEncodedPath(after)}`;
  return `</api/v1/sandboxes/${encodeURIComponent(id)}/files?${query}>; rel="next"`;
}

function bodyOf({ path, size, is_dir, mode, modified_at }: FileEntry): z.output<typeof fileBody> {
  const file = { path: shownPath(path), size, is_dir, mode, modified_at };
  return path.isWellFormed() ? file : { ...file, encoded_path: percentEncodedPath(path) };
}

import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "../../core/errors.ts";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  type EngineClient,
  type Target,
} from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { sandboxPath } from "./sandbox-path.ts";

type Place = { kind: "here"; path: string } | { kind: "sandbox"; id: string; path: string };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const SILENCE_MS = 60_000;

/** Copies one file between this computer and a sandbox. What arrives in part is not left behind, on either side. */
export async function copy(
  context: CliContext,
  target: Target,
  { from, to }: { from: string; to: string },
): Promise<number> {
  const [source, goal] = [placeOf(from), placeOf(to)];
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const name = fileName(goal.path, source.path);
    if (source.kind === "here" && goal.kind === "sandbox") {
      await upload(context, { client, target }, source.path, { ...goal, path: name });
    } else if (source.kind === "sandbox" && goal.kind === "here") {
      await download(context, { client, target }, source, name);
    } else throw new CliError("one of the two is a file here, the other <id>:<path> in a sandbox", EXIT.usage);
    return EXIT.ok;
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

/** `<id>:<path>` is in a sandbox; any other text is a path here. */
function placeOf(text: string): Place {
  const at = text.indexOf(":");
  const id = text.slice(0, Math.max(at, 0));
  return UUID.test(id) ? { kind: "sandbox", id, path: text.slice(at + 1) } : { kind: "here", path: text };
}

/** A path with a slash at its end is a folder, in which the file is called as it was. */
function fileName(path: string, from: string): string {
  if (!path.endsWith("/")) return path;
  if (from === "-") throw new CliError(`standard input needs a name in ${path}`, EXIT.usage);
  return join(path, basename(from));
}

type Server = { client: EngineClient; target: Target };
type InSandbox = Extract<Place, { kind: "sandbox" }>;

function fileUrl({ id, path }: InSandbox): string {
  const segments = path.replace(/^\/+/, "").split("/").map(encodeURIComponent);
  return `${sandboxPath(id)}/files/${segments.join("/")}`;
}

async function upload(context: CliContext, { client, target }: Server, path: string, goal: InSandbox): Promise<void> {
  const isStdin = path === "-";
  const mode = isStdin ? undefined : (await readable(path)).mode & 0o777;
  const body = isStdin ? context.deps.stdin : createReadStream(path);
  const query = mode === undefined ? "" : `?mode=${mode.toString(8).padStart(4, "0")}`;
  const reply = await client.send({
    method: "PUT",
    path: `${fileUrl(goal)}${query}`,
    headers: { "content-type": "application/octet-stream" },
    body,
    timeoutMs: SILENCE_MS,
  });
  if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
  for await (const _ of reply.body);
}

async function readable(path: string): Promise<{ mode: number }> {
  try {
    const found = await stat(path);
    if (found.isFile()) return found;
  } catch (error) {
    throw new CliError(`the file cannot be read: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
  throw new CliError(`${path} is no file`);
}

async function download(context: CliContext, { client, target }: Server, from: InSandbox, path: string): Promise<void> {
  const reply = await client.send({ method: "GET", path: fileUrl(from), timeoutMs: SILENCE_MS });
  if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
  if (path === "-") {
    for await (const piece of reply.body) await context.write(piece);
    return;
  }
  const part = `${path}.${context.deps.random.next().toString(36).slice(2)}.part`;
  try {
    await pipeline(Readable.from(reply.body), createWriteStream(part, { flags: "wx" }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

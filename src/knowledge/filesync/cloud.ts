import { z } from "zod";
import { openClient, readApiError, readText, type EngineClient, type Target } from "../../client/client.ts";
import { isPrivateRealm } from "../memory/realms.ts";
import type { MemoryScope, MemoryService } from "../memory/service.ts";
import { textToUs } from "../memory/times.ts";
import { wireVersion } from "../memory/wire.ts";
import { hashOf } from "./folder.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";
import type { StateFiles } from "./state.ts";

/** Where memories are exchanged with, and which. */
export type Cloud = { url: string; token: string | undefined; realm: string | undefined; database: string };
export type CloudResult = { pulled: number; pushed: number };

const watermarks = z.object({ pulledUntil: z.string().optional(), pushedUntilUs: z.number() });

const record = z.looseObject({ id: z.string(), origin_updated_at: z.string() });
const changesAnswer = z.object({
  memory_nodes: z.array(record),
  memory_edges: z.array(record),
  until: z.string(),
  has_more: z.boolean(),
});

const TIMEOUT_MS = 60_000;
/** Pages of one answer are bounded by the server; a long exchange goes on with the next pass. */
const PAGES = 1_000;

/**
 * Takes what changed on the server, waits for `between`, and gives it what changed here, but for what just came from there. Watermarks are
 * saved after what they stand for is applied, so what a pass did not finish is done again, which changes nothing.
 */
export async function exchange(
  {
    memory,
    scope,
    state,
    cloud,
    userAgent,
  }: {
    memory: MemoryService;
    scope: MemoryScope;
    state: StateFiles;
    cloud: Cloud;
    userAgent: string;
  },
  { isDry, signal, between }: { isDry: boolean; signal: AbortSignal; between: () => Promise<void> },
): Promise<CloudResult> {
  const { url, token, realm } = cloud;
  const target: Target = { url, origin: "ENGINE_CLOUD_URL", ...(token !== undefined && { token }) };
  const api = new CloudApi(await openClient(target, userAgent), cloud, signal);
  const file = `cloud-${hashOf(JSON.stringify([url, realm, cloud.database]))}`;
  let mark: z.output<typeof watermarks> = (await state.read(file, watermarks)) ?? NOTHING_YET;
  // A memory that ends before what was exchanged is another one, here as there: all of it is exchanged anew.
  const here = await memory.changes(scope, { sinceUs: mark.pushedUntilUs, limit: 1 });
  if (here.untilUs < mark.pushedUntilUs) mark = NOTHING_YET;
  const arrived = new Set<string>();
  const result: CloudResult = { pulled: 0, pushed: 0 };
  try {
    for (let page = 0, hasMore = true; hasMore && page < PAGES; page++) {
      let answer = await api.changes(mark.pulledUntil);
      if (mark.pulledUntil !== undefined && usOf(answer.until) < usOf(mark.pulledUntil)) {
        mark = NOTHING_YET;
        answer = await api.changes(undefined);
      }
      for (const part of partsOf(answer)) {
        for (const each of [...part.memory_nodes, ...part.memory_edges]) arrived.add(keyOf(each));
        result.pulled += isDry ? countOf(part) : changesIn(await memory.import(scope, part));
      }
      hasMore = answer.has_more;
      mark = { ...mark, pulledUntil: answer.until };
      if (!isDry) await state.write(file, mark);
    }
    await between();
    for (let page = 0, hasMore = true; hasMore && page < PAGES; page++) {
      const { versions, untilUs, ...more } = await memory.changes(scope, {
        sinceUs: mark.pushedUntilUs,
        ...(realm !== undefined && { realm }),
      });
      const own = versions.filter((version) => !isPrivateRealm(version.record.realm));
      const records = {
        memory_nodes: own.filter(({ kind }) => kind === "node").map(wireVersion),
        memory_edges: own.filter(({ kind }) => kind === "edge").map(wireVersion),
      };
      const isNew = (each: { id: string; origin_updated_at: string }): boolean => !arrived.has(keyOf(each));
      const fresh = {
        memory_nodes: records.memory_nodes.filter(isNew),
        memory_edges: records.memory_edges.filter(isNew),
      };
      for (const part of partsOf(fresh)) {
        if (!isDry) await api.import(part);
        result.pushed += countOf(part);
      }
      mark = { ...mark, pushedUntilUs: untilUs };
      hasMore = more.hasMore;
      if (!isDry) await state.write(file, mark);
    }
    return result;
  } finally {
    await api.close();
  }
}

const NOTHING_YET = { pushedUntilUs: 0 };

function usOf(time: string): number {
  return textToUs(time) ?? 0;
}

function keyOf({ id, origin_updated_at: origin }: { id: string; origin_updated_at: string }): string {
  return `${id} ${textToUs(origin)}`;
}

function countOf({
  memory_nodes,
  memory_edges,
}: {
  memory_nodes: readonly unknown[];
  memory_edges: readonly unknown[];
}) {
  return memory_nodes.length + memory_edges.length;
}

function changesIn({ nodes, edges }: Awaited<ReturnType<MemoryService["import"]>>): number {
  return [nodes, edges].reduce((sum, { created, updated, erased }) => sum + created + updated + erased, 0);
}

/** Nodes before edges, in imports of a size that every server takes. */
function* partsOf<R>({ memory_nodes, memory_edges }: { memory_nodes: readonly R[]; memory_edges: readonly R[] }) {
  for (let from = 0; from < memory_nodes.length; from += FILE_SYNC_LIMITS.records) {
    yield { memory_nodes: memory_nodes.slice(from, from + FILE_SYNC_LIMITS.records), memory_edges: [] as R[] };
  }
  for (let from = 0; from < memory_edges.length; from += FILE_SYNC_LIMITS.records) {
    yield { memory_nodes: [] as R[], memory_edges: memory_edges.slice(from, from + FILE_SYNC_LIMITS.records) };
  }
}

class CloudApi {
  readonly #client: EngineClient;
  readonly #cloud: Cloud;
  readonly #signal: AbortSignal;

  constructor(client: EngineClient, cloud: Cloud, signal: AbortSignal) {
    this.#client = client;
    this.#cloud = cloud;
    this.#signal = signal;
  }

  async changes(since: string | undefined): Promise<z.output<typeof changesAnswer>> {
    const { realm } = this.#cloud;
    const query = new URLSearchParams({ ...(since !== undefined && { since }), ...(realm !== undefined && { realm }) });
    const text = await this.#call("GET", `/v1/agent/memory/changes?${query.toString()}`);
    const parsed = changesAnswer.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    throw new Error(`${this.#cloud.url} answered with something else than changes: is it an engine of this version?`);
  }

  async import(records: { memory_nodes: readonly unknown[]; memory_edges: readonly unknown[] }): Promise<void> {
    await this.#call("POST", "/v1/agent/memory/import", JSON.stringify(records));
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #call(method: "GET" | "POST", path: string, body?: string): Promise<string> {
    const headers = {
      "x-database": this.#cloud.database,
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const reply = await this.#client.send({
      method,
      path,
      headers,
      ...(body !== undefined && { body }),
      timeoutMs: TIMEOUT_MS,
      signal: this.#signal,
    });
    if (reply.status === 200) return await readText(reply, ANSWER_BYTES);
    const { status, message } = await readApiError(reply);
    throw new Error(`${this.#cloud.url} answered ${status}: ${message}`);
  }
}

/** Far more than the records of one answer may take. */
const ANSWER_BYTES = 512 * 1024 * 1024;

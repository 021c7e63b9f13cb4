import { z } from "zod";
import { ownerOf } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { requestHeaders } from "../../server/edge/forward-headers.ts";
import { WEB_HEADER } from "../../server/web-session.ts";
import { defineRoute, jsonResponse, type Call } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { timeOf } from "../../server/schemas.ts";
import type { NodeAnswer, OtherNodes } from "../contract/nodes.ts";
import type { QueryState } from "../system-tables/query-log.ts";
import type { QueryDeps } from "./deps.ts";
import { queryId } from "./query-id.ts";

/**
 * Queries that run, and those that ran lately, of all nodes. Each node knows its own, in memory; the one that is asked
 * asks the others with the credentials of its caller, and names those that are silent. Who may see a query may end it:
 * its caller, and admins who may use its database, as in `system.queries`. Queries of others are told apart from none by
 * nothing.
 */
const node = z.object({ id: z.string(), name: z.string().describe("Its host.") });

const queryBody = z.object({
  id: z.string(),
  request_id: z.string(),
  node,
  database: z.string(),
  subject: z.string().describe("Who asked."),
  is_own: z.boolean().describe("Whether it is the caller's."),
  language: z.string(),
  text: z.string().describe("The first 4 KiB, without values of parameters."),
  state: z.enum(["running", "ended"]).describe("It runs until its client has the whole answer."),
  stage: z
    .string()
    .nullable()
    .describe("Of one that runs: `queue`, `translate`, `parse`, `plan`, `fetch`, `scan`, `stream`."),
  outcome: z.string().describe("`running`, `ok` once the answer is there, or the code of the error."),
  // A node of an earlier release does not say it.
  ended_by: z.string().nullable().default(null).describe("Who ended it by its id; null where nobody did."),
  started_at: z.string(),
  elapsed_ms: z.number().describe("Until now, or until the answer could begin."),
  stages_ms: z.record(z.string(), z.number()).describe("Of the stages that are over."),
  percent: z.number().nullable().describe("Of the scan that goes on, where DuckDB knows it."),
  bytes_planned: z.int().nullable().describe("Size of the extents that it reads, once it is planned."),
  bytes_ready: z.int().nullable().describe("Of those, what is on the node by now."),
  bytes_read: z.int().nullable().describe("Requested from the object store; what is cached is not."),
  memory_bytes: z.int().nullable().describe("The most that its process has grown by for it."),
  spill_bytes: z.int().nullable().describe("The most that was spilled at one time."),
  extents_total: z.int().nullable(),
  extents_read: z.int().nullable(),
  rows: z.int().nullable().describe("Of the answer."),
});

type QueryBody = z.output<typeof queryBody>;

const silentNode = node.extend({ reason: z.string().describe("To admins, also where it was looked for.") });

const queriesBody = z.object({
  queries: z.array(queryBody).describe("Those that run, the oldest first; then the others, the newest first."),
  node: node.describe("The node that answers."),
  silent: z.array(silentNode).describe("Nodes that did not answer within a second: their queries are not in the list."),
});

nameSchemas({ Query: queryBody, Queries: queriesBody });

const MAX_LISTED = 1_000;

const common = { role: "read", tag: "Query" } as const;
const SELF = "self";
const onlySelf = z.literal(SELF).optional().describe("`self`: of the node that answers alone.");

export const listQueriesRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/queries",
  summary: "Queries that run, and those that ran lately, of all nodes",
  description:
    "The caller's own, for admins those of everybody in the databases that they may use. Nodes keep up to 1,000 queries of " +
    "a database in memory, and none over a restart.",
  query: z.object({
    scope: z.enum(["mine", "all"]).default("all").describe("`mine`: the caller's own, also for admins."),
    state: z.enum(["running", "ended"]).optional().describe("Both without."),
    database: z.string().optional().describe("Only of that one."),
    limit: z.coerce
      .number()
      .int()
      .min(0)
      .max(MAX_LISTED)
      .default(100)
      .describe("Most of those that are over. The running ones are all there."),
    node: onlySelf,
  }),
  responses: [{ status: 200, description: "The queries.", type: "application/json", schema: queriesBody }],
  errors: [],
  handler: (deps: QueryDeps) => async (call) => {
    const { scope, state, database, limit, node: only } = call.query;
    const { caller } = call;
    const own = bodiesOf(deps, caller, deps.running.states(caller));
    const others = only === SELF ? NOBODY : await askOthers(deps, call, "GET", `/v1/queries?${filtersOf(call.query)}`);
    const heard = readAll(others, queriesBody, caller);
    const all = [...own, ...heard.answers.flatMap(({ queries }) => queries)].filter(
      (query) =>
        (scope === "all" || query.is_own) &&
        (state === undefined || query.state === state) &&
        (database === undefined || foldName(query.database) === foldName(database)),
    );
    const running = all.filter((query) => query.state === "running");
    const ended = all.filter((query) => query.state === "ended");
    running.sort((a, b) => (a.started_at < b.started_at ? -1 : 1));
    ended.sort((a, b) => (a.started_at > b.started_at ? -1 : 1));
    const queries = [...running, ...ended.slice(0, limit)];
    return jsonResponse(200, { queries, node: deps.nodes.self, silent: heard.silent });
  },
});

export const getQueryRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/queries/{id}",
  summary: "One query: how far it is, or what became of it",
  params: z.object({ id: queryId }),
  query: z.object({ node: onlySelf }),
  responses: [{ status: 200, description: "The query.", type: "application/json", schema: queryBody }],
  errors: ["not_found", "unavailable"],
  handler: (deps: QueryDeps) => async (call) => {
    const { caller, params } = call;
    const state = deps.running.state(caller, params.id);
    const own = state === undefined ? [] : bodiesOf(deps, caller, [state]);
    if (call.query.node === SELF || state?.isRunning === true)
      return jsonResponse(200, own[0] ?? refuse(params.id, []));
    const heard = readAll(
      await askOthers(deps, call, "GET", `/v1/queries/${params.id}?node=${SELF}`),
      queryBody,
      caller,
    );
    const all = [...own, ...heard.answers];
    const found = all.find((query) => query.is_own && query.state === "running") ?? all.find(isRunning) ?? all[0];
    return jsonResponse(200, found ?? refuse(params.id, heard.silent));
  },
});

export const endQueryRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/queries/{id}",
  summary: "End a query",
  description:
    "Ends it at once, on whichever node it runs, as if its client had left; the client gets `cancelled`, which says by " +
    "whom, or a torn answer where it had begun. One that is over stays so. Callers end their own, admins those of " +
    "everybody in the databases that they may use.",
  params: z.object({ id: queryId }),
  query: z.object({ node: onlySelf }),
  responses: [{ status: 204, description: "It does not run any more." }],
  errors: ["not_found", "unavailable"],
  handler: (deps: QueryDeps) => async (call) => {
    const { caller, params, clientAddress: address, requestId } = call;
    const isKnown = deps.running.state(caller, params.id) !== undefined;
    const hasEnded = deps.running.end({ caller, address, requestId }, params.id);
    if (hasEnded || (isKnown && call.query.node === SELF)) return { status: 204, headers: {} };
    if (call.query.node === SELF) return refuse(params.id, []);
    const answers = await askOthers(deps, call, "DELETE", `/v1/queries/${params.id}?node=${SELF}`);
    if (isKnown || answers.some((answer) => answer.kind === "answered" && answer.status === 204)) {
      return { status: 204, headers: {} };
    }
    return refuse(params.id, silentOf(answers, caller));
  },
});

function isRunning({ state }: QueryBody): boolean {
  return state === "running";
}

/** Throws: nobody has it, or nobody who answered. */
function refuse(id: string, silent: readonly z.output<typeof silentNode>[]): never {
  if (silent.length === 0) throw new EngineError("not_found", `there is no query ${id}`);
  const names = silent.map(({ name }) => name).join(", ");
  throw new EngineError("unavailable", `no node that answered has the query ${id}, and these did not answer: ${names}`);
}

function bodiesOf({ nodes }: QueryDeps, caller: Call["caller"], states: readonly QueryState[]): QueryBody[] {
  const owner = ownerOf(caller);
  return states.map(({ record, isRunning: runs, stage, elapsedMs }) => ({
    id: record.id,
    request_id: record.requestId,
    node: nodes.self,
    database: record.database,
    subject: record.subject,
    is_own: record.owner === owner,
    language: record.language,
    text: record.text,
    state: runs ? "running" : "ended",
    stage: stage ?? null,
    outcome: record.outcome,
    ended_by: record.endedBy ?? null,
    started_at: timeOf(record.startedAtMs),
    elapsed_ms: elapsedMs,
    stages_ms: record.stagesMs,
    percent: stage === "scan" ? (record.percent ?? null) : null,
    bytes_planned: record.bytesPlanned ?? null,
    bytes_ready: record.bytesReady ?? null,
    bytes_read: record.bytesRead ?? null,
    memory_bytes: record.memoryBytes ?? null,
    spill_bytes: record.spillBytes ?? null,
    extents_total: record.extentsTotal ?? null,
    extents_read: record.extentsRead ?? null,
    rows: record.rows ?? null,
  }));
}

const NOBODY: readonly NodeAnswer[] = [];

/** What the others are asked for, so that they send no more than is needed. */
function filtersOf(query: {
  scope: string;
  state?: string | undefined;
  database?: string | undefined;
  limit: number;
}): string {
  const { scope, state, database, limit } = query;
  const filters = { scope, limit: String(limit), node: SELF, ...(state && { state }), ...(database && { database }) };
  return new URLSearchParams(filters).toString();
}

/** What shows who asks, a browser that signed in included: the others judge it as one behind an edge does. */
const ASKED_WITH = new Set([
  "authorization",
  "cookie",
  "origin",
  "sec-fetch-site",
  WEB_HEADER,
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-request-id",
]);

async function askOthers(
  { nodes }: { nodes: OtherNodes },
  { request, requestId }: Pick<Call, "request" | "requestId">,
  method: "GET" | "DELETE",
  path: string,
): Promise<readonly NodeAnswer[]> {
  const pairs = requestHeaders(request, requestId, `engine-${nodes.self.id}`);
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const [name = "", value = ""] = [pairs[i], pairs[i + 1]];
    if (ASKED_WITH.has(name)) headers[name] = value;
  }
  return await nodes.ask({ method, path, headers, signal: request.signal });
}

/** The answers that are what was asked for, and who gave none. That a node knows nothing is an answer. */
function readAll<T>(
  answers: readonly NodeAnswer[],
  schema: z.ZodType<T>,
  caller: Call["caller"],
): { answers: T[]; silent: z.output<typeof silentNode>[] } {
  const read: T[] = [];
  for (const answer of answers) {
    if (answer.kind === "answered" && answer.status === 200) {
      const parsed = parsedAs(schema, answer.text);
      if (parsed !== undefined) read.push(parsed);
    }
  }
  return { answers: read, silent: silentOf(answers, caller) };
}

function parsedAs<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    // A version that says it otherwise.
    return undefined;
  }
}

/**
 * Those that did not answer, or otherwise than a node does that knows the route: one of an earlier version, or not ours. A
 * reason may have an address inside of the cluster, which only its admins are told.
 */
function silentOf(answers: readonly NodeAnswer[], { role }: Call["caller"]): z.output<typeof silentNode>[] {
  return answers.flatMap((answer) => {
    const { id, name } = answer;
    if (answer.kind === "silent") return [{ id, name, reason: role === "admin" ? answer.reason : "it did not answer" }];
    return [200, 204, 404].includes(answer.status) ? [] : [{ id, name, reason: `it answered ${answer.status}` }];
  });
}

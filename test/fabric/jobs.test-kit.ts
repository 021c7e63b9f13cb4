import { randomBytes } from "node:crypto";
import { openMemoryCatalog } from "../../src/catalog/sqlite/memory.test-kit.ts";
import { z } from "zod";
import { ADMIN } from "../../src/auth/access.test-kit.ts";
import { AuditLog } from "../../src/auth/audit.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import type { Caller } from "../../src/auth/caller.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import { ManualClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { Fabric } from "../../src/fabric/fabric.ts";
import { JobEvents } from "../../src/fabric/job-events.ts";
import { JobLogs } from "../../src/fabric/job-logs.ts";
import { JobKinds } from "../../src/fabric/kinds.ts";
import { Schedules } from "../../src/fabric/schedules.ts";
import { Workers } from "../../src/fabric/workers.ts";
import { Credentials } from "../../src/credentials/credentials.ts";
import { JobCredentials } from "../../src/credentials/job-credentials.ts";
import { directoryOf } from "../../src/credentials/oauth/provider.test-kit.ts";
import { OAuthTokens } from "../../src/credentials/oauth/tokens.ts";
import { keyringOf } from "../../src/auth/sealing/keyring.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import type { FabricDeps } from "../../src/fabric/routes/deps.ts";
import type { JobCredentialDeps } from "../../src/credentials/routes/job-credential.ts";
import { engineRoutes } from "../../roles/routes.ts";

/** The routes of jobs and workers over a catalog in memory, with a clock that stands still. */
export type JobsApi = Pick<FabricDeps, "fabric" | "workers" | "audit" | "logs" | "jobEvents" | "schedules"> & {
  credentials: Credentials;
  secrets: JobCredentials;
  clock: ManualClock;
  url: string;
  /** `by` is the token, or the name of one of the callers; nobody when absent. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  newWorker(body?: Record<string, unknown>): Promise<{ id: string; token: string }>;
  /** Enqueues a job of the kind `x.task` unless it says otherwise; resolves to its id. */
  newJob(body?: Record<string, unknown>): Promise<string>;
  claim(token: string, body?: Record<string, unknown>): Promise<ClaimedJob[]>;
  /** All answers, but for the secrets that they are to give, and the log. */
  said: string[];
  close(): Promise<void>;
};

export type CallOptions = {
  by?: string | undefined;
  /** A string or bytes are sent as they are. */
  body?: unknown;
  fence?: number | string | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};
export type Answer = { status: number; code: string; headers: Headers; text: string; json: Record<string, unknown> };
export type ClaimedJob = { id: string; fence: number; kind: string } & Record<string, unknown>;

export const OFFLINE_MS = 90_000;
const LEASE_MS = 300_000;

const CALLERS: Readonly<Record<string, Caller>> = {
  ops: { ...ADMIN, subject: "ops", role: "write" },
  other: { ...ADMIN, subject: "other", role: "write" },
  root: ADMIN,
  reader: { ...ADMIN, subject: "reader", role: "read" },
  limited: { ...ADMIN, subject: "limited", databases: ["a"] },
};

const KINDS = new JobKinds([
  { name: "test.engine", payload: z.json(), enqueue: "read", claim: "engine" },
  { name: "test.both", aliases: ["test_both"], payload: z.json(), enqueue: "write", claim: "both" },
  { name: "test.admin", payload: z.json(), enqueue: "admin", claim: "both" },
  { name: "test.node", payload: z.json(), enqueue: "write", claim: "both", needsAdmission: true },
  { name: "test.internal", payload: z.json(), enqueue: "nobody", claim: "both" },
]);

export async function startJobsApi({ isOn = true } = {}): Promise<JobsApi> {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  const { records, signals } = catalog;
  const said: string[] = [];
  const log = createLog("trace", { write: (line) => void said.push(line) });
  const newId = uuidV7Source(clock, systemRandom);
  const common = { records, newId, random: systemRandom, audit: new AuditLog(records, newId), log, clock };
  const workers = new Workers({ ...common, offlineMs: OFFLINE_MS });
  const fabric = new Fabric({ ...common, signals, kinds: KINDS, leaseMs: LEASE_MS });
  const credentials = new Credentials({ ...common, keyring: keyringOf(randomBytes(32).toString("base64"), []) });
  const providers = directoryOf(clock, {}, {});
  const tokens = new OAuthTokens({ ...common, catalog, credentials, providers });
  const secrets = new JobCredentials({ ...common, fabric, credentials, tokens });
  const logs = new JobLogs(records);
  const jobEvents = new JobEvents({ ...common, logs });
  const schedules = new Schedules({ ...common, fabric });
  const deps = { ...common, fabric, workers, credentials, secrets, logs, jobEvents, schedules };
  const { url, close } = await serve(deps, isOn);
  const call = callerOf(url, said);
  return {
    ...deps,
    url,
    said,
    call,
    async newWorker(body = {}) {
      const { json } = await call("POST", "/v1/workers", { by: "ops", body: { name: "w", ...body } });
      return { id: String(json["worker_id"]), token: String(json["token"]) };
    },
    async newJob(body = {}) {
      const { json, text } = await call("POST", "/v1/jobs", { by: "ops", body: { kind: "x.task", ...body } });
      if (typeof json["job_id"] !== "string") throw new Error(`nothing was enqueued: ${text}`);
      return json["job_id"];
    },
    async claim(token, body = {}) {
      const { json, text } = await call("POST", "/v1/jobs/claim", { by: token, body: { kinds: ["x.task"], ...body } });
      if (!Array.isArray(json["jobs"])) throw new Error(`the claim was refused: ${text}`);
      return json["jobs"] as ClaimedJob[];
    },
    async close() {
      fabric.close();
      jobEvents.close();
      await close();
      await catalog.close();
    },
  };
}

type ServeParts = FabricDeps & JobCredentialDeps & Pick<Parameters<typeof serveApp>[0], "log" | "newId">;

async function serve(deps: ServeParts, isOn: boolean): Promise<{ url: string; close: () => Promise<void> }> {
  const { clock, log, newId, workers } = deps;
  const metrics = createMetrics();
  const backends = [{ recognizes: () => true, authenticate: (token: string) => Promise.resolve(CALLERS[token]) }];
  const authenticator = createAuthenticator({ isOn, backends, workers, failures: new FailureLimit({ clock }) });
  const service = { metrics, authenticator, version: "0", isDraining: () => false };
  const nobody = { query: undefined, ingest: undefined, access: undefined, exports: undefined, deletion: undefined };
  const routes = await engineRoutes({ service, ...nobody, fabric: { here: deps } });
  return await serveApp({ clock, newId, log, metrics, authenticator, routes });
}

/** What routes are meant to hand out, where they are. */
const HANDED_OUT = /"token":"[^"]*"/g;

function callerOf(url: string, said: string[]): JobsApi["call"] {
  return async (method, path, { by, body, fence, headers = {}, signal } = {}) => {
    const isRaw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(by !== undefined && { Authorization: `Bearer ${by}` }),
        ...(fence !== undefined && { "X-Job-Fence": String(fence) }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
    const text = await response.text();
    said.push(JSON.stringify([...response.headers]), text.replaceAll(HANDED_OUT, ""));
    const json = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
    const code = (json["error"] as { code?: string } | undefined)?.code ?? "";
    return { status: response.status, code, headers: response.headers, text, json };
  };
}

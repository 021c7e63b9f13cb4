import { z } from "zod";
import { EngineError } from "../core/errors.ts";
import type { HoldState } from "./extend.ts";
import type { Failure } from "./fail.ts";
import type { ClaimRequest, JobPort, LogLine } from "./handler.ts";
import type { Hold, Job } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { RemoteHttp, type RemoteCall, type RemoteServer } from "./remote-port-http.ts";
import { toClaimedJob, wireClaim, wireHoldState } from "./remote-port-job.ts";

/** What a node says of itself, and the kinds of jobs that it is going to claim. */
export type NodeDescription = { name: string; host: string; version: string; kinds: readonly string[] };

export type Registration = { workerId: string; heartbeatIntervalMs: number };

/** What the control plane says to a heartbeat. */
export type Heartbeat = { status: string; drain: boolean };

const wireRegistration = z.object({ worker_id: z.string(), heartbeat_interval_secs: z.number().positive() });
const wireHeartbeat = z.object({ status: z.string(), drain: z.boolean(), cancel: z.array(z.string()).default([]) });

const FENCE_HEADER = "X-Job-Fence";
/** Beyond the wait of a claim, for the way there and back. */
const CLAIM_MARGIN_MS = 10_000;
/** A renewal without an answer is given up after this share of the lease: there is time for others before its end. */
const [RENEWAL_SHARE, MOST_RENEWAL_MS] = [0.25, 10_000];

/** The fabric as a node daemon reaches it: over HTTP, with the token of its node. Writes carry the fence of the hold. */
export class RemotePort implements JobPort {
  readonly #http: RemoteHttp;
  readonly #cancelListeners = new Set<(jobId: string) => void>();

  constructor(server: RemoteServer) {
    this.#http = new RemoteHttp(server);
  }

  /** Tells the control plane of this node. */
  async register(node: NodeDescription): Promise<Registration> {
    const { kinds, ...described } = node;
    const body = kinds.length === 0 ? described : node;
    const answer = await this.#http.call({ method: "POST", path: "/v1/workers/register", body });
    const { worker_id: workerId, heartbeat_interval_secs: secs } = read(wireRegistration, answer);
    return { workerId, heartbeatIntervalMs: secs * 1_000 };
  }

  /** Says that this node is there, and tells those who listen which of its jobs are to be cancelled. */
  async heartbeat(): Promise<Heartbeat> {
    const answer = await this.#http.call({ method: "POST", path: "/v1/workers/heartbeat", body: {} });
    const { status, drain, cancel } = read(wireHeartbeat, answer);
    for (const jobId of cancel) for (const listener of this.#cancelListeners) listener(jobId);
    return { status, drain };
  }

  async claim({ kinds, max, waitMs, signal }: ClaimRequest): Promise<Job[]> {
    const answer = await this.#http.call({
      method: "POST",
      path: "/v1/jobs/claim",
      body: { kinds, max, wait_ms: Math.min(waitMs, FABRIC_LIMITS.claimWaitMs) },
      timeoutMs: waitMs + CLAIM_MARGIN_MS,
      signal,
    });
    return read(wireClaim, answer).jobs.map(toClaimedJob);
  }

  async extend(hold: Hold, leaseMs: number): Promise<HoldState> {
    const body = { lease_secs: Math.floor(leaseMs / 1_000) };
    return toHoldState(await this.#post(hold, "lease", body, Math.min(MOST_RENEWAL_MS, leaseMs * RENEWAL_SHARE)));
  }

  async progress(hold: Hold, snapshot: unknown): Promise<HoldState> {
    return toHoldState(await this.#post(hold, "progress", snapshot ?? null));
  }

  async log(hold: Hold, lines: readonly LogLine[]): Promise<void> {
    await this.#post(hold, "logs", { lines });
  }

  async complete(hold: Hold, result: unknown): Promise<void> {
    await this.#post(hold, "complete", result ?? null);
  }

  async fail(hold: Hold, { error, retryable, retryAfterMs }: Failure): Promise<void> {
    const delay = retryAfterMs === undefined ? {} : { retry_after_ms: Math.round(retryAfterMs) };
    await this.#post(hold, "fail", { error, retryable: retryable === true, ...delay });
  }

  async release(hold: Hold): Promise<void> {
    await this.#post(hold, "release");
  }

  async credential(hold: Hold, id: string): Promise<unknown> {
    const path = `/v1/jobs/${encodeURIComponent(hold.jobId)}/credentials/${encodeURIComponent(id)}`;
    return await this.#ofHold(hold, { method: "GET", path });
  }

  /** Posts to a further route of a job that this node holds, `/v1/jobs/{id}/{path}`; resolves to its answer. */
  async ofJob(
    hold: Hold,
    path: string,
    { body, timeoutMs, signal }: Pick<RemoteCall, "body" | "timeoutMs" | "signal">,
  ): Promise<unknown> {
    const call: RemoteCall = { method: "POST", path: `/v1/jobs/${encodeURIComponent(hold.jobId)}/${path}`, body };
    const limits = { ...(timeoutMs !== undefined && { timeoutMs }), ...(signal !== undefined && { signal }) };
    return await this.#ofHold(hold, { ...call, ...limits });
  }

  onCancel(listener: (jobId: string) => void): () => void {
    this.#cancelListeners.add(listener);
    return () => void this.#cancelListeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  #post(hold: Hold, verb: string, body?: unknown, timeoutMs?: number): Promise<unknown> {
    return this.ofJob(hold, verb, { body, ...(timeoutMs !== undefined && { timeoutMs }) });
  }

  /** A call about one job: what is forbidden is that, and not the node. */
  #ofHold({ fence }: Hold, call: RemoteCall): Promise<unknown> {
    return this.#http.call({ ...call, headers: { [FENCE_HEADER]: String(fence) }, mayBeForbidden: true });
  }
}

function toHoldState(answer: unknown): HoldState {
  const state = read(wireHoldState, answer);
  return { cancelRequested: state.cancel_requested, leaseExpiresAtMs: Date.parse(state.lease_expires_at) };
}

/** Throws `unavailable`: what answers is no engine, or one of another version. */
function read<T>(schema: z.ZodType<T>, answer: unknown): T {
  const { data, error } = schema.safeParse(answer);
  if (data !== undefined) return data;
  const [issue] = error?.issues ?? [];
  const where = issue === undefined ? "" : ` (${issue.path.join(".")}: ${issue.message})`;
  throw new EngineError("unavailable", `the control plane answered what this version does not understand${where}`);
}

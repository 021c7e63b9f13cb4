import type { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { Hold } from "../../../fabric/job.ts";
import { RemoteHttp, type RemoteServer } from "../../../fabric/remote-port-http.ts";
import type { TurnMessage } from "../../contract/turn.ts";
import type { ControlPort, NodeAnswer, NodeReport, SandboxBatch, DesiredState } from "../../contract/control-port.ts";
import {
  answerOf,
  orderOf,
  toWireBatch,
  toWireReport,
  wireAnswer,
  wireHistory,
  wireDesiredState,
} from "../../contract/control-wire.ts";

const FENCE_HEADER = "X-Job-Fence";

/** The control plane as a node daemon reaches it: over HTTP, with the token of its worker. */
export class RemoteControlPort implements ControlPort {
  readonly nodeId: string;
  readonly #http: RemoteHttp;
  readonly #listeners = new Set<(sandboxId: string) => void>();

  /** @param nodeId the id of the worker whose token it is */
  constructor(nodeId: string, server: RemoteServer) {
    this.nodeId = nodeId;
    this.#http = new RemoteHttp(server);
  }

  async report(node: NodeReport): Promise<NodeAnswer> {
    const body = toWireReport(node);
    const answer = await this.#http.call({ method: "POST", path: "/v1/sandbox-nodes/report", body });
    return answerOf(read(wireAnswer, answer));
  }

  async desiredState(hold: Hold): Promise<DesiredState> {
    return orderOf(read(wireDesiredState, await this.#ofHold(hold, "GET", "order")));
  }

  async record(hold: Hold, batch: SandboxBatch): Promise<DesiredState> {
    return orderOf(read(wireDesiredState, await this.#ofHold(hold, "POST", "batches", toWireBatch(batch))));
  }

  async history(hold: Hold, sessionId: string): Promise<readonly TurnMessage[]> {
    const what = `sessions/${encodeURIComponent(sessionId)}/history`;
    return read(wireHistory, await this.#ofHold(hold, "GET", what)).messages;
  }

  onDesiredState(listener: (sandboxId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The control plane said over the link that the desired state of a sandbox has changed. */
  told(sandboxId: string): void {
    for (const listener of this.#listeners) listener(sandboxId);
  }

  /** Calls under way reject. */
  async close(): Promise<void> {
    await this.#http.close();
  }

  /** A call about one job: what is forbidden is that, and not the node. */
  #ofHold({ jobId, fence }: Hold, method: "GET" | "POST", what: string, body?: unknown): Promise<unknown> {
    const path = `/v1/sandbox-nodes/jobs/${encodeURIComponent(jobId)}/${what}`;
    const headers = { [FENCE_HEADER]: String(fence) };
    return this.#http.call({ method, path, headers, mayBeForbidden: true, ...(body === undefined ? {} : { body }) });
  }
}

/** Rejects with `unavailable`, as for an answer that never came: something on the way speaks for the control plane. */
function read<T extends z.ZodType>(schema: T, answer: unknown): z.output<T> {
  const { success, data, error } = schema.safeParse(answer);
  if (success) return data;
  throw new EngineError(
    "unavailable",
    `the control plane's answer is none: ${error.issues[0]?.message ?? "malformed"}`,
  );
}

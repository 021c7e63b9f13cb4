import { z } from "zod";
import type { WorkerIdentity } from "../../../auth/caller.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Hold } from "../../../fabric/job.ts";
import { WEBSOCKET_CLOSE, type WebSocketConnection } from "../../../io/http/websocket.ts";
import { LINK_LIMITS, LINK_PATH, LINK_PROTOCOL } from "../../contract/link/link.ts";
import { SANDBOX_JOB_KIND } from "../../contract/sandbox-job.ts";
import {
  BATCH_BYTES,
  batchOf,
  reportOf,
  toWireAnswer,
  toWireHistory,
  toWireDesiredState,
  wireAnswer,
  wireBatch,
  wireHistory,
  wireDesiredState,
  wireReport,
} from "../../contract/control-wire.ts";
import { fenceHeader, holdOfJob } from "../../../fabric/routes/jobs-leased.ts";
import { defineRoute, jsonResponse, webSocketResponse, workerOf } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";

/** What nodes that run sandboxes say and ask, beside the jobs that they hold. */

type NodeDeps = Pick<SandboxDeps, "sandboxes" | "link" | "clock">;

const common = { role: "worker", tag: "Sandbox nodes" } as const;
/** Between two looks whether the token of a node that is connected is still good. */
const ADMISSION_MS = 10_000;

const jobPath = z.object({ job_id: z.string() });
const orderResponse = {
  status: 200,
  description: "What is to become of the sandbox.",
  type: "application/json",
  schema: wireDesiredState,
};

export const reportNodeRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/sandbox-nodes/report",
  summary: "A node says what it is and has",
  description: "Every few seconds.",
  json: wireReport,
  responses: [{ status: 200, description: "Noted.", type: "application/json", schema: wireAnswer }],
  errors: ["forbidden", "insufficient_storage"],
  handler:
    ({ sandboxes, link }: NodeDeps) =>
    async (call) => {
      const { id } = nodeOf(workerOf(call));
      const answer = await sandboxes.report(id, reportOf(call.json));
      return jsonResponse(200, toWireAnswer({ ...answer, gateways: link.gateways() }));
    },
});

export const orderRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/sandbox-nodes/jobs/{job_id}/order",
  summary: "What is to become of the sandbox of a job",
  params: jobPath,
  headers: fenceHeader,
  responses: [orderResponse],
  errors: ["missing_header", "invalid_header", "forbidden", "lease_lost", "sandbox_not_found", "insufficient_storage"],
  handler:
    ({ sandboxes }: NodeDeps) =>
    async (call) =>
      jsonResponse(200, toWireDesiredState(await sandboxes.desiredState(holdOfNode(call.params.job_id, call)))),
});

export const historyRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/sandbox-nodes/jobs/{job_id}/sessions/{sid}/history",
  summary: "What was said in a session before the message that is being answered",
  description: "For an agent that does not know the session any more. Nothing where no message is being answered.",
  params: jobPath.extend({ sid: z.string() }),
  headers: fenceHeader,
  responses: [{ status: 200, description: "The newest messages.", type: "application/json", schema: wireHistory }],
  errors: ["missing_header", "invalid_header", "forbidden", "lease_lost", "sandbox_not_found"],
  handler:
    ({ sandboxes }: NodeDeps) =>
    async (call) => {
      const { job_id: jobId, sid } = call.params;
      return jsonResponse(200, toWireHistory(await sandboxes.history(holdOfNode(jobId, call), sid)));
    },
});

export const recordBatchRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/sandbox-nodes/jobs/{job_id}/batches",
  summary: "Write what happened in the sandbox of a job",
  description: "All or nothing. A batch that is sent again, under its number, is not written twice.",
  params: jobPath,
  headers: fenceHeader,
  json: wireBatch,
  jsonLimitBytes: BATCH_BYTES,
  responses: [orderResponse],
  errors: [
    "missing_header",
    "invalid_header",
    "forbidden",
    "lease_lost",
    "sandbox_not_found",
    "sandbox_invalid_state",
    "insufficient_storage",
  ],
  handler:
    ({ sandboxes }: NodeDeps) =>
    async (call) => {
      const hold = holdOfNode(call.params.job_id, call);
      return jsonResponse(200, toWireDesiredState(await sandboxes.record(hold, batchOf(call.json))));
    },
});

export const linkRoute = defineRoute({
  ...common,
  method: "GET",
  path: LINK_PATH,
  summary: "The connection over which this process reaches a node, as a WebSocket",
  description: `Of the subprotocol \`${LINK_PROTOCOL}\`: HTTP/2, in which this process is the client.`,
  webSocket: true,
  responses: [{ status: 101, description: "A WebSocket." }],
  errors: ["bad_request", "forbidden"],
  handler: (deps: NodeDeps) => async (call) => {
    const node = nodeOf(workerOf(call));
    if (call.request.webSocket?.protocols.includes(LINK_PROTOCOL) !== true) {
      throw new EngineError(
        "bad_request",
        `this process speaks ${LINK_PROTOCOL} with nodes: theirs is another version`,
      );
    }
    return webSocketResponse({
      protocol: LINK_PROTOCOL,
      limits: LINK_LIMITS,
      run: (connection) => runLink(deps, node.id, connection),
    });
  },
});

/** Has the node called over the connection, for as long as its token is good. */
async function runLink(
  { link, sandboxes, clock }: NodeDeps,
  nodeId: string,
  connection: WebSocketConnection,
): Promise<void> {
  const { nodes, isAdmitted } = link;
  const stopTelling = sandboxes.signals.onDesiredState((sandboxId, ofNode) => {
    if (sandboxId !== undefined && ofNode === nodeId) nodes.tell(nodeId, sandboxId);
  });
  const looking = clock.every(ADMISSION_MS, () => {
    isAdmitted(nodeId).then(
      (isGood) => {
        if (!isGood) connection.close(WEBSOCKET_CLOSE.refused, "the token of this node was revoked");
      },
      // Not known at the moment: it is asked again soon.
      () => undefined,
    );
  });
  try {
    await nodes.attach(nodeId, connection);
  } finally {
    looking.cancel();
    stopTelling();
  }
}

/** What a node shows of a job. Throws `forbidden` for a worker that may no longer run sandboxes, whatever it holds; `lease_lost`. */
export function holdOfNode(jobId: string, call: Parameters<typeof holdOfJob>[1]): Hold {
  nodeOf(workerOf(call));
  return holdOfJob(jobId, call);
}

/** Throws `forbidden` for a worker that may have no sandboxes: it has those of everybody, so an admin must say so. */
export function nodeOf(worker: WorkerIdentity): WorkerIdentity {
  if (mayBeNode(worker)) return worker;
  throw new EngineError("forbidden", `an admin must admit this worker for jobs of ${SANDBOX_JOB_KIND}`);
}

export function mayBeNode({ capabilities, admitted }: Pick<WorkerIdentity, "capabilities" | "admitted">): boolean {
  return [capabilities, admitted].every((names) => names === undefined || names.includes(SANDBOX_JOB_KIND));
}

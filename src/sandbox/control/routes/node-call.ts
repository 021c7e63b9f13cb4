import type { Readable } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import type { Asker } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import type { NodeCaller, NodeMethod, NodeReply } from "../../contract/link/calls.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { Sandboxes } from "../sandboxes.ts";
import type { SandboxState } from "../../contract/states.ts";

type NodeRequest = {
  method: NodeMethod;
  params: unknown;
  body?: Readable;
  /** The client's: when it leaves, the call is given up. */
  signal: AbortSignal;
  /** False for a call that is answered only when its body has ended. */
  isTimed?: boolean;
};

/**
 * Calls the node that has the sandbox. Rejects with `sandbox_timeout` when it has not begun to answer in time (a body
 * that it sends is not timed), `unavailable` when it is not connected, `sandbox_invalid_state` while no node has the
 * sandbox, and what the method says.
 */
export async function callNode(
  { nodes, clock, callTimeoutMs }: { nodes: NodeCaller; clock: Clock; callTimeoutMs: number },
  { id, nodeId, state }: Pick<Sandbox, "id" | "nodeId" | "state">,
  { signal, isTimed = true, ...request }: NodeRequest,
): Promise<NodeReply> {
  if (nodeId === undefined) throw invalidState(state, "no node has it yet");
  const late = new AbortController();
  const timer = isTimed
    ? clock.after(callTimeoutMs, () => {
        const message = `the node of the sandbox did not answer within ${callTimeoutMs / 1_000} s`;
        late.abort(new EngineError("sandbox_timeout", message));
      })
    : undefined;
  const gone = Promise.withResolvers<never>();
  late.signal.addEventListener("abort", () => gone.reject(late.signal.reason as Error), { once: true });
  try {
    const both = AbortSignal.any([signal, late.signal]);
    return await Promise.race([nodes.call(nodeId, { ...request, sandboxId: id, signal: both }), gone.promise]);
  } finally {
    timer?.cancel();
  }
}

type Wait = { sandboxes: Pick<Sandboxes, "settled">; actionWaitMs: number };

/**
 * The sandbox, when it is in one of these states. One that is being made is waited for, as an action would be: clients
 * may use what they have just created. Rejects with `sandbox_invalid_state` where it is in another state, or still is
 * when the time is over.
 */
export async function inState(
  { sandboxes, actionWaitMs }: Wait,
  sandbox: Sandbox,
  { allowed, asker, signal }: { allowed: readonly SandboxState[]; asker: Asker; signal: AbortSignal },
): Promise<Sandbox> {
  const wait = { action: "start", asker, timeoutMs: actionWaitMs, signal } as const;
  const isMade = sandbox.state !== "pending" && sandbox.state !== "creating";
  const seen = isMade ? sandbox : await sandboxes.settled(sandbox, wait);
  checkState(seen, allowed);
  return seen;
}

function checkState({ state }: Pick<Sandbox, "state">, allowed: readonly SandboxState[]): void {
  if (!allowed.includes(state)) throw invalidState(state, `this needs ${allowed.join(" or ")}`);
}

function invalidState(state: SandboxState, why: string): EngineError {
  return new EngineError("sandbox_invalid_state", `the sandbox is ${state}: ${why}`);
}

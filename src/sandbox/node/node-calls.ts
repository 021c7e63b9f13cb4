import { filesCallHandler } from "./files/calls-handler.ts";
import type { NodeCallHandler } from "../contract/link/calls.ts";
import { liveCallHandler, type LiveCallOptions } from "./exec/live-calls.ts";
import type { SandboxNode } from "./node.ts";
import type { SandboxEnvironments } from "./reconciler/environment.ts";

/** Answers all calls of the control plane about the sandboxes of a node. */
export function nodeCallHandler(
  node: Pick<SandboxNode, "reconcilerOf" | "reconcilerFor">,
  environments: SandboxEnvironments,
  options: Pick<LiveCallOptions, "clock" | "log">,
): NodeCallHandler {
  const live = liveCallHandler({
    ...options,
    machineOf: (sandboxId) => node.reconcilerOf(sandboxId)?.machine,
    onLine: (sandboxId, { stream, line }) => node.reconcilerOf(sandboxId)?.logLine(stream, line),
    trafficOf: (sandboxId) => environments.traffic(sandboxId),
  });
  return async (call) => {
    // A process of the node that has just begun takes up what the one before had.
    await node.reconcilerFor(call.sandboxId, call.signal);
    if (!call.method.startsWith("files.")) return await live(call);
    return await filesCallHandler(environments.filesOf(call.sandboxId))(call);
  };
}

import { filesCallHandler } from "./files/calls-handler.ts";
import type { NodeCallHandler } from "../contract/link/calls.ts";
import { liveCallHandler, type LiveCallOptions } from "./exec/live-calls.ts";
import type { SandboxNode } from "./node.ts";
import type { Surroundings } from "./reconciler/environment.ts";

/** Answers all calls of the control plane about the sandboxes of a node. */
export function nodeCallHandler(
  node: Pick<SandboxNode, "keeperOf" | "keeperFor">,
  surroundings: Surroundings,
  options: Pick<LiveCallOptions, "clock" | "log">,
): NodeCallHandler {
  const live = liveCallHandler({
    ...options,
    machineOf: (sandboxId) => node.keeperOf(sandboxId)?.machine,
    onLine: (sandboxId, { stream, line }) => node.keeperOf(sandboxId)?.logLine(stream, line),
    trafficOf: (sandboxId) => surroundings.traffic(sandboxId),
  });
  return async (call) => {
    // A process of the node that has just begun takes up what the one before had.
    await node.keeperFor(call.sandboxId, call.signal);
    if (!call.method.startsWith("files.")) return await live(call);
    return await filesCallHandler(surroundings.filesOf(call.sandboxId))(call);
  };
}

import { EngineError } from "../../../core/errors.ts";
import { SANDBOX_ACTIONS, type SandboxAction } from "../../contract/states.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import { originOf } from "../../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { isUp, itemOf, recordedStats, sandboxItem, sandboxPath, sandboxStats } from "./bodies.ts";
import type { SandboxDeps } from "./deps.ts";
import { callNode } from "./node-call.ts";

/** What is asked of a sandbox that is there. */

type Verb = Exclude<SandboxAction, "delete">;

const VERBS: readonly Verb[] = ["start", "stop", "pause", "resume"];

const SUMMARIES: Record<Verb, string> = {
  start: "Start a sandbox that is stopped",
  stop: "Stop a sandbox that runs or is paused",
  pause: "Let all processes of a sandbox stand still",
  resume: "Let a paused sandbox go on",
};

const DETAILS: Record<Verb, string> = {
  start: "A persistent one starts from its disk; an ephemeral one is made anew, with its provisioning scripts. ",
  stop: "All its processes end. The disk of a persistent one stays. ",
  pause: "They keep their memory, and go on where they were. ",
  resume: "",
};

function actionRoute(action: Verb) {
  const { from, rests } = SANDBOX_ACTIONS[action];
  return defineRoute({
    tag: "Sandboxes",
    role: "write",
    method: "POST",
    path: `/api/v1/sandboxes/{id}/${action}`,
    summary: SUMMARIES[action],
    description:
      `${DETAILS[action]}Only while it is ${from.join(" or ")}. Answers when it is ${rests}, or after a while with the ` +
      "state on the way there.",
    params: sandboxPath,
    responses: [{ status: 200, description: "As it is then.", type: "application/json", schema: sandboxItem }],
    errors: [
      "sandbox_not_found",
      "sandbox_invalid_state",
      "insufficient_storage",
      ...(action === "start" ? (["unavailable"] as const) : []),
    ],
    handler:
      ({ sandboxes, actionWaitMs }: SandboxDeps) =>
      async (call) => {
        const { caller, request } = call;
        const { signal } = request;
        const asked = await sandboxes.act(call.params.id, { action, caller, origin: originOf(call) });
        const wait = { action, asker: caller, timeoutMs: actionWaitMs, signal };
        return jsonResponse(200, itemOf(await sandboxes.settled(asked, wait)));
      },
  });
}

export const ACTION_ROUTES = VERBS.map(actionRoute);

export const sandboxStatsRoute = defineRoute({
  tag: "Sandboxes",
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/stats",
  summary: "What a sandbox uses",
  description: "At this moment; what its node reported last where that does not answer.",
  params: sandboxPath,
  responses: [{ status: 200, description: "The figures.", type: "application/json", schema: sandboxStats }],
  errors: ["sandbox_not_found", "sandbox_timeout", "unavailable"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, params, request }) => {
      const sandbox = await deps.sandboxes.get(params.id, caller);
      return jsonResponse(200, isUp(sandbox) ? await liveStats(deps, sandbox, request.signal) : recordedStats(sandbox));
    },
});

async function liveStats(deps: SandboxDeps, sandbox: Sandbox, signal: AbortSignal): Promise<unknown> {
  try {
    return sandboxStats.parse((await callNode(deps, sandbox, { method: "stats", params: {}, signal })).result);
  } catch (error) {
    if (signal.aborted || !(error instanceof EngineError)) throw error;
    // Rather older figures than none; a node that answers has none yet, or none any more.
    const isSilent = error.code === "sandbox_timeout" || error.code === "unavailable";
    if (isSilent && sandbox.stats === undefined) throw error;
    return recordedStats(sandbox);
  }
}

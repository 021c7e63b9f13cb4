import { ADMIN } from "../../src/auth/access.test-kit.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import type { Caller } from "../../src/auth/caller.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import { openMemoryCatalog } from "../../src/catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { SandboxEvents } from "../../src/sandbox/control/events/log.ts";
import type { NodeCallHandler } from "../../src/sandbox/contract/link/calls.ts";
import { NodeDirectory } from "../../src/sandbox/control/link/node-directory.ts";
import {
  controlPlaneOn,
  LeasedBox,
  type ControlPlane,
} from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import type { SandboxLimits } from "../../src/sandbox/control/sandboxes.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import { imagesOn } from "../../src/sandbox/control/images/images.test-kit.ts";
import { workspacesOn } from "../../src/sandbox/control/workspaces/workspaces.test-kit.ts";
import type { SandboxDeps } from "../../src/sandbox/control/routes/deps.ts";
import { routesOf } from "../../src/server/route.ts";
import { SANDBOX_ROUTES } from "../../src/sandbox/control/routes/sandbox-routes.ts";

export const NODE = "node-1";

const CALLERS: Readonly<Record<string, Caller>> = {
  root: ADMIN,
  ann: { ...ADMIN, subject: "ann", role: "write" },
  bob: { ...ADMIN, subject: "bob", role: "write" },
  reader: { ...ADMIN, subject: "ann", role: "read" },
};

export type Answer = { status: number; code: string; message: string; text: string; json: Record<string, unknown> };

/** The routes of sandboxes over a catalog in memory, with a node that a test plays. */
export type SandboxApi = {
  plane: ControlPlane;
  deps: SandboxDeps;
  url: string;
  /** What was logged. */
  said: string[];
  /** What the node answers to live calls. */
  onCall: { handle: NodeCallHandler };
  call(method: string, path: string, options?: { by?: string; body?: unknown }): Promise<Answer>;
  /** Creates a sandbox, as ann; the node has it then, and has said these states of it. */
  make(body?: Record<string, unknown>, ...states: Parameters<LeasedBox["say"]>[0][]): Promise<Made>;
  close(): Promise<void>;
};
export type Made = { id: string; path: string; box: LeasedBox };

export async function startSandboxApi(
  options: Partial<SandboxLimits> & Partial<Pick<SandboxDeps, "actionWaitMs" | "callTimeoutMs">> = {},
): Promise<SandboxApi> {
  const { actionWaitMs = 5_000, callTimeoutMs = 5_000, ...limits } = options;
  const clock = systemClock;
  const { catalog } = openMemoryCatalog(clock);
  const said: string[] = [];
  const log = createLog("trace", { write: (line) => void said.push(line) });
  const newId = uuidV7Source(clock, systemRandom);
  const plane = controlPlaneOn({ catalog, clock }, { limits });
  const { sandboxes, audit, records } = plane;
  const nodes = new NodeDirectory({ clock, log, metrics: plane.metrics });
  const events = new SandboxEvents({ records, signals: sandboxes.signals, clock, log });
  const shared = { sandboxes, audit, clock, newId, nodes, events };
  const deps: SandboxDeps = {
    ...shared,
    workspaces: workspacesOn(plane),
    ...imagesOn(plane),
    actionWaitMs,
    callTimeoutMs,
    link: { nodes, gateways: () => ["http://gateway.example"], isAdmitted: async () => true },
    runtime: () => ({ why: "no node is connected" }),
    isDraining: () => false,
  };
  const backends = [{ recognizes: () => true, authenticate: (token: string) => Promise.resolve(CALLERS[token]) }];
  const authenticator = createAuthenticator({ isOn: true, backends, failures: new FailureLimit({ clock }) });
  const routes = routesOf(SANDBOX_ROUTES, { here: deps });
  const { url, close } = await serveApp({ clock, newId, log, metrics: plane.metrics, authenticator, routes });
  const call = callerOf(url);
  const onCall = { handle: nothing };
  nodes.register(NODE, (asked) => onCall.handle(asked));
  return {
    plane,
    deps,
    url,
    said,
    onCall,
    call,
    async make(body = {}, ...states) {
      await plane.report(NODE);
      const { json, text } = await call("POST", "/api/v1/sandboxes", { body: { agent_provider: "codex", ...body } });
      const [hold] = await plane.claim(NODE, 1);
      if (hold === undefined) throw new Error(`no node got it: ${text}`);
      const box = new LeasedBox(plane, hold);
      await box.desiredState();
      for (const state of states) await box.say(state);
      const id = String(json["id"]);
      return { id, path: `/api/v1/sandboxes/${id}`, box };
    },
    async close() {
      events.close();
      plane.fabric.close();
      await close();
      await catalog.close();
    },
  };
}

const nothing: NodeCallHandler = ({ method }) => Promise.reject(new Error(`the node of this test has no ${method}`));

function callerOf(url: string): SandboxApi["call"] {
  return async (method, path, { by = "ann", body } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(by !== "" && { Authorization: `Bearer ${by}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
    const { code = "", message = "" } = (json["error"] as { code?: string; message?: string } | undefined) ?? {};
    return { status: response.status, code, message, text, json };
  };
}

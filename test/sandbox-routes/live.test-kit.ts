import { routesOf } from "../../src/server/route.ts";
import { Transform, type Readable } from "node:stream";
import { ADMIN } from "../../src/auth/access.test-kit.ts";
import { AuditLog } from "../../src/auth/audit.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import type { Caller } from "../../src/auth/caller.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { openMemoryCatalog } from "../../src/catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { EngineError } from "../../src/core/errors.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics, type Metrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { noCredentials } from "../../src/sandbox/control/credentials/directory.test-kit.ts";
import { SandboxEvents } from "../../src/sandbox/control/events/log.ts";
import { addSandboxRow, appendEvents } from "../../src/sandbox/control/events/log.test-kit.ts";
import type { StreamEvent } from "../../src/sandbox/control/events/stream-event.ts";
import { ProcessMachine } from "../../src/sandbox/node/exec/process-machine.test-kit.ts";
import type { NewSandboxEvent } from "../../src/sandbox/contract/event.ts";
import type { NodeCaller } from "../../src/sandbox/contract/link/calls.ts";
import { NodeDirectory } from "../../src/sandbox/control/link/node-directory.ts";
import { liveCallHandler } from "../../src/sandbox/node/exec/live-calls.ts";
import { Sandboxes } from "../../src/sandbox/control/sandboxes.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import { imagesOn } from "../../src/sandbox/control/images/images.test-kit.ts";
import { workspacesOn } from "../../src/sandbox/control/workspaces/workspaces.test-kit.ts";
import type { SandboxDeps } from "../../src/sandbox/control/routes/deps.ts";
import { execStreamRoute, killExecRoute, resumeExecRoute } from "../../src/sandbox/control/routes/exec.ts";
import { sandboxLogsRoute } from "../../src/sandbox/control/routes/logs.ts";
import { PORT_ROUTES } from "../../src/sandbox/control/routes/ports.ts";
import { sendMessageRoute } from "../../src/sandbox/control/routes/session-messages.ts";
import { sessionStreamRoute } from "../../src/sandbox/control/routes/session-stream.ts";
import { getSessionRoute, interruptSessionRoute } from "../../src/sandbox/control/routes/sessions.ts";
import { shellRoute } from "../../src/sandbox/control/routes/shell.ts";
import { sandboxStreamRoute } from "../../src/sandbox/control/routes/stream.ts";

/** The routes of what lives in sandboxes, over records and one machine of processes; every server is one more process. */
export type LiveWorld = {
  catalog: CatalogDatabase;
  machine: ProcessMachine;
  nodes: CutNodes;
  /** Lines that commands were to log. */
  lines: string[];
  audit: AuditLog;
  append(id: string, events: readonly NewSandboxEvent[]): Promise<void>;
  newSandbox(options?: Parameters<typeof addSandboxRow>[2]): Promise<string>;
  startServer(): Promise<LiveServer>;
  close(): Promise<void>;
};
export type LiveServer = { url: string; events: SandboxEvents; close(): Promise<void> };

const CALLERS: Readonly<Record<string, Caller>> = {
  t: { ...ADMIN, subject: "t", role: "write" },
  reader: { ...ADMIN, subject: "t", role: "read" },
  other: { ...ADMIN, subject: "other", role: "write" },
  admin: ADMIN,
};
const newId = uuidV7Source(systemClock, systemRandom);

/** Calls to the machine over connections that break, after so many bytes of an answer. */
export class CutNodes implements NodeCaller {
  readonly handler: ReturnType<typeof liveCallHandler>;
  /** Of the next connections; none: they last. */
  cuts: number[] = [];
  calls: string[] = [];
  isAway = false;

  constructor(handler: ReturnType<typeof liveCallHandler>) {
    this.handler = handler;
  }

  async call(...[nodeId, call]: Parameters<NodeCaller["call"]>) {
    this.calls.push(call.method);
    if (this.isAway) throw new EngineError("unavailable", `node ${nodeId} is not connected`);
    const reply = await this.handler(call);
    const cut = call.method.startsWith("exec") ? this.cuts.shift() : undefined;
    if (cut === undefined || reply.body === undefined) return reply;
    return { ...reply, body: cutAfter(reply.body, cut) };
  }
}

function cutAfter(body: Readable, bytes: number): Readable {
  let left = bytes;
  const cutting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const part = chunk.subarray(0, left);
      left -= part.length;
      if (left > 0) return done(null, part);
      this.push(part);
      // What was read before is handed over first, as a socket does.
      setImmediate(() => this.destroy(new Error("the connection broke")));
      body.destroy();
      return undefined;
    },
  });
  body.on("error", (error) => cutting.destroy(error));
  cutting.on("close", () => body.destroy());
  return body.pipe(cutting);
}

export async function startLiveWorld(
  catalog: CatalogDatabase = openMemoryCatalog(systemClock).catalog,
): Promise<LiveWorld> {
  const { records } = catalog;
  const machine = new ProcessMachine();
  const lines: string[] = [];
  const common = { clock: systemClock, log: silentLog, newId, metrics: createMetrics() };
  const nodes = new CutNodes(
    liveCallHandler({
      ...common,
      machineOf: () => machine,
      onLine: (_, { stream, line }) => void lines.push(`${stream} ${line}`),
      trafficOf: () => ({ rxBytes: 0, txBytes: 0 }),
    }),
  );
  const audit = new AuditLog(records, newId);
  const closers: (() => Promise<void>)[] = [];
  const world: LiveWorld = {
    catalog,
    machine,
    nodes,
    lines,
    audit,
    async append(id, events) {
      await appendEvents(records, id, events);
      await catalog.signals.send("sandbox_events", id);
    },
    async newSandbox(options) {
      const id = newId();
      await addSandboxRow(records, id, options);
      return id;
    },
    async startServer() {
      const server = await serve(world, common);
      closers.push(() => server.close());
      return server;
    },
    async close() {
      await machine.stop();
      for (const close of closers) await close();
      await catalog.close();
    },
  };
  return world;
}

type Common = { clock: typeof systemClock; log: typeof silentLog; newId: typeof newId; metrics: Metrics };

async function serve({ catalog, nodes, audit }: LiveWorld, common: Common): Promise<LiveServer> {
  const repositories = { hosts: [], plainHttp: false };
  const limits = {
    maxPerTenant: 100,
    repositories,
    providerUrls: {},
    createsPerMinute: 100,
    createBurst: 100,
    pendingTimeoutMs: 1_000,
    eventsQuotaBytes: 64 * 1024 * 1024,
    volumes: { perOwner: 100, mbPerOwner: 1_048_576 },
    volumesKeptMs: undefined,
  };
  const fabric = {
    prepare: () => {
      throw new Error("nothing is placed here");
    },
  };
  const { records, signals } = catalog;
  const credentials = noCredentials;
  const sandboxes = new Sandboxes({
    ...common,
    records,
    signals,
    audit,
    limits,
    fabric,
    credentials,
    envSealing: undefined,
  });
  const events = new SandboxEvents({ ...common, records, signals: sandboxes.signals });
  const deps: SandboxDeps = {
    ...common,
    sandboxes,
    workspaces: workspacesOn({ records, audit, sandboxes }),
    ...imagesOn({ records, audit, fabric }),
    nodes,
    link: { nodes: new NodeDirectory(common), gateways: () => [], isAdmitted: async () => true },
    events,
    audit,
    actionWaitMs: 1_000,
    callTimeoutMs: 5_000,
    runtime: () => "here",
    isDraining: () => false,
  };
  const backends = [{ recognizes: () => true, authenticate: (token: string) => Promise.resolve(CALLERS[token]) }];
  const authenticator = createAuthenticator({
    isOn: true,
    backends,
    workers: undefined,
    failures: new FailureLimit(common),
  });
  const routes = routesOf(
    [
      sandboxStreamRoute,
      sandboxLogsRoute,
      execStreamRoute,
      resumeExecRoute,
      killExecRoute,
      shellRoute,
      getSessionRoute,
      sendMessageRoute,
      interruptSessionRoute,
      sessionStreamRoute,
      ...PORT_ROUTES,
    ],
    { here: deps },
  );
  const { url, close } = await serveApp({ ...common, authenticator, routes });
  return {
    url,
    events,
    close: async () => {
      events.close();
      await close();
    },
  };
}

export type SeenEvent = { id: string | undefined; event: StreamEvent };

/** A client of a stream of events, which reads as much as it likes. */
export class EventClient {
  readonly headers: Headers;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #leaving: AbortController;
  #rest = Buffer.alloc(0);

  private constructor(response: Response, leaving: AbortController) {
    this.headers = response.headers;
    if (response.body === null) throw new Error("the answer has no body");
    this.#reader = response.body.getReader();
    this.#leaving = leaving;
  }

  static async open(url: string, init: RequestInit & { by?: string } = {}): Promise<EventClient> {
    const leaving = new AbortController();
    const { by = "t", headers, ...rest } = init;
    const response = await fetch(url, {
      ...rest,
      headers: { Authorization: `Bearer ${by}`, ...(headers as Record<string, string>) },
      signal: leaving.signal,
    });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return new EventClient(response, leaving);
  }

  /** Reads events until one is the last that is wanted, or the stream ends. */
  async until(isLast: (seen: SeenEvent) => boolean): Promise<SeenEvent[]> {
    const seen: SeenEvent[] = [];
    for (;;) {
      const one = await this.#next();
      if (one === undefined) return seen;
      seen.push(one);
      if (isLast(one)) return seen;
    }
  }

  all(): Promise<SeenEvent[]> {
    return this.until(() => false);
  }

  /** Reads so many bytes, or until the last event that is to come, leaves, and says which events it has had whole. */
  async take(bytes: number, isLast: (seen: SeenEvent) => boolean = () => false): Promise<SeenEvent[]> {
    const seen: SeenEvent[] = [];
    for (let had = 0; had < bytes && !seen.some(isLast);) {
      const step = await this.#reader.read();
      if (step.done) break;
      const part = step.value.subarray(0, bytes - had);
      had += part.length;
      this.#rest = Buffer.concat([this.#rest, part]);
      for (let one = this.#cut(); one !== undefined; one = this.#cut()) if (one !== "nothing") seen.push(one);
    }
    this.leave();
    return seen;
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #next(): Promise<SeenEvent | undefined> {
    for (;;) {
      const one = this.#cut();
      if (one !== undefined && one !== "nothing") return one;
      if (one === "nothing") continue;
      const step = await this.#reader.read();
      if (step.done) return undefined;
      this.#rest = Buffer.concat([this.#rest, step.value]);
    }
  }

  #cut(): SeenEvent | "nothing" | undefined {
    const end = this.#rest.indexOf("\n\n");
    if (end < 0) return undefined;
    const text = this.#rest.toString("utf8", 0, end);
    this.#rest = this.#rest.subarray(end + 2);
    const data = /^data: (.*)$/m.exec(text)?.[1];
    if (data === undefined) return "nothing";
    return { id: /^id: (.*)$/m.exec(text)?.[1], event: JSON.parse(data) as StreamEvent };
  }
}

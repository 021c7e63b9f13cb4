import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect } from "vitest";
import { listMounts, sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { fieldOf, leftLoopFiles, SandboxClient, untilPutAway } from "./sandboxes.test-kit.ts";
import { TIMEOUT_MS } from "./server.test-kit.ts";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

/** `engine worker run`, in a process of its own. */
type Daemon = { log(): string; end(signal: NodeJS.Signals): Promise<number | null> };

type DaemonOptions = {
  home: string;
  /** Of the server. */
  url: string;
  token: string;
  env?: Readonly<Record<string, string>>;
};

/** A node of that server; resolves when it takes sandboxes. */
async function startDaemon({ home, url, token, env = {} }: DaemonOptions): Promise<Daemon> {
  const all = {
    ...cleanEnv(),
    ENGINE_HOME: home,
    ENGINE_SERVER_URL: url,
    ENGINE_WORKER_TOKEN: token,
    ENGINE_WORKER_INSECURE: "1",
    ENGINE_SANDBOX_WARM_POOL: "0",
    ...env,
  };
  const argv = [ENTRY, "worker", "run", "--accept", "sandbox"];
  const child = endsWithThisProcess(spawn(process.execPath, argv, { env: all, stdio: ["ignore", "pipe", "pipe"] }));
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (log += text));
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const isTaking = () => log.includes("taking sandboxes");
  for (let waitedMs = 0; !isTaking() && waitedMs < 60_000; waitedMs += 50) await pause(50);
  if (!isTaking()) {
    child.kill("SIGKILL");
    throw new Error(`the daemon does not take sandboxes; its log:\n${log}`);
  }
  return {
    log: () => log,
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}

/** What a node introduces itself with. */
async function nodeToken(engine: Engine): Promise<string> {
  const made = await fetch(`${engine.url}/v1/workers`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "node-1", capabilities: ["sandbox"] }),
  });
  return String(fieldOf(await made.json(), "token"));
}

export type ServerWithDaemon = {
  readonly client: SandboxClient;
  readonly url: string;
  /** Of the server. */
  log(): string;
  readonly daemon: Daemon;
  /** Of the daemon, once it was ended. */
  start(): Promise<void>;
};

/**
 * A server without sandboxes of its own, and a node in a process of its own that has them, for the tests of the block in
 * which this is called. In the end nothing of them may be left on the computer: tests delete what they make.
 */
export function serverWithDaemon(
  env: () => { server?: Readonly<Record<string, string>>; node?: Readonly<Record<string, string>> },
): ServerWithDaemon {
  let places: Awaited<ReturnType<typeof temporaryHome>>[] = [];
  let engine: Engine;
  let daemon: Daemon;
  let token: string;
  const homeOfNode = () => places[1]?.home ?? "";
  const start = async (): Promise<void> => {
    daemon = await startDaemon({ home: homeOfNode(), url: engine.url, token, env: env().node ?? {} });
  };
  beforeAll(async () => {
    const [server, node] = [await temporaryHome(), await temporaryHome()];
    places = [server, node];
    engine = await startEngine({ home: server.home, env: { ...env().server, ENGINE_SANDBOX_RUNTIME: "off" } });
    token = await nodeToken(engine);
    await start();
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      await untilPutAway(homeOfNode());
      expect(await daemon.end("SIGTERM")).toBe(0);
      expect((await listMounts(homeOfNode())).map(({ at }) => at)).toEqual([]);
      expect(await leftLoopFiles(homeOfNode())).toEqual([]);
    } finally {
      await daemon.end("SIGKILL");
      await engine.stop("SIGKILL");
      await sweepMounts(homeOfNode());
      await Promise.all(places.map(({ remove }) => remove()));
    }
  }, TIMEOUT_MS);
  return {
    client: new SandboxClient(() => engine),
    get url() {
      return engine.url;
    },
    log: () => engine.log(),
    get daemon() {
      return daemon;
    },
    start,
  };
}

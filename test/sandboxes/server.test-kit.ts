import { afterAll, beforeAll, expect } from "vitest";
import { listMounts, sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { fieldOf, leftLoopFiles, SandboxClient, untilPutAway } from "./sandboxes.test-kit.ts";

/** Of a test with a real sandbox: it takes seconds, and many where much else runs. */
export const TIMEOUT_MS = 120_000;

export type SandboxServer = {
  readonly client: SandboxClient;
  readonly url: string;
  /** The folder of all that it stores. */
  readonly home: string;
  log(): string;
  /** After `stop`: on the same home. */
  start(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<unknown>;
};

/**
 * A server with real sandboxes for the tests of the block in which this is called. It prepares no machines unless `env`
 * says so. `program`: as in `EngineOptions`. After the tests all sandboxes are deleted, and nothing of them may be left on the computer.
 */
export function sandboxServer(
  env: () => Readonly<Record<string, string>> = () => ({}),
  program?: () => readonly string[],
): SandboxServer {
  let place: Awaited<ReturnType<typeof temporaryHome>>;
  let engine: Engine;
  const client = new SandboxClient(() => engine);
  const start = async (): Promise<void> => {
    const started = { ENGINE_SANDBOX_WARM_POOL: "0", ...env() };
    engine = await startEngine({ home: place.home, env: started, ...(program && { program: program() }) });
  };
  beforeAll(async () => {
    place = await temporaryHome();
    await start();
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      await deleteAll(client);
      await untilPutAway(place.home);
      await engine.stop();
      expect((await listMounts(place.home)).map(({ at }) => at)).toEqual([]);
      expect(await leftLoopFiles(place.home)).toEqual([]);
    } finally {
      await engine.stop("SIGKILL");
      await sweepMounts(place.home);
      await place.remove();
    }
  }, TIMEOUT_MS);
  return {
    client,
    get url() {
      return engine.url;
    },
    get home() {
      return place.home;
    },
    log: () => engine.log(),
    start,
    stop: (signal) => engine.stop(signal),
  };
}

async function deleteAll(client: SandboxClient): Promise<void> {
  const { json } = await client.call("GET", "");
  for (const one of Array.isArray(json) ? json : []) {
    const id = String(fieldOf(one, "id"));
    await client.call("DELETE", `/${id}`);
    await client.reaches(id, "gone");
  }
}

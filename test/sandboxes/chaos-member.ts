import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ID_COUNT } from "../../src/sandbox/runtime/runtime.ts";
import { systemClock } from "../../src/core/clock.ts";
import { answers } from "../../src/deploy/local/probe.ts";
import { Program } from "../cluster/program.ts";
import { cleanEnv } from "../support/engine.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

type MemberOptions = {
  name: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Where its log and its home are. */
  folder: string;
  /** Whether it serves, by what it has said since it was started. */
  isReady: (said: string) => boolean | Promise<boolean>;
};

export type Span = { fromMs: number; toMs: number };

/** A process of a cluster, that can be killed and started again, and when it was away. */
export class Member {
  readonly name: string;
  readonly program: Program;
  readonly #outages: Span[] = [];
  readonly #logFile: string;
  #downSinceMs: number | undefined;
  #upSinceMs = Infinity;
  #logFrom = 0;

  constructor({ name, args, env, folder, isReady }: MemberOptions) {
    this.name = name;
    this.#logFile = join(folder, `${name}.log`);
    const home = join(folder, name);
    mkdirSync(home);
    this.program = new Program({
      name,
      command: () => [process.execPath, "--disable-warning=ExperimentalWarning", ENTRY, ...args],
      env: { ...cleanEnv(), ...env, ENGINE_HOME: home },
      log: this.#logFile,
      stopSignal: "SIGTERM",
      stopTimeoutMs: 30_000,
      isReady: async () => await isReady(readFileSync(this.#logFile).subarray(this.#logFrom).toString()),
    });
  }

  /** When it began to serve; infinite while it does not. */
  get upSinceMs(): number {
    return this.#upSinceMs;
  }

  /** Resolves when it serves. */
  async start(): Promise<void> {
    this.#logFrom = statSync(this.#logFile, { throwIfNoEntry: false })?.size ?? 0;
    await this.program.start();
    if (this.#downSinceMs !== undefined) this.#outages.push({ fromMs: this.#downSinceMs, toMs: performance.now() });
    this.#downSinceMs = undefined;
    this.#upSinceMs = performance.now();
  }

  async kill(): Promise<void> {
    this.#downSinceMs ??= performance.now();
    this.#upSinceMs = Infinity;
    await this.program.kill();
  }

  /** When it was away, of the times that were not over then; what goes on, until now. */
  awaySince(sinceMs: number): Span[] {
    const now = this.#downSinceMs === undefined ? [] : [{ fromMs: this.#downSinceMs, toMs: performance.now() }];
    return [...this.#outages, ...now].filter(({ toMs }) => toMs >= sinceMs);
  }
}

/** A server that answers requests, on a port of its own. */
export async function makeServer(name: string, folder: string, env: Readonly<Record<string, string>>) {
  const address = `127.0.0.1:${await freePort()}`;
  const url = `http://${address}`;
  const isReady = () => answers(`${url}/health`, systemClock);
  return {
    member: new Member({
      name,
      args: ["serve", "--addr", address],
      env: { ENGINE_GRPC_ADDR: "off", ...env },
      folder,
      isReady,
    }),
    url,
  };
}

/** Of ids, which a node gives to sandboxes. */
export const NODE_RANGES = 64;

/** A node of sandboxes. `home` is where it has them; their ids on the host are its ranges from `firstHostId` on. */
export type NodeMember = Member & { readonly home: string; readonly firstHostId: number };

export type NodePlace = { name: string; folder: string; serverUrl: string; token: string; firstHostId: number };

export function makeNode(place: NodePlace, settings: Readonly<Record<string, string>>): NodeMember {
  const { name, folder, serverUrl, token, firstHostId } = place;
  const home = join(folder, name, "sandboxes");
  const env = {
    ...settings,
    ENGINE_SANDBOX_HOME: home,
    ENGINE_SERVER_URL: serverUrl,
    ENGINE_WORKER_TOKEN: token,
    ENGINE_WORKER_INSECURE: "1",
    ENGINE_SANDBOX_FIRST_HOST_ID: String(firstHostId),
    ENGINE_SANDBOX_ID_RANGES: String(NODE_RANGES),
    ENGINE_SANDBOX_NODE_LABELS: `name=${name}`,
  };
  const args = ["worker", "run", "--accept", "sandbox"];
  const member = new Member({ name, args, env, folder, isReady: (said) => said.includes("taking sandboxes") });
  return Object.assign(member, { home, firstHostId });
}

/** Above the ids of other tests; of two runs at a time each has its own. */
export function firstHostIdOf(node: number): number {
  const MOST_NODES = 8;
  return 2_150_000_000 + ((process.pid % 40) * MOST_NODES + node) * NODE_RANGES * ID_COUNT;
}

import { untilPutAway } from "../../test/sandboxes/sandboxes.test-kit.ts";
import { lacking, type CapabilityName } from "../../src/core/capabilities.test-kit.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { SandboxClient } from "./client.ts";

/** What a machine must have for sandboxes with a disk of their own, and for the same made by hand. */
export const SANDBOX_NEEDS: readonly CapabilityName[] = [
  "root",
  "mounts",
  "loop devices",
  "bwrap",
  "runc",
  "mkfs.ext4",
  "perl",
];

/** Throws a sentence, for the benchmark of that name, where this machine lacks one of them. */
export function requireSandboxes(name: string, ...more: readonly CapabilityName[]): void {
  const problem = lacking(...SANDBOX_NEEDS, ...more);
  if (problem !== undefined) throw new Error(`${name} needs sandboxes: ${problem}`);
}

/** A benchmark makes more sandboxes in a minute than people do, and idle ones take less than they may. */
const ROOMY = {
  ENGINE_SANDBOX_MEMORY_BYTES: "1TiB",
  ENGINE_SANDBOX_DISK_BYTES: "10TiB",
  ENGINE_SANDBOX_CPUS: "1000",
  ENGINE_SANDBOX_CREATES_PER_MINUTE: "100000",
  ENGINE_SANDBOX_MAX_PER_TENANT: "10000",
};

export type SandboxServerOptions = { warmPool: number; env?: Readonly<Record<string, string>> };

export type SandboxServer = {
  server: BenchServer;
  client: SandboxClient;
  /** Its sandboxes must be deleted before. */
  stop: () => Promise<void>;
};

/** A server with sandboxes. */
export async function startSandboxServer({ warmPool, env = {} }: SandboxServerOptions): Promise<SandboxServer> {
  const server = await startBenchServer({ env: { ENGINE_SANDBOX_WARM_POOL: String(warmPool), ...ROOMY, ...env } });
  const stop = () => untilPutAway(server.home).finally(() => server.stop());
  return { server, client: new SandboxClient(server.url), stop };
}

/** The same, until `use` is done. */
export async function withServer<T>(
  options: SandboxServerOptions,
  use: (server: BenchServer, client: SandboxClient) => Promise<T>,
): Promise<T> {
  const { server, client, stop } = await startSandboxServer(options);
  try {
    return await use(server, client);
  } finally {
    await stop();
  }
}

const SETTLED_MS = 750;

/** Waits until a server has removed a sandbox and prepared the next machine, so that no other side pays for it. */
export function settled(): Promise<void> {
  return sleep(systemClock, SETTLED_MS);
}

import { untilPutAway } from "../../test/sandboxes/sandboxes.test-kit.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { SandboxClient } from "./client.ts";

/** A benchmark makes more sandboxes in a minute than people do, and idle ones take less than they may. */
const ROOMY = {
  ENGINE_SANDBOX_MEMORY_BYTES: "1TiB",
  ENGINE_SANDBOX_DISK_BYTES: "10TiB",
  ENGINE_SANDBOX_CPUS: "1000",
  ENGINE_SANDBOX_CREATES_PER_MINUTE: "100000",
  ENGINE_SANDBOX_MAX_PER_TENANT: "10000",
};

export type SandboxServerOptions = { warmPool: number; env?: Readonly<Record<string, string>> };

/** A server with sandboxes, until `use` is done; it has to have deleted its sandboxes. */
export async function withServer<T>(
  { warmPool, env = {} }: SandboxServerOptions,
  use: (server: BenchServer, client: SandboxClient) => Promise<T>,
): Promise<T> {
  const server = await startBenchServer({ env: { ENGINE_SANDBOX_WARM_POOL: String(warmPool), ...ROOMY, ...env } });
  try {
    return await use(server, new SandboxClient(server.url));
  } finally {
    await untilPutAway(server.home).finally(() => server.stop());
  }
}

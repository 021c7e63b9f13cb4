import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MeddlingProxy } from "../../src/io/objectstore/s3/meddling-proxy.test-kit.ts";
import type { Role } from "../../src/deploy/local/layout.ts";
import { startLocalCluster, type LocalCluster, type LocalClusterOptions } from "./local-cluster.ts";

/** A cluster that is given up at the end, with what stands between it and its store. */
export type TemporaryCluster = LocalCluster & {
  /** Where its data and its logs are. */
  folder: string;
  /** Kills everything. The folder goes too, unless it is to be looked at. */
  giveUp(folder?: "kept"): Promise<void>;
};

export type TemporaryClusterOptions = Omit<LocalClusterOptions, "folder" | "storeEndpoint"> & {
  /** Starts what stands between the processes of a role and the S3 server; undefined where nothing does. */
  proxy?: (endpoint: string, role: Role) => Promise<MeddlingProxy | undefined>;
};

export async function startTemporaryCluster(options: TemporaryClusterOptions): Promise<TemporaryCluster> {
  const folder = mkdtempSync(join(tmpdir(), "engine-cluster-"));
  const proxies = new Set<MeddlingProxy>();
  const closeProxies = async () => {
    for (const proxy of proxies) await proxy.close();
  };
  const storeEndpoint = async (endpoint: string, role: Role) => {
    const proxy = await options.proxy?.(endpoint, role);
    if (proxy === undefined) return endpoint;
    proxies.add(proxy);
    return proxy.endpoint;
  };
  try {
    const cluster = await startLocalCluster({ ...options, folder, storeEndpoint });
    return {
      ...cluster,
      folder,
      giveUp: async (what) => {
        for (const program of cluster.programs.values()) await program.kill();
        await closeProxies();
        if (what !== "kept") rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
      },
    };
  } catch (error) {
    await closeProxies();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    throw error;
  }
}

import { loadConfig } from "../../src/config/load.ts";
import { Cleanup } from "../../src/core/lifecycle.ts";
import { createLog } from "../../src/core/log.ts";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { createParts } from "../../roles/parts.ts";
import { planOf } from "../../roles/plan.ts";
import { buildServices } from "../../roles/run.ts";

export type RunningServices = {
  url: string;
  /** Of the services, in the order in which they started. */
  names: string[];
  stop(): Promise<void>;
};

/**
 * The services of a process with these variables, running in this one. Where these name no catalog, they are planned
 * for a cluster and then put on a catalog of this machine, which serves one process as well.
 */
export async function startServices(env: Record<string, string>): Promise<RunningServices> {
  const rows = FEATURE_ROWS;
  const settings = { ENGINE_GRPC_ADDR: "off", ...env };
  const loaded = loadConfig({ env: settings, rows });
  const clustered = loadConfig({ env: { ENGINE_CATALOG_URL: "postgres://db/engine", ...settings }, rows });
  const lines: string[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(line) });
  const cleanup = new Cleanup();
  const closers = [() => cleanup.run()];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).toReversed()) await close();
  };
  try {
    const parts = createParts({ ...loaded, isLocal: false }, log, cleanup);
    const services = await buildServices(planOf(clustered), parts, { host: "127.0.0.1", port: 0 });
    for (const service of services) {
      await service.run();
      closers.push(() => service.stop());
    }
    const url = /"url":"(http:[^"]+)"/.exec(lines.join(""))?.[1];
    if (url === undefined) throw new Error(`no address in ${lines.join("")}`);
    return { url, names: services.map(({ name }) => name), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

import { hostname } from "node:os";
import { VERSION } from "../src/core/version.ts";
import { HeartBeat } from "../src/servers/heart-beat.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Storage } from "./storage.ts";

/** Announces this process to the others on the catalog, before it does anything there, and takes leave at its end. */
export async function announceServer(
  { roles }: Plan,
  { clock, log, newId, cleanup }: Parts,
  { catalog, records }: Storage,
): Promise<HeartBeat> {
  const self = { id: newId(), name: hostname(), roles: roles.join(","), version: VERSION };
  const heartBeat = new HeartBeat({
    records,
    upkeep: catalog.upkeep,
    clock,
    log,
    self,
    // As an operator would end it: what it has accepted is still finished, as far as that goes.
    onOutdated: () => void process.kill(process.pid, "SIGTERM"),
  });
  await heartBeat.announce();
  cleanup.defer(() => heartBeat.leave());
  return heartBeat;
}

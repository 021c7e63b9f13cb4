import { join } from "node:path";
import type { Confinement } from "../src/io/confinement/confinement.ts";
import { configuredConfinement } from "../src/io/confinement/open-confinement.ts";
import { valuesOf } from "../src/config/option.ts";
import { QUERY_OPTIONS } from "../src/query/options.ts";
import type { Parts } from "./parts.ts";

const opening = new WeakMap<Parts, Promise<Confinement>>();

/**
 * How the operating system keeps processes in that run queries and read files; tried, and logged, once. It takes the time
 * of starting a process, so whoever will need it asks early.
 */
export function confinementOf(parts: Parts): Promise<Confinement> {
  const known = opening.get(parts);
  if (known !== undefined) return known;
  const found = tryConfinement(parts);
  // Whoever needs it hears of it then.
  found.catch(() => undefined);
  opening.set(parts, found);
  return found;
}

async function tryConfinement({ config, log }: Parts): Promise<Confinement> {
  const confinement = await configuredConfinement(valuesOf(QUERY_OPTIONS, config).queryConfinement, {
    log,
    tempDir: join(config.home, "tmp"),
  });
  log[confinement.isOn ? "info" : "warn"]({ confinement: confinement.name }, "query confinement");
  return confinement;
}

import { join } from "node:path";
import type { Confinement } from "../src/io/confinement/confinement.ts";
import { configuredConfinement } from "../src/io/confinement/open-confinement.ts";
import type { Parts } from "./parts.ts";

const opened = new WeakMap<Parts, Confinement>();

/** How the operating system keeps processes in that run queries and read files; tried, and logged, once. */
export function confinementOf(parts: Parts): Confinement {
  const known = opened.get(parts);
  if (known !== undefined) return known;
  const { config, log } = parts;
  const confinement = configuredConfinement(config.queryConfinement, { log, tempDir: join(config.home, "tmp") });
  log[confinement.isOn ? "info" : "warn"]({ confinement: confinement.name }, "query confinement");
  opened.set(parts, confinement);
  return confinement;
}

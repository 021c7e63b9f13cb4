import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";

/** Names a file that a confined process must not be able to read. */
export const CANARY_VARIABLE = "ENGINE_QUERY_CHILD_CANARY";

/**
 * What a confined process does before anything else: it tries to leave. Throws when it can, and when it cannot do what
 * it has to. `in` and `out` are side by side, in a folder of which it sees nothing else.
 */
export function tryFence({ inside, outside, canary }: { inside: string; outside: string; canary?: string }): void {
  const ownFolder = dirname(inside);
  const server = `/proc/${process.ppid}`;
  mustFail(`list ${ownFolder}`, () => readdirSync(ownFolder));
  mustFail(`list ${dirname(ownFolder)}`, () => readdirSync(dirname(ownFolder)));
  mustFail(`write into ${inside}`, () => writeFileSync(join(inside, "fence"), ""));
  mustFail(`read the environment of the server`, () => readFileSync(join(server, "environ")), HIDDEN);
  // Is refused only while there is such a process: so the one above is there, and hidden.
  mustFail(`signal the server`, () => process.kill(process.ppid, 0));
  if (canary !== undefined) mustFail(`read ${canary}`, () => readFileSync(canary));
  for (const name of readdirSync(inside)) readFileSync(join(inside, name));
  const file = join(outside, "fence");
  writeFileSync(file, "text");
  readFileSync(file);
  rmSync(file);
}

const REFUSALS: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM"]);

/** Where `/proc` is mounted with `hidepid` (systemd's `ProtectProc=invisible`), processes that one may not trace are absent. */
const HIDDEN: ReadonlySet<string | undefined> = new Set([...REFUSALS, "ENOENT"]);

function mustFail(attempt: string, run: () => unknown, refusals = REFUSALS): void {
  try {
    run();
  } catch (error) {
    if (refusals.has(systemCodeOf(error))) return;
    throw new Error(`it is not known whether a confined process can ${attempt}`, { cause: error });
  }
  throw new Error(`a confined process can ${attempt}`);
}

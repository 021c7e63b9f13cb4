import { z } from "zod";
import { roleIncludes, type Caller } from "../auth/caller.ts";
import type { CallerRole } from "../config/kinds.ts";
import { EngineError } from "../core/errors.ts";

/** What is the same for all jobs of a kind. A module that runs jobs declares its kinds; a role puts them together. */
export type JobKind = {
  /** Lower-case words with `_`, parted by dots: `query.export`. */
  name: string;
  /** Kinds of this name are of this kind too: what the specification calls otherwise. */
  aliases?: readonly string[];
  /** What a payload must be. Never a secret: those are credentials. */
  payload: z.ZodType;
  /** The least role of those who may enqueue one over HTTP; `nobody` for what only this program does. */
  enqueue: CallerRole | "nobody";
  /** Who may claim one: this program's own dispatcher, nodes with a worker token, or both. */
  claim: "engine" | "workers" | "both";
  /** Workers that may have jobs of that kind may have these, too. */
  comesWith?: string;
  /** Only workers that an admin admitted for it may have such jobs, whoever owns them. */
  needsAdmission?: true;
  /** Whether a job must say which database it is about. */
  needsDatabase?: boolean;
  /** How long a holder may be silent; the operator's default otherwise. */
  leaseMs?: number;
  maxAttempts?: number;
  /** The pause after the first failure; it doubles with each. */
  backoffMs?: number;
};

/** Kinds that begin so are the users' own: their programs enqueue them, and claim them with a worker token. */
export const OWN_KIND_PREFIX = "x.";

/**
 * Kinds that the specification names and that nothing runs yet. Workers may ask for their jobs, and wait: a node that is
 * set up for them now need not be touched when there are some.
 */
export const PLANNED_KINDS: readonly JobKind[] = [
  { name: "source_sync", aliases: ["data_source_sync"], payload: z.json(), enqueue: "nobody", claim: "workers" },
];

/** Whether a kind of job may be called so. */
export function isKindName(name: string): boolean {
  return name.length <= MAX_NAME_CHARS && NAME.test(name);
}

const NAME = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/;
const MAX_NAME_CHARS = 100;

export class JobKinds {
  readonly #byName = new Map<string, JobKind>();

  constructor(kinds: readonly JobKind[]) {
    for (const kind of kinds) for (const name of [kind.name, ...(kind.aliases ?? [])]) this.#byName.set(name, kind);
  }

  /** Throws `invalid_parameter` for a name that no kind has. */
  get(name: string): JobKind {
    const known = this.#byName.get(name) ?? ownKind(name);
    if (known !== undefined) return known;
    const names = [...this.#byName.values()].map((kind) => kind.name);
    const all = [...new Set(names), `${OWN_KIND_PREFIX}<your own>`].join(", ");
    throw new EngineError("invalid_parameter", `there is no kind of job ${JSON.stringify(name)}; there are ${all}`);
  }

  has(name: string): boolean {
    return this.#byName.has(name) || ownKind(name) !== undefined;
  }

  /** The names under which jobs wait. Throws as `get` does, and `forbidden` for a kind that workers do not get. */
  claimable(names: readonly string[], by: "engine" | "workers"): Set<string> {
    return new Set(
      names.map((name) => {
        const kind = this.get(name);
        if (kind.claim === by || kind.claim === "both") return kind.name;
        throw new EngineError("forbidden", `jobs of the kind ${kind.name} are not for ${by}`);
      }),
    );
  }
}

/** Whether one of the names stands for jobs of that kind. */
export function namesKind(names: readonly string[], { name, comesWith = name }: JobKind): boolean {
  return names.includes(name) || names.includes(comesWith);
}

/** Throws `forbidden`. */
export function checkMayEnqueue({ name, enqueue }: JobKind, { role }: Pick<Caller, "role">): void {
  if (enqueue !== "nobody" && roleIncludes(role, enqueue)) return;
  const who = enqueue === "nobody" ? "only the engine does" : `this needs the role ${enqueue}`;
  throw new EngineError("forbidden", `jobs of the kind ${name} are not enqueued this way: ${who}`);
}

function ownKind(name: string): JobKind | undefined {
  if (!name.startsWith(OWN_KIND_PREFIX) || !isKindName(name)) return undefined;
  return { name, payload: z.json(), enqueue: "write", claim: "workers" };
}

import { join } from "node:path";
import type { Random } from "../../core/random.ts";
import { readIfThere, writeDurably } from "../../core/durable-file.ts";
import { compareVersions, VERSION_TEXT } from "../release/version-order.ts";

/**
 * What is remembered of releases between commands: the newest that was ever seen, so that nobody can pass an older one
 * off as the newest, and when the user was last told.
 */
export type UpdateMemory = { newest?: SeenRelease; nudgedAtMs?: number };
export type SeenRelease = { version: string; releasedAtMs: number };

function memoryFile(home: string): string {
  return join(home, "update.json");
}

/** Nothing where there is no file, or one that is damaged: it is written anew by the next command. */
export async function readMemory(home: string): Promise<UpdateMemory> {
  const text = await readIfThere(memoryFile(home));
  if (text === undefined) return {};
  try {
    return memoryIn((JSON.parse(text) ?? {}) as Record<string, unknown>);
  } catch {
    return {};
  }
}

function memoryIn({ newest, nudgedAtMs }: Record<string, unknown>): UpdateMemory {
  const seen = seenIn((newest ?? {}) as Record<string, unknown>);
  return { ...(seen && { newest: seen }), ...(isMoment(nudgedAtMs) && { nudgedAtMs }) };
}

function seenIn({ version, releasedAtMs }: Record<string, unknown>): SeenRelease | undefined {
  const isVersion = typeof version === "string" && VERSION_TEXT.test(version);
  return isVersion && isMoment(releasedAtMs) ? { version, releasedAtMs } : undefined;
}

/** What a `Date` can be made of. */
function isMoment(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= 8.64e15;
}

export async function writeMemory(home: string, memory: UpdateMemory, random: Random): Promise<void> {
  await writeDurably(memoryFile(home), `${JSON.stringify(memory)}\n`, 0o600, random);
}

/** With a release that was seen now. */
export function remembering(memory: UpdateMemory, seen: SeenRelease): UpdateMemory {
  const { newest } = memory;
  return newest !== undefined && compareVersions(newest.version, seen.version) >= 0
    ? memory
    : { ...memory, newest: seen };
}

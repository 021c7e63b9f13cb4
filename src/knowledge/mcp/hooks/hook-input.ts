import { readInput } from "../../../client/prompt.ts";
import type { ContextDeps } from "../../../client/context.ts";

/** What a coding agent says to a hook: an object, whose members may be anything. */
export type HookInput = Readonly<Record<string, unknown>>;

export async function hookInput(deps: Pick<ContextDeps, "stdin">): Promise<HookInput> {
  const value: unknown = JSON.parse(await readInput({ deps }, "a hook"));
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Empty where it is no text, or a longer one. */
export function textOf(value: unknown, maxChars: number): string {
  return typeof value === "string" && value.length <= maxChars ? value : "";
}

export const PATH_CHARS = 4_096;

import type { FlushOutcome } from "../catalog.ts";
import { checkSteps, stepsThatFit, type SourcePosition, type SourceStep } from "../input-positions.ts";

/**
 * The steps of one commit, source by source. Where a source is, only the database knows: the first step of each is taken
 * at its word and sent along, and the steps after it must follow from it.
 */
export class SourceChain {
  readonly #net = new Map<string, SourceStep>();

  /** What a flush gets that does not follow from those before it. Throws for a step that cannot be stored. */
  conflict(steps: readonly SourceStep[]): FlushOutcome | undefined {
    checkSteps(steps);
    const positions = this.#assumed(steps);
    return stepsThatFit(steps, positions).every(Boolean) ? undefined : { kind: "position_conflict", positions };
  }

  add(steps: readonly SourceStep[]): void {
    for (const step of steps) this.#net.set(step.name, { ...(this.#net.get(step.name) ?? step), to: step.to });
  }

  /** For `engine.positions_moved` and `engine.advance_positions`: one step for each source, as JSON. */
  get parameter(): string {
    return JSON.stringify([...this.#net.values()]);
  }

  #assumed(steps: readonly SourceStep[]): SourcePosition[] {
    const positions = new Map<string, SourcePosition>();
    for (const { name, from } of steps) {
      const before = this.#net.get(name);
      const position = before === undefined ? from : before.to;
      if (!positions.has(name)) positions.set(name, { name, position });
    }
    return [...positions.values()];
  }
}

/** What the database answers when sources are elsewhere; nothing was done. */
export type MovedAnswer = { kind: "moved"; positions: readonly { name: string; position: string | null }[] };

/**
 * Of flushes that would be stored, in order, those that cannot be from where the database says that their sources are:
 * at least the first of each that has moved.
 */
export function movedFlushes(
  flushes: Iterable<readonly [number, readonly SourceStep[]]>,
  { positions }: MovedAnswer,
): Map<number, FlushOutcome> {
  const current = new Map(positions.map(({ name, position }) => [name, position ?? undefined]));
  const moved = new Map<number, FlushOutcome>();
  for (const [flush, steps] of flushes) {
    const own = [...new Set(steps.map(({ name }) => name))].filter((name) => current.has(name));
    const stands = own.map((name) => ({ name, position: current.get(name) }));
    const asked = steps.filter(({ name }) => current.has(name));
    if (stepsThatFit(asked, stands).every(Boolean)) for (const { name, to } of asked) current.set(name, to);
    else moved.set(flush, { kind: "position_conflict", positions: stands });
  }
  return moved;
}

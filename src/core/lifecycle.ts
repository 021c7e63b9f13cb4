/**
 * What a role starts and stops. `run` resolves once the service accepts work; `drain` refuses new work and resolves
 * when all accepted work is finished; `stop` releases everything. A role runs its services in order and drains and
 * stops them in reverse.
 */
export interface Service {
  readonly name: string;
  run(): Promise<void>;
  drain(): Promise<void>;
  stop(): Promise<void>;
}

/** What was opened and must be closed, the last first; one that fails to close does not keep the others open. */
export class Cleanup {
  readonly #steps: (() => Promise<void>)[] = [];

  defer(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of this.#steps.splice(0).toReversed()) await step().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "could not close everything");
  }
}

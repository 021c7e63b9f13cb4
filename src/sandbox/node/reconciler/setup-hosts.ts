import type { Companions } from "./companions.ts";
import type { HeldSandbox } from "../leased-files.ts";

/**
 * Hosts that a sandbox reaches while a step sets it up. A command of the step goes on while its node is away: a later
 * process lets it reach them again at once, and not only when it has come to that step.
 */
export class SetupHosts {
  readonly #companions: Pick<Companions, "letOut">;
  readonly #held: Pick<HeldSandbox, "now" | "update">;
  /** The step that an earlier process was in. */
  #again: { step: string; close: () => void } | undefined;

  constructor(companions: Pick<Companions, "letOut">, held: Pick<HeldSandbox, "now" | "update">) {
    this.#companions = companions;
    this.#held = held;
  }

  /** The machine is one that an earlier process of this node had, and its way out is there. */
  takeUp(): void {
    const { sandboxId, openSetup } = this.#held.now;
    if (openSetup === undefined) return;
    this.#again = { step: openSetup.step, close: this.#companions.letOut(sandboxId, openSetup.hosts) };
  }

  /** Lets the sandbox reach these hosts, until the returned function is called. */
  async open(step: string, hosts: readonly string[]): Promise<() => Promise<void>> {
    const again = this.#again;
    // A step before that one has nothing left to do.
    const isPassedOver = again !== undefined && again.step !== step;
    if (!isPassedOver) await this.#held.update({ openSetup: { step, hosts: [...hosts] } });
    const close = this.#companions.letOut(this.#held.now.sandboxId, hosts);
    if (!isPassedOver) {
      this.#again = undefined;
      again?.close();
    }
    return async () => {
      close();
      if (!isPassedOver) await this.#held.update({ openSetup: undefined });
    };
  }
}

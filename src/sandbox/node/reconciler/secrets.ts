import type { Clock } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";
import type { RunningJob } from "../../../fabric/handler.ts";
import { GatewayAuthority } from "../../network/gateway/authority.ts";
import type { HeldSandbox } from "../leased-files.ts";

export type SandboxSecretsOptions = {
  job: Pick<RunningJob, "credential">;
  held: Pick<HeldSandbox, "now" | "update">;
  clock: Clock;
  random: Random;
};

/** A request of the sandbox waits for it. */
const REVEAL_MS = 15_000;

/** What of one sandbox stays outside of it: the values of its credentials, and the key of its certificate authority. */
export class SandboxSecrets {
  readonly #options: SandboxSecretsOptions;
  #authority: Promise<GatewayAuthority> | undefined;

  constructor(options: SandboxSecretsOptions) {
    this.#options = options;
  }

  /** The value as it is at this moment, by the hold of the sandbox's job. Rejects with an `EngineError`. */
  async reveal(credentialId: string): Promise<unknown> {
    const { clock, job } = this.#options;
    const late = new AbortController();
    const give = () => late.abort(new EngineError("unavailable", "the control plane did not give it in time"));
    const timer = clock.after(REVEAL_MS, give, { background: true });
    try {
      return await untilAborted(job.credential(credentialId), late.signal);
    } finally {
      timer.cancel();
    }
  }

  /** The same for as long as this node knows of the sandbox: its disk has the certificate. */
  authority(): Promise<GatewayAuthority> {
    this.#authority ??= this.#openAuthority().catch((error: unknown) => {
      this.#authority = undefined;
      throw error;
    });
    return this.#authority;
  }

  async #openAuthority(): Promise<GatewayAuthority> {
    const { held } = this.#options;
    const known = held.now.authority;
    if (known !== undefined) return GatewayAuthority.open(known, this.#options);
    const made = await GatewayAuthority.make(this.#options);
    await held.update({ authority: made.export() });
    return made;
  }
}

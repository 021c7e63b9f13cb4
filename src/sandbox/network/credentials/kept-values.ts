import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { EgressRefusal } from "../http/refusal.ts";
import { toAddable, type AddableCredential } from "./credential.ts";

export type KeptValuesOptions = {
  /** Rejects with an `EngineError`. */
  reveal: (credentialId: string) => Promise<unknown>;
  clock: Clock;
  log: Log;
};

/** For so long a value is kept, in memory alone. */
const KEEP_MS = 60_000;
/** Whatever happens, a credential is asked for no more often: what is inside can make an upstream refuse at will. */
const ASK_AGAIN_MS = 1_000;

type Kept = { value: Promise<AddableCredential>; askedAtMs: number; timer: TimerHandle };

/** The values of credentials that a gateway uses, each fetched when it is needed. */
export class KeptValues {
  readonly #options: KeptValuesOptions;
  readonly #kept = new Map<string, Kept>();
  #closed = false;

  constructor(options: KeptValuesOptions) {
    this.#options = options;
  }

  /** Rejects with an `EgressRefusal` that says which credential could not be had, and in general words why. */
  get(credentialId: string): Promise<AddableCredential> {
    const known = this.#kept.get(credentialId);
    if (known !== undefined) return known.value;
    if (this.#closed) return Promise.reject(new EgressRefusal(503, "the sandbox ends"));
    const value = this.#ask(credentialId);
    const kept = {
      value,
      askedAtMs: this.#options.clock.monotonicMs(),
      timer: this.#forgetAfter(credentialId, KEEP_MS),
    };
    this.#kept.set(credentialId, kept);
    value.catch(() => this.#expire(credentialId, kept));
    return value;
  }

  /** The upstream did not take it. */
  refused(credentialId: string, value: AddableCredential): void {
    const kept = this.#kept.get(credentialId);
    if (kept === undefined) return;
    // An answer to an older one says nothing of this.
    void kept.value.then(
      (current) => current === value && this.#expire(credentialId, kept),
      () => undefined,
    );
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#kept.values()) timer.cancel();
    this.#kept.clear();
  }

  async #ask(credentialId: string): Promise<AddableCredential> {
    let value: unknown;
    try {
      value = await this.#options.reveal(credentialId);
    } catch (error) {
      const code = error instanceof EngineError ? error.code : "internal";
      this.#options.log.warn({ credentialId, code }, "a credential of a sandbox could not be had");
      throw new EgressRefusal(502, `the credential ${credentialId} could not be had: ${reasonOf(code)}`);
    }
    const addable = toAddable(value);
    if (addable !== undefined) return addable;
    throw new EgressRefusal(502, `the credential ${credentialId} is of a kind that no request can carry`);
  }

  #expire(credentialId: string, kept: Kept): void {
    if (this.#kept.get(credentialId) !== kept) return;
    kept.timer.cancel();
    const waitMs = kept.askedAtMs + ASK_AGAIN_MS - this.#options.clock.monotonicMs();
    if (waitMs <= 0) this.#kept.delete(credentialId);
    else kept.timer = this.#forgetAfter(credentialId, waitMs);
  }

  #forgetAfter(credentialId: string, delayMs: number): TimerHandle {
    return this.#options.clock.after(delayMs, () => void this.#kept.delete(credentialId), { background: true });
  }
}

function reasonOf(code: string): string {
  switch (code) {
    case "not_found":
    case "credential_not_found":
    case "gone":
      return "it is not there";
    case "unauthorized":
    case "forbidden":
      return "this sandbox may not use it";
    case "lease_lost":
      return "another node has the sandbox";
    case "not_configured":
      return "there is no store of credentials";
    default:
      return "the store of credentials did not answer";
  }
}
